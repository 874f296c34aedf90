"""The kinds of series that trends are measured on, and what is demanded of them."""

from dataclasses import dataclass

from trends.draws import Kind


@dataclass(frozen=True)
class Steady:
    """Any change point is false. `most`: the demand, None where there is none."""

    kind: Kind
    most: float | None = None


@dataclass(frozen=True)
class Shifted:
    """A shift is found when it is called in its direction within so many nights, and nothing was called before it."""

    kind: Kind
    within: int
    least: float | None = None


STEADY = (
    Steady(Kind("normal"), 0.01),
    Steady(Kind("5% of the nights spiked 1.2 to 3 times", spikes=0.05), 0.05),
    Steady(Kind("AR(1), 0.5", lag1=0.5), 0.05),
    Steady(Kind("AR(1), 0.3", lag1=0.3)),
    Steady(Kind("AR(1), 0.7", lag1=0.7)),
    Steady(Kind("AR(1), 0.5, and spikes", lag1=0.5, spikes=0.05)),
    Steady(Kind("Student's t, 3 degrees of freedom", tails=3)),
    Steady(Kind("normal, 400 nights", nights=400)),
    Steady(Kind("AR(1), 0.5, 400 nights", lag1=0.5, nights=400)),
    Steady(Kind("drift of 5% over 60 nights", drift=0.05 / 60)),
    Steady(Kind("drift of 2% over 60 nights", drift=0.02 / 60)),
)
SHIFTED = (
    Shifted(Kind("5%", shift=0.05, nights=80), 6, 0.9),
    Shifted(Kind("8%", shift=0.08, nights=80), 3, 0.9),
    Shifted(Kind("5% faster", shift=1 / 1.05 - 1, nights=80), 6, 0.9),
    Shifted(Kind("8% faster", shift=1 / 1.08 - 1, nights=80), 3, 0.9),
    Shifted(Kind("5%, 30 to 39 nights before it", shift=0.05, earliest=30, latest=39, nights=80), 6),
    Shifted(Kind("8%, 30 to 39 nights before it", shift=0.08, earliest=30, latest=39, nights=80), 3),
    Shifted(Kind("5%, 20 to 29 nights before it", shift=0.05, earliest=20, latest=29, nights=80), 6),
    Shifted(Kind("8%, 20 to 29 nights before it", shift=0.08, earliest=20, latest=29, nights=80), 3),
    Shifted(Kind("30%, 12 to 19 nights before it", shift=0.3, earliest=12, latest=19, nights=80), 3),
    Shifted(Kind("5%, spikes", shift=0.05, spikes=0.05, nights=80), 6),
    Shifted(Kind("8%, spikes", shift=0.08, spikes=0.05, nights=80), 6),
    Shifted(Kind("5%, AR(1), 0.5", shift=0.05, lag1=0.5, nights=80), 6),
    Shifted(Kind("8%, AR(1), 0.5", shift=0.08, lag1=0.5, nights=80), 6),
    Shifted(Kind("5%, Student's t, 3 degrees", shift=0.05, tails=3, nights=80), 6),
    Shifted(Kind("3%", shift=0.03, nights=80), 20),
    Shifted(Kind("2%", shift=0.02, nights=100), 40),
)
JUDGED = (
    Kind("5%, 6 nights after it", shift=0.05, earliest=54, latest=54),
    Kind("5%, 20 nights after it", shift=0.05, earliest=40, latest=40),
    Kind("8%, 20 nights after it", shift=0.08, earliest=40, latest=40),
    Kind("8%, 20 nights after it, AR(1), 0.5", shift=0.08, earliest=40, latest=40, lag1=0.5),
    Kind("8%, 20 nights after it, spikes", shift=0.08, earliest=40, latest=40, spikes=0.05),
    Kind("8%, back after 15 nights", shift=0.08, earliest=40, latest=50, back=15, nights=100),
    Kind("8%, back after 8 nights", shift=0.08, earliest=40, latest=50, back=8, nights=100),
    Kind("5%, and 5% more after 20 nights", shift=0.05, earliest=40, latest=50, again=20, nights=100),
)

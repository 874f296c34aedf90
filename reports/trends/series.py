"""What goes in and what comes out: plain data."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """One night."""

    time: str
    revision: str
    value: float  # above 0: a median time, in any unit
    low: float | None = None  # its 95% interval: the noise within the night
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """Nights in order of time. Comparable: one backend, device, golden and group."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Change:
    """Nights are indices into the points."""

    night: int  # the first of the new level, best estimate
    low: int  # the first of the new level lies in low..high (95%)
    high: int
    called: int  # the night whose data first called it
    revision_before: str  # of the last night surely before
    revision_after: str  # of the first night surely after
    size: float  # after / before - 1: above 0 is slower
    size_low: float  # 95%
    size_high: float
    p: float  # share of steady series of 60 nights that ever give evidence this strong
    same_revision: bool  # nothing was committed in between: the machine changed, not the code


@dataclass(frozen=True)
class Segment:
    """Nights first..last, between two changes."""

    first: int
    last: int
    level: float  # robust, in the unit of the values
    low: float | None  # 95%; None below 6 nights
    high: float | None


@dataclass(frozen=True)
class Trend:
    series: Series
    verdict: str  # steady, changed, too few
    changes: tuple[Change, ...]
    segments: tuple[Segment, ...]
    noise: float | None  # sigma between nights, as a share of the level; None where there are too few
    lag1: float | None  # correlation of neighbours within a segment

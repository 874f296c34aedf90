"""Series with known truth, in log values: for calibration, simulation and tests."""

from dataclasses import dataclass

import numpy as np

NIGHTS = 60
NOISE = 0.02


@dataclass(frozen=True)
class Kind:
    """Steady noise, and what happens to its level."""

    name: str
    lag1: float = 0.0
    spikes: float = 0.0  # share of nights that take 1.2 to 3 times as long
    tails: int = 0  # degrees of freedom of Student's t, scaled to the same variance; 0: normal
    drift: float = 0.0  # share of the level a night
    shift: float = 0.0  # share of the level
    back: int = 0  # nights after which the shift ends; 0: never
    again: int = 0  # nights after which the same shift comes once more; 0: never
    earliest: int = 40  # nights before the shift, at least
    latest: int = 54
    nights: int = NIGHTS


def _noise(kind, series, generator):
    shape = series, kind.nights
    if kind.tails:
        noise = generator.standard_t(kind.tails, shape) * np.sqrt((kind.tails - 2) / kind.tails)
    else:
        noise = generator.standard_normal(shape)
    for night in range(1, kind.nights if kind.lag1 else 0):
        noise[:, night] = kind.lag1 * noise[:, night - 1] + np.sqrt(1 - kind.lag1**2) * noise[:, night]
    return NOISE * noise


def draw(kind, series, seed):
    """Log values [series, nights] and the first night of the shift [series]."""
    generator = np.random.default_rng(seed)
    values = _noise(kind, series, generator)
    nights = np.arange(kind.nights)
    values += nights * np.log1p(kind.drift)
    spiked = generator.random(values.shape) < kind.spikes
    values += np.where(spiked, np.log(generator.uniform(1.2, 3.0, values.shape)), 0.0)
    first = generator.integers(kind.earliest, kind.latest + 1, series)
    age = nights - first[:, None]
    size = np.log1p(kind.shift)
    values += size * ((age >= 0) & ((age < kind.back) | (kind.back == 0)))
    if kind.again:
        values += size * (age >= kind.again)
    return values, first

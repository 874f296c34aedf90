"""Levels of segments, and the noise that they share."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from trends import robust

CONFIDENCE = 0.95
FEWEST = 6  # nights: with fewer a level has no interval


@dataclass(frozen=True)
class Noise:
    """Of logs: sigma is a share of the level."""

    sigma: float
    lag1: float  # as estimated
    nights: int
    degrees: int

    @property
    def correlation(self):
        """The estimate without its bias, which is known for small numbers of nights."""
        return float(np.clip(self.lag1 + (1 + 3 * self.lag1) / self.nights, 0.0, 0.8))

    def variance(self, count):
        """Of the level of so many nights."""
        return self.sigma**2 * float(robust.inflation(self.correlation, count)) / count

    def half_width(self, variance):
        independent = self.degrees * (1 - self.correlation**2) / (1 + self.correlation**2)
        return float(stdtrit(max(independent, 1), (1 + CONFIDENCE) / 2)) * variance**0.5


def level(nights, floor):
    """Robust level of some nights."""
    location, _ = robust.fit(nights[None], np.array([len(nights)]), floor)
    return float(location[0])


def moments(nights, floor):
    """Sums of squares and of products of neighbours, around the nights' own level."""
    count = np.array([len(nights)])
    location, sigma = robust.fit(nights[None], count, floor)
    squares, products = robust.moments(nights[None], location, sigma)
    return float(squares[0]), float(products[0])


def pooled(segments, floor):
    """The noise of all segments around their own levels."""
    sums = [moments(nights, floor) for nights in segments]
    squares, products = (sum(column) for column in zip(*sums))
    nights = sum(len(segment) for segment in segments)
    degrees = max(nights - len(segments), 1)
    sigma = max((squares / degrees) ** 0.5, floor)
    return Noise(sigma, products / squares if squares > 0 else 0.0, nights, degrees)

"""The samples of a timed block: their order, and how they are distributed."""

import math
from dataclasses import dataclass

from .text import is_time

POINTS, BINS = 1000, 36


def clean(case):
    return [value for value in case.bench.get("samples", []) if is_time(value)]


def quantile(ordered, q):
    """Nearest rank, as bench's p95."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


@dataclass(frozen=True)
class Scale:
    """Where a value lies on an axis, 0 to 1; logarithmic where the largest is far from the smallest."""

    low: float
    high: float
    log: bool

    def at(self, value):
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share):
        return self.low * (self.high / self.low) ** share if self.log else self.low + share * (self.high - self.low)


def scale(values, room=0.04):
    """An axis over values above 0, with some room at both ends."""
    low, high = min(values), max(values)
    if high / low > 3:
        wide = (high / low) ** room
        return Scale(low / wide, high * wide, True)
    wide = room * (high - low) or 0.02 * high
    return Scale(low - wide, high + wide, False)


def ticks(axis, most=6):
    """Round values inside the axis."""
    if axis.log:
        found = [m * 10.0**e for e in range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
                 for m in (1, 2, 5)]
        inside = [v for v in found if axis.low <= v <= axis.high]
        tens = [v for v in inside if abs(math.log10(v) - round(math.log10(v))) < 1e-9]
        return inside if len(inside) <= most else tens[:: math.ceil(len(tens) / most)] if tens else inside[::2]
    rough = (axis.high - axis.low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first = math.ceil(axis.low / step)
    return [i * step for i in range(first, math.floor(axis.high / step) + 1)][: most + 2]


def histogram(values, axis, bins=BINS):
    """How many values lie in each of equal parts of the axis."""
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int(axis.at(value) * bins)))] += 1
    return counts


def thin(values, most=POINTS):
    """(index, value) of all values, or of the lowest and the highest of each stretch."""
    if len(values) <= most:
        return list(enumerate(values))
    length = math.ceil(2 * len(values) / most)
    kept = set()
    for start in range(0, len(values), length):
        stretch = range(start, min(len(values), start + length))
        kept |= {min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}
    return [(i, values[i]) for i in sorted(kept)]

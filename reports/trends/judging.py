"""Replays a series night by night: what one night called, no later night takes back."""

import math
from dataclasses import dataclass

import numpy as np

from trends import evidence, levels, place, thresholds
from trends.series import Change, Segment, Trend

LEAST_SIGMA = 0.0005  # identical values do not prove that there is no noise
LEAST = 0.01  # share of the level
BLOCK = 512  # nights at a time, so that long series need no more memory than short ones
LARGEST = 700.0  # logs beyond this have no value


@dataclass(frozen=True)
class Call:
    split: int  # the first night of the new level
    night: int  # at which it was called
    strength: np.ndarray  # evidence of that night and those after it


def judge_all(series, rate=thresholds.RATE, least=LEAST):
    return [judge(one, rate, least) for one in series]


def judge(series, rate=thresholds.RATE, least=LEAST):
    """`rate`: share of steady series of 60 nights that may ever give a false change. `least`: smallest share of the
    level that counts as a change. ValueError for values not above 0, and for rates that the table does not hold."""
    bound = thresholds.for_rate(rate)
    if not 0 <= least < math.inf:
        raise ValueError(f"least change {least}: must be 0 or above")
    values, floor = _logs(series), _floor(series.points)
    if len(values) < evidence.NEEDED:
        return Trend(series, "too few", (), _segments(values, [], floor, None), None, None)
    calls = _replay(values, bound, floor, math.log1p(least))
    starts = _refine(values, calls, floor)
    noise = levels.pooled(np.split(values, starts), floor)
    changes = tuple(_change(series, values, starts, i, calls[i], floor, noise) for i in range(len(calls)))
    segments = _segments(values, starts, floor, noise)
    return Trend(series, "changed" if changes else "steady", changes, segments, noise.sigma, noise.lag1)


def _logs(series):
    for night, point in enumerate(series.points):
        if not (math.isfinite(point.value) and point.value > 0):
            raise ValueError(f"series '{series.name}', night {night}: value {point.value} is not above 0")
    return np.log(np.array([point.value for point in series.points], dtype=float))


def _value(log):
    return math.exp(min(log, LARGEST))


def _floor(points):
    """Nights cannot be more alike than the intervals within them say."""
    half = [(p.high - p.low) / 2 / p.value for p in points if p.low is not None and p.high is not None]
    return max(LEAST_SIGMA, float(np.median(half)) / 1.96 if half else 0.0)


def _replay(values, bound, floor, least):
    calls, start, known = [], 0, evidence.Known()
    while (call := _first_call(values, start, bound, floor, least, known)) is not None:
        calls.append(call)
        known = _learn(known, values[start : call.split], floor)
        start = call.split
    return calls


def _first_call(values, start, bound, floor, least, known):
    """The first night whose evidence suffices, of a segment that begins at `start`. A block of nights at a time: those
    that lack the nights before them in one block have them in the block before."""
    for begin in range(start, len(values), BLOCK - evidence.MEMORY):
        found = evidence.gather(values[None, begin : begin + BLOCK], floor, least, known)
        strength = np.maximum(found.slower, found.faster)[0]
        strength[: evidence.MEMORY if begin > start else 0] = 0.0
        if np.any(strength >= bound):
            night = int(np.argmax(strength >= bound))
            split = begin + night + 1 - int(found.after[0, night])
            return Call(split, begin + night, strength[night:])
    return None


def _learn(known, nights, floor):
    """Adds a segment that ended to what is known of the noise, the newest nights before older ones."""
    nights = nights[-evidence.BEFORE :]
    squares, products = levels.moments(nights, floor)
    kept = min(1.0, (evidence.BEFORE - len(nights)) / known.nights) if known.nights else 0.0
    return evidence.Known(
        squares + kept * known.squares, products + kept * known.products, len(nights) + int(kept * known.nights)
    )


def _refine(values, calls, floor):
    """The likeliest first nights of the new levels, from all nights up to the next change."""
    starts = [call.split for call in calls]
    for i, call in enumerate(calls):
        begin, end = _around(starts, i, len(values))
        before, after = values[begin : starts[i]], values[starts[i] : end]
        sigma = levels.pooled([before, after], floor).sigma
        ends = levels.level(before, floor), levels.level(after, floor)
        last = min(call.night, end - 1) - begin
        starts[i] = begin + place.likeliest(values[begin:end], *ends, sigma, 1, last)
    return starts


def _around(starts, i, nights):
    return starts[i - 1] if i else 0, starts[i + 1] if i + 1 < len(starts) else nights


def _change(series, values, starts, i, call, floor, noise):
    begin, end = _around(starts, i, len(values))
    night = starts[i]
    before, after = levels.level(values[begin:night], floor), levels.level(values[night:end], floor)
    low, high = place.interval(values[begin:end], before, after, noise, night - begin)
    low, high = begin + low, begin + high
    half = noise.half_width(noise.variance(night - begin) + noise.variance(end - night))
    sizes = (_value(after - before + side) - 1 for side in (0.0, -half, half))
    revisions = [point.revision for point in series.points[low - 1 : high + 1]]
    chance = thresholds.chance(float(call.strength[: max(end - call.night, 1)].max()))
    same = len(set(revisions)) == 1
    return Change(night, low, high, call.night, revisions[0], revisions[-1], *sizes, chance, same)


def _segments(values, starts, floor, noise):
    if not len(values):
        return ()
    edges = [0, *starts, len(values)]
    return tuple(_segment(values, first, end, floor, noise) for first, end in zip(edges, edges[1:]))


def _segment(values, first, end, floor, noise):
    level = levels.level(values[first:end], floor)
    if noise is None or end - first < levels.FEWEST:
        return Segment(first, end - 1, _value(level), None, None)
    half = noise.half_width(noise.variance(end - first))
    return Segment(first, end - 1, _value(level), _value(level - half), _value(level + half))

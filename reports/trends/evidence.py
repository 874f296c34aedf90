"""For every night: the evidence, from data up to that night alone, that the level changed before it.

A split leaves `after` nights behind it and up to BEFORE in front of it. The difference of the two robust levels over
its standard error is a t statistic whose variance counts the correlation of neighbours; it is brought to a normal
scale, z. Splits into different numbers of nights are weighed together: exp(z^2 / 2) of each, above a margin, summed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from trends import robust

BEFORE = 64  # nights in front of a split that count
FEWEST_BEFORE = 12  # of a first segment
FEWEST_AGAIN = 6  # of a later one: sigma is known from the segments before
AFTER = np.array([3, 4, 5, 6, 8, 11, 15, 21, 30, 42, 60])
MARGIN = np.array([0.3, 0.2, 0.2, 0.0] + [1.1] * 7)  # what z must exceed before it counts, by AFTER
SETTLED = 35  # nights: with fewer, sigma and correlation are little known, and the margin grows
UNSETTLED = 0.15  # by this a night
FAR = 4.5  # sigma: nights this far from the middle one of those after the split do not agree with them
NEEDED = FEWEST_BEFORE + int(AFTER[0])
MEMORY = BEFORE + int(AFTER[-1]) - 1  # earlier nights that a night can look at


@dataclass(frozen=True)
class Known:
    """What the segments before tell of sigma and correlation."""

    squares: float = 0.0
    products: float = 0.0
    nights: int = 0

    @property
    def degrees(self):
        return max(self.nights - 1, 0)


@dataclass(frozen=True)
class Evidence:
    """By series and night; `after` is the number of nights behind the likeliest split."""

    slower: np.ndarray
    faster: np.ndarray
    after: np.ndarray


def _windows_before(values, fewest):
    """[series, split, BEFORE], NaN where a series had not begun, and the nights in each window."""
    gap = np.full((values.shape[0], BEFORE), np.nan)
    windows = sliding_window_view(np.concatenate([gap, values], 1), BEFORE, 1)[:, fewest:]
    count = np.minimum(np.arange(fewest, values.shape[1] + 1), BEFORE)
    return windows, np.broadcast_to(count, windows.shape[:2])


def _level_after(windows, level_before, sigma):
    """Robust level, and whether all but a quarter of the nights agree with the middle one: two spikes of three do not.
    Of two middle nights it is the one nearer to the level before, so that two spikes of four do not either."""
    ordered = np.sort(windows, -1)
    low, high = ordered[..., (windows.shape[-1] - 1) // 2], ordered[..., windows.shape[-1] // 2]
    middle = np.where(np.abs(low - level_before) < np.abs(high - level_before), low, high)
    apart = (np.abs(windows - middle[..., None]) > FAR * sigma[..., None]).sum(-1)
    level = middle
    for _ in range(3):
        level = level + robust.clipped(windows, level, sigma).mean(-1)
    return level, apart <= windows.shape[-1] // 4


def normal_score(difference, variance, lag1, count, degrees):
    """z of a difference of levels with that variance per sigma^2, sigma estimated with so many degrees of freedom."""
    t = difference / np.sqrt(variance)
    degrees = degrees * (1 - lag1**2) / (1 + lag1**2)
    size = np.sqrt(degrees * np.log1p(t * t / degrees)) * (8 * degrees + 1) / (8 * degrees + 3)
    return np.sign(t) * size


def _together(scores):
    above = np.maximum(scores, 0.0)
    return np.sqrt(2 * np.log(np.exp(np.minimum(above, 35.0) ** 2 / 2).sum(1)))


def gather(values, floor, least, known=Known()):
    """Evidence of log values [series, nights]. `floor`: least sigma; `least`: smallest change of a log that counts."""
    series, nights = values.shape
    fewest = FEWEST_AGAIN if known.nights else FEWEST_BEFORE
    scores = np.zeros((series, len(AFTER), nights))
    if nights >= fewest + AFTER[0]:
        windows, before = _windows_before(values, fewest)
        level, sigma = robust.fit(windows, before, floor, known.squares, known.degrees)
        sums = robust.moments(windows, level, sigma)
        for i, after in enumerate(AFTER[AFTER <= nights - fewest]):
            z = _score_splits(values[:, fewest:], after, before, level, sigma, sums, floor, least, known)
            scores[:, i, fewest + after - 1 :] = z
    slower, faster = _together(scores), _together(-scores)
    return Evidence(slower, faster, AFTER[np.abs(scores).argmax(1)])


def _score_splits(values, after, before, level, sigma, sums, floor, least, known):
    """z above its margin of every split with `after` nights behind it, by night; sign: above 0 is slower."""
    windows = sliding_window_view(values, after, 1)
    splits = windows.shape[1]
    before, level, sigma = before[:, :splits], level[:, :splits], sigma[:, :splits]
    level_after, agree = _level_after(windows, level, sigma)
    own = robust.moments(windows, level_after, sigma)
    squares = sums[0][:, :splits] + own[0] + known.squares
    products = sums[1][:, :splits] + own[1] + known.products
    count = before + after + known.nights
    degrees = before + after - 2 + known.degrees
    lag1 = robust.cautious_lag1(products / np.maximum(squares, 1e-300), count)
    variance = robust.inflation(lag1, after) / after + robust.inflation(lag1, before) / before
    difference = level_after - level
    z = normal_score(difference, variance * np.maximum(squares / degrees, floor**2), lag1, count, degrees)
    margin = MARGIN[AFTER == after] + UNSETTLED * np.maximum(0, SETTLED - count)
    size = np.where(agree & (np.abs(difference) >= least), np.maximum(np.abs(z) - margin, 0.0), 0.0)
    return np.sign(z) * size

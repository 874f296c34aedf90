"""Location and scale that a few wild nights do not move, for many windows at once (Huber's proposal 2)."""

import numpy as np
from scipy.special import ndtr, ndtri

CLIP = 2.5  # residuals beyond this many sigma count as this many
# What clipping leaves of the variance of normal residuals: sums of clipped squares are divided by it.
KEPT = float(ndtr(CLIP) - ndtr(-CLIP) - 2 * CLIP * float(np.exp(-CLIP**2 / 2) / np.sqrt(2 * np.pi)) + 2 * CLIP**2 * ndtr(-CLIP))
MAD = float(ndtri(0.75))  # of normal residuals, in sigma
ITERATIONS = 4


def _median(ordered, count):
    """Of windows sorted along the last axis, NaN at their ends."""
    middle = np.stack([(count - 1) // 2, count // 2], -1)
    return np.take_along_axis(ordered, middle, -1).mean(-1)


def clipped(windows, location, sigma):
    """Residuals, clipped; 0 where there is no night (NaN)."""
    bound = CLIP * sigma[..., None]
    residuals = np.minimum(np.maximum(windows - location[..., None], -bound), bound)
    residuals[np.isnan(residuals)] = 0.0
    return residuals


def fit(windows, count, floor, squares=0.0, degrees=0.0):
    """Location and sigma of each window along the last axis, which holds `count` nights and else NaN. `squares` and
    `degrees` are what earlier segments know of sigma; `floor` is the least that sigma can be."""
    location = _median(np.sort(windows, -1), count)
    if degrees > 0:
        sigma = np.full(location.shape, max(np.sqrt(squares / degrees), floor))
    else:
        sigma = np.maximum(_median(np.sort(np.abs(windows - location[..., None]), -1), count) / MAD, floor)
    for _ in range(ITERATIONS):
        residuals = clipped(windows, location, sigma)
        location = location + residuals.sum(-1) / count
        total = (residuals**2).sum(-1) / KEPT + squares
        sigma = np.maximum(np.sqrt(total / np.maximum(count - 1 + degrees, 1)), floor)
    return location, sigma


def moments(windows, location, sigma):
    """Sums of squared residuals and of products of neighbours, of clipped residuals."""
    residuals = clipped(windows, location, sigma)
    return (residuals**2).sum(-1) / KEPT, (residuals[..., 1:] * residuals[..., :-1]).sum(-1) / KEPT


def inflation(lag1, count):
    """Variance of the mean of `count` AR(1) nights over that of independent ones."""
    falling = 2 * lag1 * (1 - lag1**count) / (count * (1 - lag1) ** 2)
    return (1 + lag1) / (1 - lag1) - falling


def cautious_lag1(lag1, count):
    """The correlation to reckon with after `count` nights: an estimate from few nights is too low and uncertain, so it
    is raised; one near 0 from many nights counts as none. Found by simulation (docs/trends.md)."""
    return np.clip(1.4 * lag1 + 5.0 / count - 0.1, 0.0, 0.8)

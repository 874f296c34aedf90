"""Which night was the first of a new level: the likeliest, and all that cannot be excluded."""

import numpy as np

CAP = 4.0  # sigma: a night further than this from both levels tells nothing
EXCLUDED = 6.0  # twice the log likelihood that a night must fall short of the best by: covers 95% (docs/trends.md)


def losses(nights, before, after, sigma):
    """Twice the negative log likelihood that the new level begins at night 0, 1, ..., len(nights), of nights with sigma
    around their level."""
    old = np.minimum(((nights - before) / sigma) ** 2, CAP**2)
    new = np.minimum(((nights - after) / sigma) ** 2, CAP**2)
    return np.concatenate([[0.0], np.cumsum(old)]) + np.concatenate([np.cumsum(new[::-1])[::-1], [0.0]])


def likeliest(nights, before, after, sigma, first, last):
    """The likeliest first night of the new level, in first..last."""
    return first + int(losses(nights, before, after, sigma)[first : last + 1].argmin())


def interval(nights, before, after, noise, night):
    """First and last night that cannot be excluded. Nights that resemble each other tell less than independent ones."""
    short = losses(nights, before, after, noise.sigma)
    short = (short - short[night]) * (1 - noise.correlation) / (1 + noise.correlation)
    possible = np.flatnonzero(short[1 : len(nights)] <= EXCLUDED) + 1
    return min(int(possible.min()), night), max(int(possible.max()), night)

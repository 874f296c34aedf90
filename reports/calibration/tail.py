"""The tail of the largest lambda that a golden needs.

With m elements in a golden, P(largest <= t) = exp(-m c S(t)). S is exp(-t / b), or exp(-(t / b)^k) for a tail that is
heavier (k < 1) or lighter (k > 1). Goldens whose largest lies below a threshold tell no more than that, so that the
bulk does not bend the tail: their share of the likelihood is P(largest <= threshold).

With x = t^k a Weibull-like tail is an exponential one, and for a given b the best c is known:
c = n / sum m exp(-x / b), n the number above the threshold. What is left is concave in 1 / b, and Newton finds it.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

FEWEST = 20  # goldens above the threshold: below that nothing is fitted


@dataclass
class Tail:
    """b and log c may be arrays, one entry a bootstrap sample. In units of lambda^k."""

    b: np.ndarray
    log_c: np.ndarray
    k: float = 1.0
    log_likelihood: float = 0.0

    def log_rate(self, t, elements):
        """log of the expected number above t among so many elements."""
        return np.log(elements) + self.log_c - t**self.k / self.b


def _newton(x, above, m, weights):
    """1 / b for each row of weights."""
    n = weights @ above
    mean = weights @ (x * above) / n
    low = x.min()
    beta = np.full(len(weights), 1.0) / np.maximum(mean - low, 1e-12)
    for _ in range(60):
        e = m * np.exp(-beta[:, None] * (x - low)) * weights
        total = e.sum(axis=1)
        first = (e @ x) / total
        second = (e @ (x * x)) / total - first**2
        slope = first + 1 / beta - mean
        step = slope / (second + 1 / beta**2)
        beta = np.maximum(beta + step, beta / 4)
        if np.all(np.abs(step) < 1e-9 * beta):
            break
    e = m * np.exp(-beta[:, None] * (x - low)) * weights
    return beta, np.log(n) - np.log(e.sum(axis=1)) + beta * low


def fit(largest, elements, threshold, k=1.0, weights=None):
    """The best tail over goldens; of several rows of weights (bootstrap counts) one each."""
    above = largest > threshold
    x, m = np.maximum(largest, threshold) ** k, np.asarray(elements, dtype=float)
    each = np.ones((1, len(x))) if weights is None else weights
    beta, log_c = _newton(x, above, m, each)
    if weights is not None:
        return Tail(1 / beta, log_c, k)
    n, t = above.sum(), largest[above]
    log_density = log_c[0] + np.log(beta[0]) - beta[0] * x[above] + np.log(m[above]) + np.log(k) + (k - 1) * np.log(t)
    return Tail(1 / beta[0], log_c[0], k, float(log_density.sum() - n))


def fit_weibull(largest, elements, threshold):
    """The same with k as a third number."""
    def loss(log_k):
        return -fit(largest, elements, threshold, np.exp(log_k)).log_likelihood

    best = optimize.minimize_scalar(loss, bounds=(np.log(0.2), np.log(5)), method="bounded")
    return fit(largest, elements, threshold, float(np.exp(best.x)))


def fit_growth(largest, elements, threshold):
    """The power of m with which the rate grows, 0 to 1, and the tail in units of m^power. Errors that many elements
    share make it less than 1: then more elements are not as many more chances."""
    def loss(power):
        return -fit(largest, elements**power, threshold).log_likelihood

    best = optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded")
    power = float(best.x)
    return power, fit(largest, elements**power, threshold)


def fit_shape(largest, elements, threshold):
    """The generalised extreme value fit: S(t) = (1 + shape (t - threshold) / scale)^(-1 / shape). Returns the shape and
    by how much the log likelihood exceeds the exponential's, whose shape is 0; a positive shape is a heavier tail."""
    above, m = largest > threshold, np.asarray(elements, dtype=float)
    excess, n = np.maximum(largest, threshold) - threshold, above.sum()

    def loss(p):
        shape, log_scale = p
        if abs(shape) < 1e-6:
            shape = 1e-6
        inner = 1 + shape * excess / np.exp(log_scale)
        if np.any(inner <= 0):
            return 1e12
        log_s = -np.log(inner) / shape
        log_density = (1 + shape) * log_s[above] - log_scale + np.log(m[above])
        return -(log_density.sum() + n * np.log(n) - n * np.log(m @ np.exp(log_s)) - n)

    start = [0.01, np.log(excess[above].mean())]
    best = optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8, "maxiter": 4000})
    return float(best.x[0]), float(-best.fun - fit(largest, elements, threshold).log_likelihood)


def bootstrap_weights(count, samples, seed):
    """How often each of count draws is drawn again, for each sample."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(count, np.full(count, 1 / count), size=samples).astype(float)


def solve(tails, elements, probability):
    """lambda at which the tails' expected numbers add up to what fails with this probability; an entry a sample."""
    target = np.log(-np.log1p(-probability))
    low = np.zeros(np.shape(tails[0].b))
    high = low + 1.0
    def rate(t):
        return np.logaddexp.reduce([tail.log_rate(t, m) for tail, m in zip(tails, elements)], axis=0)
    while np.any(rate(high) > target):
        high = np.where(rate(high) > target, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        over = rate(middle) > target
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high

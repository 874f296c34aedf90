"""Samples until the median is known well enough, by the rules of bench (docs/timing.md)."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_LOOK, FEWEST_BATCHED = 32, 30
MIN_BATCHES, MAX_BATCHES = 6, 16
STUDENT = (2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314)  # 97.5%, from 5 on


@dataclass(frozen=True)
class Sampled:
    samples: list[float]
    stopped_by: str  # "confidence" or "budget"


def _between(ordered: list[float]) -> tuple[float, float] | None:
    """Order statistics that enclose the median of any distribution with 95%; None below 6 samples."""
    n, k = len(ordered), 0
    term = below = 0.5**n
    while 2 * below <= 0.05:
        k += 1
        term *= (n - k + 1) / k
        below += term
    return (ordered[k - 1], ordered[n - k]) if k else None


def _batched(samples: list[float], median: float) -> tuple[float, float]:
    n = len(samples)
    count = min(max(math.isqrt(n), MIN_BATCHES), MAX_BATCHES)
    size, more = divmod(n, count)
    starts = [size * b + min(b, more) for b in range(count + 1)]
    medians = [statistics.median(samples[a:b]) for a, b in zip(starts, starts[1:])]
    reach = STUDENT[count - MIN_BATCHES] * statistics.stdev(medians) / math.sqrt(count)
    return median - reach, median + reach


def summary(samples: list[float]) -> dict[str, float]:
    """The members of S in docs/records.md."""
    ordered, median, n = sorted(samples), statistics.median(samples), len(samples)
    mean = statistics.fmean(samples)
    squares = sum((x - mean) ** 2 for x in samples)
    products = sum((a - mean) * (b - mean) for a, b in zip(samples, samples[1:]))
    out = {"n": n, "min": ordered[0], "median": median, "p95": ordered[(95 * n + 99) // 100 - 1],
           "mad": statistics.median(abs(x - median) for x in samples), "lag1": products / squares if squares else 0.0}
    interval = _between(ordered) if n < FEWEST_BATCHED else _batched(samples, median)
    if interval:
        low, high = interval
        out |= {"low": low, "high": high, "half_width": (high - low) / 2 / median}
    return out


def sample(once: Callable[[], float], confidence: float, budget_s: float,
           now: Callable[[], float] = time.monotonic) -> Sampled:
    """once: one block's time in ns. Looked at after 32, 64, 128, ... samples; at least 6 are taken."""
    samples: list[float] = []
    begin, look = now(), FIRST_LOOK
    while len(samples) < MIN_BATCHES or now() - begin < budget_s:
        samples.append(once())
        if len(samples) == look:
            if summary(samples)["half_width"] <= confidence:
                return Sampled(samples, "confidence")
            look *= 2
    return Sampled(samples, "budget")

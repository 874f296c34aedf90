"""How often trends are wrong, and how soon right, on series whose truth is known: the tables of docs/trends.md.

  ci/python -m trends.simulate [--series N] [--seed S] [--rate R]

Exit status: 0 every demand holds; 1 one does not; 2 usage."""

import argparse
import sys

import numpy as np

from trends import draws, evidence, thresholds
from trends.calibrate import CHUNK, FLOOR, LEAST
from trends.cases import JUDGED, SHIFTED, STEADY
from trends.judging import judge
from trends.series import Point, Series

NEAR = 3  # nights: a call this near to the shift has found it
FOUND = 10  # nights: a change this near to the truth is the one whose place and size are judged


def evidence_of(kind, series, seed):
    """Evidence by series and night, and the first night of each shift, a chunk at a time."""
    for part in range(-(-series // CHUNK)):
        values, first = draws.draw(kind, min(CHUNK, series - part * CHUNK), [*seed, part])
        yield evidence.gather(values, FLOOR, LEAST), first


def false_share(kind, bound, series, seed):
    """Share of steady series with a change point on any night."""
    wrong = 0
    for given, _ in evidence_of(kind, series, seed):
        wrong += int((np.maximum(given.slower, given.faster) >= bound).any(1).sum())
    return wrong / series


def first_calls(kind, bound, series, seed):
    """By series: nights from the shift to its call, 1: on its first night, infinite: never; whether the first call was
    false, before the shift or in the wrong direction; and whether it was more than NEAR nights off."""
    delays, false, off = [], [], []
    for given, first in evidence_of(kind, series, seed):
        right, wrong = (given.slower, given.faster) if kind.shift > 0 else (given.faster, given.slower)
        called = np.maximum(right, wrong) >= bound
        rows, night, any_call = np.arange(len(first)), called.argmax(1), called.any(1)
        split = night + 1 - given.after[rows, night]
        mistaken = any_call & ((night < first) | (right[rows, night] < bound))
        misplaced = any_call & ~mistaken & (np.abs(split - first) > NEAR)
        delays.append(np.where(any_call & ~mistaken & ~misplaced, night - first + 1.0, np.inf))
        false.append(mistaken)
        off.append(misplaced)
    return tuple(np.concatenate(column) for column in (delays, false, off))


def truth(kind, first):
    """First nights of new levels, and the sizes of the changes there."""
    if kind.back:
        return [first, first + kind.back], [kind.shift, 1 / (1 + kind.shift) - 1]
    if kind.again:
        return [first, first + kind.again], [kind.shift, kind.shift]
    return [first], [kind.shift]


def judged(kind, series, seed, rate):
    """What the whole of judging says of series with changes: shares of series, and of changes that were found."""
    values, first = draws.draw(kind, series, seed)
    exact = extra = placed = sized = found = wide = 0
    for row, begin in zip(np.exp(values), first):
        trend = judge(Series("", [Point("", "", value) for value in row]), rate)
        nights, sizes = truth(kind, int(begin))
        near = [min((abs(c.night - n), i) for i, c in enumerate(trend.changes)) for n in nights if trend.changes]
        exact += len(near) == len(nights) == len(trend.changes) and all(gap <= NEAR for gap, _ in near)
        hit = [(trend.changes[i], n, s) for (gap, i), n, s in zip(near, nights, sizes) if gap <= FOUND]
        extra += len(trend.changes) > len(nights)
        found += len(hit)
        placed += sum(c.low <= n <= c.high for c, n, _ in hit)
        wide += sum(c.high - c.low + 1 for c, _, _ in hit)
        sized += sum(c.size_low <= s <= c.size_high for c, _, s in hit)
    return [exact / series, extra / series, *(sum_ / max(found, 1) for sum_ in (placed, sized, wide))]


def percent(share):
    return f"{100 * share:.2f}%" if share < 0.1 else f"{100 * share:.1f}%"


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_steady(bound, series, seed):
    print(f"## Steady series with a change point on any night ({series} series each)\n")
    row("noise", "false", "demand")
    row("---", "---", "---")
    failed = []
    for number, case in enumerate(STEADY):
        share = false_share(case.kind, bound, series, [seed, 1, number])
        if case.most is not None and share > case.most:
            failed.append(case.kind.name)
        row(case.kind.name, percent(share), "" if case.most is None else f"at most {percent(case.most)}")
    return failed


def print_shifted(bound, series, seed):
    print(f"\n## A shift, 40 to 54 nights before it where nothing else is said ({series} series each)\n")
    row("shift", "found", "within", "demand", "found within 20", "half found within", "false before it", "misplaced")
    row(*["---"] * 8)
    failed = []
    for number, case in enumerate(SHIFTED):
        delays, false, off = first_calls(case.kind, bound, series, [seed, 2, number])
        share = float((delays <= case.within).mean())
        if case.least is not None and share < case.least:
            failed.append(case.kind.name)
        half = np.quantile(delays, 0.5, method="inverted_cdf")
        asked = "" if case.least is None else f"at least {percent(case.least)}"
        row(case.kind.name, percent(share), f"{case.within} nights", asked, percent(float((delays <= 20).mean())),
            f"{half:.0f} nights" if np.isfinite(half) else "never", *(percent(float(c.mean())) for c in (false, off)))
    return failed


def print_judged(rate, series, seed):
    print(f"\n## Places and sizes ({series} series each)\n")
    row("shift", "exactly the changes", "one too many", "place covered", "size covered", "nights in the interval")
    row(*["---"] * 6)
    for number, kind in enumerate(JUDGED):
        *shares, wide = judged(kind, series, [seed, 3, number], rate)
        row(kind.name, *map(percent, shares), f"{wide:.1f}")


def main():
    parser = argparse.ArgumentParser(prog="trends.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=10_000, help="of each kind, a tenth for places (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (%(default)s)")
    rate = thresholds.RATE
    parser.add_argument("--rate", type=float, default=rate, help="of false changes to judge at (%(default)s)")
    options = parser.parse_args()
    if options.series < 100:
        parser.error(f"--series {options.series}: at least 100")
    try:
        bound = thresholds.for_rate(options.rate)
    except ValueError as error:
        parser.error(str(error))
    failed = print_steady(bound, options.series, options.seed) + print_shifted(bound, options.series, options.seed)
    print_judged(options.rate, options.series // 10, options.seed)
    for name in failed:
        print(f"\nnot held: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Change points of nightly results.

  ci/python -m trends FILE... [--json] [--rate R] [--least S] [--recent N] [--nights N] [--series PATTERN]

FILE is a history that `--history` filled, or JSON lines, one night each:
  {"series": TEXT, "time": NUMBER or TEXT, "revision": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER}
`low` and `high`, the night's 95% interval, may be absent. A larger value is slower.

Exit status: 0 nothing got slower; 1 something did; 2 bad input or usage; 4 there are no series; 5 all series have too
few nights to tell."""

import argparse
import json
import sys
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from trends import NEEDED, Series, judge_all, thresholds
from trends.judging import LEAST
from trends.read import Unreadable, read


def arguments():
    parser = argparse.ArgumentParser(
        prog="trends", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE")
    add("--json", action="store_true", help="a JSON line for each series instead of text")
    rate = thresholds.RATE
    add("--rate", type=float, default=rate, help="of steady series of 60 nights with a false change (%(default)s)")
    add("--least", type=float, default=LEAST, help="smallest change that counts, a share of the level (%(default)s)")
    add("--recent", type=int, metavar="N", help="only changes called in a series' last N nights decide the exit status")
    add("--nights", type=int, default=400, metavar="N", help="judge a series' last N nights (%(default)s)")
    add("--series", default="*", metavar="PATTERN", help="only series whose names match (* and ?)")
    options = parser.parse_args()
    try:
        thresholds.for_rate(options.rate)
    except ValueError as error:
        parser.error(f"--rate: {error}")
    if not 0 <= options.least < 10:
        parser.error(f"--least {options.least}: must be 0 to 10")
    for name, value in (("--recent", options.recent), ("--nights", options.nights)):
        if value is not None and value < 1:
            parser.error(f"{name} {value}: must be 1 or above")
    return options


def printable(text):
    """Names come from files: none may break a line or steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def percent(share):
    return f"{100 * share:+.1f}%"


def print_change(change, points):
    word = "slower" if change.size > 0 else "faster"
    chance = f"p {change.p:.2g}" if change.p > thresholds.table()[0][-1] else f"p below {change.p:.2g}"
    first = points[change.night]
    began, before, after = (
        printable(text) or "no revision" for text in (first.revision, change.revision_before, change.revision_after)
    )
    print(f"  {word} by {percent(change.size)} ({percent(change.size_low)} to {percent(change.size_high)}) from "
          f"{printable(first.time)} ({began}), {chance}")
    cause = "; the revision is the same, so something else changed" if change.same_revision else ""
    print(f"    after {before}, at the latest by {after}: nights {change.low} to "
          f"{change.high}; called in night {change.called}{cause}")


def print_trend(trend):
    name, nights = printable(trend.series.name), len(trend.series.points)
    if trend.verdict == "too few":
        print(f"{name}: {nights} of the {NEEDED} nights without which nothing can be told")
        return
    noise = f"noise {100 * trend.noise:.1f}%, lag 1 {trend.lag1:.2f}"
    print(f"{name}: {nights} nights, {trend.verdict}, now {trend.segments[-1].level:.6g}; {noise}")
    for change in trend.changes:
        print_change(change, trend.series.points)


def got_slower(trend, recent):
    first = 0 if recent is None else len(trend.series.points) - recent
    return any(change.size > 0 and change.called >= first for change in trend.changes)


def chosen(path, options):
    for series in read(path):
        if fnmatchcase(series.name, options.series):
            yield Series(series.name, series.points[-options.nights :])


def main():
    options = arguments()
    try:
        series = [one for path in options.files for one in chosen(path, options)]
    except Unreadable as error:
        print(f"trends: {error}", file=sys.stderr)
        return 2
    if not series:
        print("trends: there are no series", file=sys.stderr)
        return 4
    trends = judge_all(series, options.rate, options.least)
    for trend in trends:
        print(json.dumps(asdict(trend))) if options.json else print_trend(trend)
    if any(got_slower(trend, options.recent) for trend in trends):
        return 1
    return 5 if all(trend.verdict == "too few" for trend in trends) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes thresholds.json: the evidence that steady series of 60 nights reach by chance, re-judged every night.

  ci/python -m trends.calibrate [--series N] [--seed S] [--output FILE]

Exit status: 0 written; 2 usage, or the file cannot be written."""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

from trends import draws, evidence, judging, thresholds

RATES = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002)
CHUNK = 250  # series at a time
FLOOR, LEAST = judging.LEAST_SIGMA, float(np.log1p(judging.LEAST))


def largest(series, seed):
    """The most evidence that each steady series ever gives."""
    found = []
    for part in range(-(-series // CHUNK)):
        values, _ = draws.draw(draws.Kind("steady"), CHUNK, [seed, part])
        given = evidence.gather(values, FLOOR, LEAST)
        found.append(np.maximum(given.slower, given.faster).max(1))
    return np.concatenate(found)[:series]


def main():
    parser = argparse.ArgumentParser(prog="trends.calibrate", description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=100_000, help="to draw (%(default)s)")
    parser.add_argument("--seed", type=int, default=20_000, help="of the draws (%(default)s)")
    parser.add_argument("--output", type=Path, default=thresholds.TABLE, help="(the table in use)")
    options = parser.parse_args()
    if options.series * RATES[-1] < 2:
        parser.error(f"--series {options.series}: at least {2 / RATES[-1]:.0f} for a rate of {RATES[-1]:g}")
    made = largest(options.series, options.seed)
    stored = {
        "series": options.series,
        "nights": draws.NIGHTS,
        "seed": options.seed,
        "rates": RATES,
        "evidence": [round(float(np.quantile(made, 1 - rate)), 4) for rate in RATES],
    }
    beside = options.output.with_name(options.output.name + ".part")
    try:
        beside.write_text(json.dumps(stored, indent=1) + "\n")
        os.replace(beside, options.output)
    except OSError as error:
        print(f"trends.calibrate: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

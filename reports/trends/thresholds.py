"""How much evidence a steady series gives by chance: the table that trends.calibrate makes."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np

RATE = 0.008  # judged at where nothing else is asked for: 1% is what it must not exceed
TABLE = Path(__file__).with_name("thresholds.json")


@cache
def table():
    """Rates, falling, and the evidence that such a share of steady series of 60 nights ever reaches."""
    stored = json.loads(TABLE.read_text())
    return np.array(stored["rates"]), np.array(stored["evidence"])


def for_rate(rate):
    rates, evidence = table()
    if not rates[-1] <= rate <= rates[0]:
        raise ValueError(f"rate {rate}: must be {rates[-1]:g} to {rates[0]:g}")
    return float(np.interp(-math.log(rate), -np.log(rates), evidence))


def chance(evidence):
    """Share of steady series that reach this evidence; no less than the table's smallest rate."""
    rates, known = table()
    return float(np.exp(-np.interp(evidence, known, -np.log(rates))))

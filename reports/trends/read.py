"""Series out of JSON lines, one object a night, or out of the history that `--history` of the tool fills."""

import json
import math
import sqlite3
from datetime import datetime, timezone
from statistics import median

from trends.series import Point, Series

SQLITE = b"SQLite format 3\0"
APPLICATION = 0x44464831
VERSION = 2  # of the history's schema
ONE_NIGHT = 12 * 3600  # seconds: runs of one revision begun within are one night, and their median is its value

# What did not pass has no time that counts, what has no date no place in the order; the base side of a bench against
# another build is not of this series.
RESULTS = """
SELECT s.id, s.backend || ' ' || s.device || ' ' || s.device_name || ' ' || r.golden || ' ' || s.case_name || ' ' ||
       s.profile || ' ' || s.settings || ' ' || s.machine,
       r.time, r.revision || CASE r.dirty WHEN 'yes' THEN '+' ELSE '' END, {value}
FROM result r JOIN series s ON s.id = r.series {join}
WHERE s.kind = 'bench' AND r.outcome IN ('pass', 'near tie') AND r.side <> 'A' AND r.time > 0 AND r.time < 253402300800
ORDER BY s.id, r.time, r.id
"""
BLOCK = RESULTS.format(value="'block', r.median_ns, r.low_ns, r.high_ns", join="")
GROUPS = RESULTS.format(value="g.name, g.ns, NULL, NULL", join="JOIN group_time g ON g.result = r.id")


class Unreadable(Exception):
    """One line: which file, where, what, and what is valid."""


def read(path):
    """All series of a file, each in order of time."""
    try:
        with open(path, "rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                return read_history(path)
        with open(path, encoding="utf-8") as file:
            return read_lines(path, file)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: neither JSON lines in UTF-8 nor a history") from None


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _point(entry):
    """A point, and the time to sort by. ValueError says what is wrong."""
    if not isinstance(entry, dict) or not isinstance(entry.get("series"), str):
        raise ValueError("must be an object with a text 'series'")
    time, revision = entry.get("time"), entry.get("revision", "")
    if not (isinstance(time, str) or _number(time)):
        raise ValueError("'time' must be a number or a text that sorts, as 2026-05-30T02:00:00Z does")
    if not isinstance(revision, str):
        raise ValueError("'revision' must be a text")
    if not _number(entry.get("value")) or entry["value"] <= 0:
        raise ValueError("'value' must be a number above 0")
    sides = entry.get("low"), entry.get("high")
    if sides != (None, None) and not (all(map(_number, sides)) and 0 <= sides[0] <= sides[1]):
        raise ValueError("'low' and 'high' must be two numbers, low <= high, or both absent")
    return time, Point(str(time), revision, float(entry["value"]), *sides)


def read_lines(path, lines):
    nights = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            time, point = _point(entry)
        except (ValueError, RecursionError, OverflowError) as error:
            what = "no JSON" if isinstance(error, (json.JSONDecodeError, RecursionError)) else error
            raise Unreadable(f"{path}:{number}: {what}") from None
        nights.setdefault(entry["series"], []).append((time, point))
    return [Series(name, _in_order(path, name, timed)) for name, timed in nights.items()]


def _in_order(path, name, timed):
    try:
        return tuple(point for _, point in sorted(timed, key=lambda one: one[0]))
    except TypeError:
        raise Unreadable(f"{path}: series '{name}' has times that are numbers and times that are texts") from None


def read_history(path):
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            _check(path, database)
            rows = [*database.execute(BLOCK), *database.execute(GROUPS)]
        finally:
            database.close()
    except sqlite3.Error as error:
        raise Unreadable(f"{path}: {error}") from None
    results = {}
    for series, name, time, revision, group, *values in rows:
        if not isinstance(time, int) or not _number(values[0]) or values[0] <= 0:
            continue
        results.setdefault((series, group, " ".join(f"{name} {group}".split())), []).append((time, revision, *values))
    return [Series(name, tuple(_nights(found))) for (_, _, name), found in results.items()]


def _check(path, database):
    (application,), (version,) = (
        database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise Unreadable(f"{path}: a SQLite file, but no history")
    if version < VERSION:
        raise Unreadable(f"{path}: history of version {version}; 'dflash-harness history list' brings it to {VERSION}")
    if version > VERSION:
        raise Unreadable(f"{path}: history of version {version}; this program reads {VERSION}")


def _nights(results):
    """One point a night: the medians of its results."""
    night = []
    for result in results:
        if night and (result[1] != night[0][1] or result[0] - night[0][0] > ONE_NIGHT):
            yield _one_night(night)
            night = []
        night.append(result)
    yield _one_night(night)


def _one_night(night):
    time, revision = night[0][:2]
    value, low, high = (median(found) if (found := [r[i] for r in night if _number(r[i])]) else None for i in (2, 3, 4))
    date = datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Point(date, str(revision or ""), value, low, high)

"""The history of runs, one SQLite file (docs/history.md): the newest night in full, and what nights took.

Of each night the run with the middle median is read, so that a page costs little more after years."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from . import fields, pack
from .problem import NOTHING, Problem
from .results import Assembly
from .trends import Night, Trends, prepare

APPLICATION, VERSION = 0x44464831, 2
NIGHTS = 400  # that a trend goes back
NEWEST_S = 36 * 3600  # the newest night: what ran so long before the last run
RESULTS = 600  # of the newest night that are shown

# A night is what one build ran from noon to noon; the base side of a bench against another build is not of the series.
TIMED = """
SELECT id, series, (time + 43200) / 86400, CAST(revision AS BLOB), dirty = 'yes', median_ns FROM result
WHERE median_ns > 0 AND median_ns < 1e18 AND outcome IN ('pass', 'near tie') AND side <> 'A' AND time > ?
"""
SHOWN = """
SELECT id, series, time, revision || CASE dirty WHEN 'yes' THEN '+' ELSE '' END, median_ns, low_ns, high_ns FROM result
WHERE id = ?
"""
GROUPS = "SELECT name, ns FROM group_time WHERE result = ? AND ns > 0 AND ns < 1e18 ORDER BY name"
SERIES = """
SELECT series.id, backend, device, profile, case_name, settings, machine,
       (SELECT golden FROM result WHERE result.series = series.id ORDER BY time DESC LIMIT 1)
FROM series
"""
NEWEST = """
SELECT id, run, time FROM (
  SELECT id, run, number, time, row_number() OVER (PARTITION BY series ORDER BY time DESC, id DESC) AS place
  FROM result WHERE time > ?) WHERE place = 1 ORDER BY run, number LIMIT ?
"""


@dataclass(frozen=True)
class Place:
    """What a series is of."""

    golden: str
    case: str
    backend: str
    device: str
    profile: str
    settings: str
    machine: str


def _open(path):
    base = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=30)
    base.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return base


def _quoted(path):
    return str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _check(base, path):
    application, = base.execute("PRAGMA application_id").fetchone()
    version, = base.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise Problem(f"{path}: is an SQLite file, but no history")
    if 0 < version < VERSION:
        raise Problem(f"{path}: has version {version} of the history; 'dflash-harness history list' brings it to {VERSION}")
    if version != VERSION:
        raise Problem(f"{path}: has version {version} of the history; this reads {VERSION}")


def _places(base):
    clean = fields.clean
    return {row[0]: Place(clean(str(row[7] or "?")).removesuffix(".h5"), *(clean(str(row[i])) for i in (4, 1, 2, 3, 5, 6)))
            for row in base.execute(SERIES)}


def _middle(base, since):
    """(result, runs) of every night: its run with the middle median, and how many it had. Sorting here takes half of the
    time of SQL's windows."""
    nights = {}
    for result, *night, ns in base.execute(TIMED, (since,)):
        nights.setdefault(tuple(night), []).append((ns, result))
    for runs in nights.values():
        runs.sort()
        yield runs[(len(runs) - 1) // 2][1], len(runs)


def _nights(base, last):
    """{series: [Night]}, each with its groups."""
    rows = [(*base.execute(SHOWN, (result,)).fetchone(), runs) for result, runs in _middle(base, last - NIGHTS * 86400)]
    found = {}
    for row in sorted(rows, key=lambda row: (row[1], row[2], row[0])):
        groups = {fields.clean(str(name)): float(ns) for name, ns in base.execute(GROUPS, (row[0],))}
        night = Night(row[2], fields.clean(str(row[3])), float(row[4]), _number(row[5]), _number(row[6]), row[7], groups)
        found.setdefault(row[1], []).append(night)
    return found


def _number(value):
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e18 else None


def _records(blob, path):
    try:
        return [record for record in map(fields.record, pack.unpack(blob)) if record]
    except Problem as problem:
        raise Problem(f"{path}: {problem}") from None


def _newest(base, path, results, last):
    rows = base.execute(NEWEST, (last - NEWEST_S, RESULTS + 1)).fetchall()
    if len(rows) > RESULTS:
        results.notes.append(f"the newest night has more than {RESULTS} results; the others are left out")
    assembly, run = None, None
    for identity, of_run, _ in rows[:RESULTS]:
        if of_run != run:
            head = base.execute("SELECT head FROM run WHERE id = ?", (of_run,)).fetchone()
            assembly, run = Assembly(results, path.name), of_run
            for record in _records(head[0], path) if head else []:
                assembly.take(record)
        blob = base.execute("SELECT pack FROM records WHERE result = ?", (identity,)).fetchone()
        for record in _records(blob[0], path) if blob else []:
            assembly.take(record)


def _missed(base, results, last):
    missed = base.execute("SELECT count(*) FROM (SELECT max(time) AS newest FROM result WHERE time > ? GROUP BY series) "
                          "WHERE newest <= ?", (last - 30 * 86400, last - NEWEST_S)).fetchone()[0]
    if missed:
        results.notes.append(f"{missed} series of the history ran within 30 days, but not in the newest night")


def read(path, results, newest):
    """Adds the trends, and with `newest` the newest night's results. Raises Problem."""
    prepare()
    try:
        with closing(_open(path)) as base:
            _check(base, path)
            last = base.execute("SELECT max(time) FROM result WHERE time < 253402300800").fetchone()[0]
            if last is None:
                raise Problem(f"{path}: the history holds no results", NOTHING)
            results.trends = Trends.of(_places(base), _nights(base, last))
            if newest:
                _newest(base, path, results, last)
            _missed(base, results, last)
    except sqlite3.Error as error:
        raise Problem(f"{path}: cannot be read: {fields.clean(str(error), 200)}") from None
    except (TypeError, ValueError) as error:
        raise Problem(f"{path}: holds a value of another kind than documented: {fields.clean(str(error), 200)}") from None

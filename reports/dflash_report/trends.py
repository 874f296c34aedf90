"""Nights of what a history holds, as series with their change points."""

import importlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from threading import Thread

from . import text
from .timing import ORDER

WHOLE = "block"
FIGURED = 3  # subjects that the figure shows
RECENT = 14  # nights within which a change is news


@dataclass(frozen=True)
class Night:
    time: int
    revision: str
    ns: float
    low: float | None
    high: float | None
    runs: int
    groups: dict

    @cached_property
    def date(self):
        return day(self.time)


def day(seconds):
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return "?"


@dataclass
class Line:
    """The block or a group over nights, with its verdict."""

    name: str
    nights: list
    values: list  # ns, one a night
    trend: object = None

    @property
    def changes(self):
        return self.trend.changes


@dataclass
class Subject:
    place: object
    nights: list
    block: Line
    groups: list = field(default_factory=list)

    @property
    def label(self):
        place = self.place
        extra = [part for part in (place.profile if place.profile != "exact" else "", place.settings) if part]
        return f"{place.golden} / {place.case}: {place.backend} on {place.device or '?'}" + (
            f" ({', '.join(extra)})" if extra else "")

    @property
    def lines(self):
        return [self.block, *self.groups]

    @property
    def changes(self):
        """(line, change), the newest first."""
        found = [(line, change) for line in self.lines for change in line.changes]
        return sorted(found, key=lambda entry: -entry[1].night)


def prepare():
    """Begins to import what judges: it takes as long as the queries, which do not need the interpreter."""
    Thread(target=_import, daemon=True).start()


def _import():
    try:
        importlib.import_module("trends")
    except ImportError:
        pass  # told where it is needed


def _judged(lines):
    """The verdict of each of (line, where it is from)."""
    from trends import Point, Series, judge_all  # late: results alone do without

    def series(line, where):
        whole = line.name == WHOLE
        return Series(f"{where}: {line.name}", tuple(
            Point(night.date, night.revision, value, *((night.low, night.high) if whole else ()))
            for night, value in zip(line.nights, line.values)))

    return judge_all([series(line, where) for line, where in lines])


def _subject(place, nights):
    subject = Subject(place, nights, Line(WHOLE, nights, [night.ns for night in nights]))
    names = {name for night in nights for name in night.groups}
    for name in sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)):
        those = [night for night in nights if name in night.groups]
        subject.groups.append(Line(name, those, [night.groups[name] for night in those]))
    return subject


@dataclass
class Trends:
    subjects: list

    @staticmethod
    def of(places, nights):
        """Places and nights by series. Change points are looked for in the block and in its groups alike."""
        subjects = [_subject(places[series], those) for series, those in nights.items() if series in places]
        lines = [(line, subject.label) for subject in subjects for line in subject.lines]
        for (line, _), trend in zip(lines, _judged(lines)):
            line.trend = trend
        subjects.sort(key=lambda subject: (-len(subject.block.changes), -len(subject.changes), subject.label))
        return Trends(subjects)

    def drawn(self):
        """What a figure shows of it."""
        return Trends([replace(subject, groups=[]) for subject in self.subjects if subject.nights][:FIGURED])

    def recent(self):
        """(subject, line, change) of blocks that changed within the last nights."""
        return [(subject, subject.block, change) for subject in self.subjects for change in subject.block.changes
                if change.called >= len(subject.nights) - RECENT]

    def slower(self):
        return [tell(subject, line, change) for subject, line, change in self.recent() if change.size > 0]

    def facts(self):
        nights = [night for subject in self.subjects for night in subject.nights]
        if not nights:
            return "a history without times"
        return (f"history from {min(nights, key=lambda n: n.time).date} to {max(nights, key=lambda n: n.time).date}, "
                f"{text.count(sum(night.runs for night in nights))} timed runs of {len(self.subjects)} series")

    def line(self):
        nights = max((len(subject.nights) for subject in self.subjects), default=0)
        changes = sum(len(subject.block.changes) for subject in self.subjects)
        return (f"no block became slower in the last {RECENT} nights; {len(self.subjects)} series over "
                f"up to {text.plural(nights, 'night')}, {text.plural(changes, 'change')} of blocks in all")


def size(change):
    """+12.0%"""
    return ("+" if change.size > 0 else "") + text.share(change.size)


def tell(subject, line, change):
    what = "block" if line.name == WHOLE else line.name
    since = line.nights[change.night].date
    revisions = (f"same revision {change.revision_after[:10]}: the machine changed, not the code" if change.same_revision
                 else f"after {change.revision_before[:10]}, by {change.revision_after[:10]}")
    return (f"{what} of {subject.label} {size(change)} ({text.share(change.size_low)} to "
            f"{text.share(change.size_high)}) since {since}, {revisions}")

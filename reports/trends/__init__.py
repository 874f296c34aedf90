"""Change points of nightly results: when did a level change, by how much, between which revisions (docs/trends.md)."""

from trends.evidence import NEEDED
from trends.judging import judge, judge_all
from trends.series import Change, Point, Segment, Series, Trend

__all__ = ["NEEDED", "Change", "Point", "Segment", "Series", "Trend", "judge", "judge_all"]

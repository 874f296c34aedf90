"""Scores of sweeps, as `ci/calibrate` collects them.

A slice is one sweep: NAME.scores.jsonl has a line a draw, mode and kind of stage, NAME.draws.jsonl a record a draw
(docs/records.md); both may be gzipped. A stage that failed has no line, so what it needed comes from the draw's
record.
"""

import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "harness/compare/compare.h"
LAMBDA = float(re.search(r"#define DFLASH_LAMBDA ([\d.]+)", HEADER.read_text())[1])  # what scores were divided by
SUFFIXES = (".scores.jsonl", ".scores.jsonl.gz")


@dataclass
class Draw:
    """One drawn golden in one slice."""

    slice: str
    profile: str
    seed: int
    number: int
    needed: dict = field(default_factory=dict)  # (mode, stage) -> the lambda that score 1 would take
    elements: dict = field(default_factory=dict)  # (mode, stage) -> elements compared
    score: float = 0.0  # the largest of what passed
    failure: dict | None = None  # `first` of the draw's record
    message: str = ""


class Unreadable(Exception):
    """A file is no file of JSON lines; the message names it and the line."""


def read_lines(path):
    """Objects of a file of JSON lines. Raises Unreadable."""
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield json.loads(line)
    except (OSError, EOFError, ValueError) as error:
        raise Unreadable(f"{path}, line {number}: {error}") from error


def slice_name(path):
    return path.name[: path.name.index(".scores.jsonl")]


def find(places):
    """The score files among files and folders, sorted."""
    found = []
    for place in map(Path, places):
        inside = sorted(place.iterdir()) if place.is_dir() else [place]
        found += [path for path in inside if path.name.endswith(SUFFIXES)]
    return found


def _take_records(path, draws):
    """Failures. A score above 1 is at most the lambda it needed, in units of the one that it was judged by."""
    for record in read_lines(path):
        draw = draws.get(record.get("draw")) if record["type"] == "draw" else None
        if draw is None or "first" not in record:
            continue
        draw.failure, draw.message = record["first"], record.get("message", "")
        where = draw.failure["mode"], draw.failure["stage"]
        score = float(draw.failure["score"])
        if "." in draw.failure["stage"] and draw.failure["outcome"] == "mismatch" and score != float("inf"):
            draw.needed[where] = max(draw.needed.get(where, 0.0), score * LAMBDA)
            draw.elements.setdefault(where, 1)


def read(path):
    """The draws of one slice."""
    draws = {}
    for line in read_lines(path):
        number = line["draw"]
        draw = draws.setdefault(number, Draw(slice_name(path), line["profile"], line["seed"], number))
        draw.needed[line["mode"], line["stage"]] = line["lambda"]
        draw.elements[line["mode"], line["stage"]] = line["elements"]
        draw.score = max(draw.score, line["score"])
    records = path.with_name(path.name.replace(".scores.", ".draws."))
    if records.exists():
        _take_records(records, draws)
    return list(draws.values())

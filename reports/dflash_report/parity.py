"""Scores of stages by layer, for the heat maps: the worst verdict of each stage, layer and mode over cases."""

from dataclasses import dataclass, field

from . import text
from .results import BROKEN, FAILED, PASSED, SKIPPED, outcome_class

MODES = ("alone", "chain", "local")
SIGNS = {"near tie": "≈", "covered": "cov", "not trusted": "n/t", "not run": "–", "unsupported": "uns",
         "unavailable": "n/a", "error": "err", "crashed": "crash", "hung": "hung", "nonfinite": "NaN",
         "unwritten": "unwr", "overrun": "over", "unrepeatable": "rep"}
# Checks of the block as a whole, which stand in one line under the stages (docs/parity.md).
LAWS = {"linear", "repeat", "sequences", "sequence", "uncaptured", "pushes", "rewind", "rounds", "let-go", "cut",
        "load", "together", "context", "block"}
HIGH = 0.7  # what correct backends stay below (docs/parity.md)


@dataclass
class Grid:
    """Worst verdicts by (stage, layer, mode), each with its case; order of stages as the records have them."""

    stages: list = field(default_factory=list)
    modes: list = field(default_factory=list)
    layers: int = 0
    worst: dict = field(default_factory=dict)  # (stage, layer, mode) -> (verdict, case)

    def layered(self, stage):
        return any((stage, layer, mode) in self.worst for layer in range(self.layers) for mode in self.modes)

    def once(self, stage):
        return any((stage, None, mode) in self.worst for mode in self.modes)


def merge_order(into, stages):
    """Adds what is missing behind what stands before it, so that the order of data flow stays."""
    at = 0
    for stage in stages:
        if stage in into:
            at = into.index(stage) + 1
        else:
            into.insert(at, stage)
            at += 1


def grid(cases):
    found = Grid()
    for case in cases:
        merge_order(found.stages, list(dict.fromkeys(v.stage for v in case.verdicts)))
        for verdict in case.verdicts:
            key = verdict.stage, verdict.layer, verdict.mode
            if key not in found.worst or found.worst[key][0].rank < verdict.rank:
                found.worst[key] = verdict, case
    modes = dict.fromkeys(mode for _, _, mode in found.worst)
    found.modes = [m for m in MODES if m in modes] + [m for m in modes if m not in MODES]
    found.layers = 1 + max((layer for _, layer, _ in found.worst if layer is not None), default=-1)
    return found


def kind(verdict):
    """The cell's class: s0 to s9 for a passing score, high from 0.7 on, else how the outcome counts."""
    how = outcome_class(verdict.outcome)
    if how in (FAILED, BROKEN):
        return "fail"
    if how == SKIPPED:
        return "skip"
    if not text.known(verdict.score):
        return "s0"
    return "high" if verdict.score >= HIGH else f"s{int(max(0, verdict.score) / HIGH * 10)}"


def sign(verdict):
    """What a cell shows: a passing or failing score, or the outcome in short."""
    if outcome_class(verdict.outcome) == PASSED and verdict.outcome != "near tie":
        return text.score(verdict.score).removeprefix("0") if text.known(verdict.score) else "✓"
    if verdict.outcome == "mismatch" and text.known(verdict.score):
        return f"✕{text.score(verdict.score)}"
    return SIGNS.get(verdict.outcome, f"✕{verdict.outcome[:4]}")


def tell(verdict, case=None):
    """One line about a verdict, for its cell."""
    record = verdict.record
    parts = [f"{verdict.label}, {verdict.mode}: {verdict.outcome}"]
    if text.known(verdict.score):
        parts.append(f"score {text.digits(verdict.score, 3)}")
    if record.get("place") and text.known(record.get("got")) and text.known(record.get("expected")):
        parts.append(f"{record['place']}: {record['got']:.6g} for {record['expected']:.6g}")
    if record.get("bad"):
        parts.append(f"{text.count(record['bad'])} of {text.count(record.get('elements'))} elements off")
    for name, before in (("pattern", ""), ("covered_by", "covered by "), ("note", "")):
        if record.get(name):
            parts.append(before + record[name])
    if record.get("inherited"):
        parts.append("inherited")
    return "; ".join(parts) + (f" [{case.label}]" if case else "")

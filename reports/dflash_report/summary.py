"""The verdict in one line, and the table that says it for each golden and backend."""

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath

from . import text
from .results import BROKEN, FAILED, PASSED, outcome_class, wrong


@dataclass(frozen=True)
class Verdict:
    kind: str  # right, wrong, unsure, slower, nothing
    word: str
    line: str
    more: str


def ports(results):
    return list(dict.fromkeys(case.port for case in results.cases))


def _first_label(case):
    first = case.record.get("first", {})
    stage = first.get("stage")
    if not stage:
        return ""
    layer = first.get("layer")
    return stage + (f"/{layer:.0f}" if text.known(layer) else "")


def where(case):
    label = _first_label(case)
    return f"{case.port.label} on {case.label}" + (f", first at {label}" if label else "")


def _largest(results):
    """The largest score of what passed, with the verdict when it is there."""
    found = max(((v.score, v, case) for case in results.cases for v in case.verdicts
                 if outcome_class(v.outcome) == PASSED and text.known(v.score)), key=lambda f: f[0], default=None)
    scores = [record.get("largest_score") for record in [c.record for c in results.cases] + results.draws]
    return found, max((score for score in scores if text.known(score)), default=None)


def _counts(results):
    parts = []
    verdicts = sum(int(case.record.get(key) or 0) for case in results.cases for key in ("passed", "failed", "other")
                   if not case.bench and text.known(case.record.get(key)))
    if verdicts:
        parts.append(text.plural(verdicts, "verdict"))
    found, largest = _largest(results)
    if largest is not None:
        at = f" ({found[1].label}, {found[2].port.label})" if found and found[0] == largest else ""
        parts.append(f"largest passing score {text.score(largest)} of 1{at}")
    for case in sorted(results.timed, key=lambda case: -(case.bench["block"].get("bytes") or 0))[:1]:
        best = min((c for c in results.timed if c.subject[:2] == case.subject[:2]), key=device)
        parts.append(f"fastest block on {best.label}: {best.port.label}, {text.time(device(best))}")
    return "; ".join(parts)


def device(case):
    return case.bench["block"]["device"]["median"]


def _wrong(results, failed):
    if failed:
        more = failed[0].record.get("message", "")
        line = f"{text.plural(len(failed), 'case')} of {len(results.cases)} failed: {failed[0].outcome} in " + where(
            failed[0])
        return Verdict("wrong", "Wrong", line, more)
    draws = [draw for draw in results.draws if wrong(draw["outcome"])]
    if draws:
        return Verdict("wrong", "Wrong", f"{text.plural(len(draws), 'draw')} of {len(results.draws)} failed",
                       draws[0].get("message", ""))
    missed = [d for d in results.defects if not d.get("hidden") and d.get("found") is not None and
              bool(d["found"]) == (bool(d.get("lawful")) or not d.get("defect"))]
    if missed:
        return Verdict("wrong", "Wrong", f"the gate misjudged {text.plural(len(missed), 'trial')} of its self test",
                       missed[0].get("defect", ""))
    gates = _gate(results, 1)
    if gates and not results.bad:
        findings = gates[0].get("findings", [])
        bad = [finding for finding in findings if finding.get("verdict") == "failed"]
        line = f"the gate fails: {len(bad)} of {text.plural(len(findings), 'finding')}"
        return Verdict("wrong", "Wrong", line, (bad[0] if bad else gates[0]).get("message", ""))
    bad = results.bad[0]
    return Verdict("wrong", "Incomplete", f"{text.plural(len(results.bad), 'input')} could not be read",
                   f"{bad.get('file', '')} {bad.get('message', '')}".strip())


def _unsure(results):
    """(what, why) of what says neither yes nor no though it ran, or whose time is not believed."""
    found = [(f"{case.outcome}: {where(case)}", case.record.get("message") or (case.bench or {}).get("implausible", ""))
             for case in results.cases if case.outcome == "not trusted" or case.bench and case.bench.get("implausible")]
    found += [(told(c), c.get("message", "")) for c in results.comparisons if c["verdict"] == "cannot tell"]
    return found + [("the gate", gate.get("message", "")) for gate in _gate(results, 5)]


def told(comparison):
    """"blas beside reference on tiny-f32.h5 / main"."""
    a, b = (comparison.get(key, "?") for key in ("backend", "backend_b"))
    sides = b if a == b else f"{b} beside {a}"
    golden = PurePath(comparison.get("file") or comparison.get("golden", "?").split(",")[0]).name
    return f"{sides} on {text.short(golden)} / {comparison.get('case', '?')}"


def _slower(results):
    """What became slower: by comparisons of two sides, then by the trends."""
    compared = [f"{told(c)}: {c.get('message', '').removeprefix('slower: ')}" for c in results.comparisons if c["verdict"] == "slower"]
    return compared + (results.trends.slower() if results.trends else [])


def _for_time(gate):
    """Whether that is all that the gate fails for; then what is slower says more."""
    return all(f.get("kind") == "time" for f in gate.get("findings", []) if f.get("verdict") == "failed")


def _gate(results, status):
    """The gates that ended so."""
    return [gate for gate in results.gates if gate["exit"] == status]


def verdict(results):
    failed = [case for case in results.cases if wrong(case.outcome)]
    slower = _slower(results)
    gates = [gate for gate in _gate(results, 1) if not slower or not _for_time(gate)]
    if failed or results.bad or gates or any(wrong(d["outcome"]) for d in results.draws) or _misjudged(results):
        return _wrong(results, failed)
    if slower:
        return Verdict("slower", "Slower", slower[0], "; ".join(slower[1:4]))
    unsure = _unsure(results)
    if unsure:
        return Verdict("unsure", "Cannot tell", *unsure[0])
    passed = sum(outcome_class(case.outcome) == PASSED for case in results.cases)
    passed += sum(outcome_class(draw["outcome"]) == PASSED for draw in results.draws)
    total = len(results.cases) + len(results.draws)
    if not total and (results.comparisons or results.gates):
        same = text.plural(len(results.comparisons), "comparison")
        return Verdict("right", "Right", results.gates[0].get("message", "") if results.gates else f"nothing is slower in {same}", "")
    if not passed and not results.defects:
        if results.trends and not results.cases:
            return Verdict("right", "Steady", results.trends.line(), "")
        return Verdict("nothing", "Nothing ran", f"none of {text.plural(total, 'case')} was judged",
                       next((case.record.get("message", "") for case in results.cases), ""))
    return Verdict("right", "Right", _right(results, passed, total), _counts(results))


def _misjudged(results):
    return any(not d.get("hidden") and d.get("found") is not None and
               bool(d["found"]) == (bool(d.get("lawful")) or not d.get("defect")) for d in results.defects)


def _right(results, passed, total):
    if not total:
        return f"every one of {text.plural(len(results.defects), 'trial')} of the self test was judged as it should be"
    skipped = total - passed
    backends = len({port.backend for port in ports(results)})
    line = "the case passes" if total == passed == 1 else f"all {text.plural(passed, 'case')} pass" if not skipped else f"{passed} of {text.plural(total, 'case')} pass"
    if backends:
        line += f" on {text.plural(backends, 'backend')}"
    return line + (f", {skipped} not judged" if skipped else "")


@dataclass
class Cell:
    """A golden on a backend."""

    cases: list

    @property
    def outcome(self):
        """The worst; what was not judged counts only where nothing was."""
        order = {FAILED: 3, BROKEN: 2, PASSED: 1}
        return max((c.outcome for c in self.cases), key=lambda o: (order.get(outcome_class(o), 0), o != "pass"))

    @property
    def largest(self):
        scores = [c.record.get("largest_score") for c in self.cases if text.known(c.record.get("largest_score"))]
        return max(scores, default=None)

    @property
    def judged(self):
        """Names of cases that were judged, and of those that passed in every run."""
        outcomes = {}
        for case in self.cases:
            outcomes.setdefault(case.name, []).append(outcome_class(case.outcome))
        return len(outcomes), sum(all(kind == PASSED for kind in kinds) for kinds in outcomes.values())


def matrix(results):
    """{(golden's file, port): Cell}, files and ports in order of appearance."""
    cells = {}
    for case in results.cases:
        cells.setdefault((case.file, case.port), Cell([])).cases.append(case)
    files = list(dict.fromkeys(case.file for case in results.cases))
    return files, ports(results), cells


def outcomes(results):
    """How many verdicts have which outcome."""
    return Counter(v.outcome for case in results.cases for v in case.verdicts)

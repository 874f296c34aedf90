"""What was run, put together from records: runs, and cases with their verdicts and times."""

from dataclasses import dataclass, field
from pathlib import PurePath

from .problem import NOTHING, Problem
from .text import is_time, known, short

PASSED, SKIPPED, FAILED, BROKEN = "passed", "skipped", "failed", "broken"
CLASSES = {name: PASSED for name in ("pass", "near tie")}
CLASSES |= {name: SKIPPED for name in ("covered", "not trusted", "not run", "unsupported", "unavailable")}
CLASSES |= {name: BROKEN for name in ("error", "crashed", "hung")}


def outcome_class(name):
    """An outcome that is not known is a failure."""
    return CLASSES.get(name, FAILED)


def wrong(name):
    return outcome_class(name) in (FAILED, BROKEN)


@dataclass(frozen=True, order=True)
class Port:
    """What was judged: a backend as it was asked for."""

    backend: str
    device: str
    profile: str
    options: str = ""

    @property
    def label(self):
        extra = [part for part in (self.profile if self.profile != "exact" else "", self.options) if part]
        return short(self.backend + (f" ({', '.join(extra)})" if extra else ""))

    @property
    def full(self):
        return f"{self.backend} on {self.device or '?'}, profile {self.profile or '?'}" + (
            f", {self.options}" if self.options else "")


@dataclass(frozen=True)
class Verdict:
    mode: str
    stage: str
    layer: int | None
    outcome: str
    score: float | None
    record: dict

    @property
    def label(self):
        return self.stage if self.layer is None else f"{self.stage}/{self.layer}"

    @property
    def rank(self):
        """Larger is worse; what was skipped says least."""
        kind = outcome_class(self.outcome)
        value = self.score if known(self.score) else float("inf")
        return {SKIPPED: 0, PASSED: 1, BROKEN: 2, FAILED: 3}[kind], value if kind != SKIPPED else 0


@dataclass
class Run:
    source: str
    command: str = ""
    tool: str = ""
    environment: dict = field(default_factory=dict)

    @property
    def time(self):
        return str(self.environment.get("time", ""))


@dataclass
class Case:
    run: Run
    file: str
    name: str
    port: Port
    record: dict
    model: dict
    verdicts: list
    bench: dict | None = None
    untimed: str = ""  # why a measured time is not shown

    @property
    def golden(self):
        return short(PurePath(self.file).name.removesuffix(".h5") or "?")

    @property
    def label(self):
        return f"{self.golden} / {short(self.name)}" if self.name else self.golden

    @property
    def outcome(self):
        return self.record["outcome"]

    @property
    def subject(self):
        return self.file, self.name, self.port

    @property
    def build(self):
        """The backend's shared object, where the settings tell it."""
        words = str(self.record.get("settings", "")).split()
        return next((word for word in words if word.startswith("backend_file=")), "")


@dataclass
class Results:
    runs: list = field(default_factory=list)
    cases: list = field(default_factory=list)
    draws: list = field(default_factory=list)
    defects: list = field(default_factory=list)
    bad: list = field(default_factory=list)
    comparisons: list = field(default_factory=list)
    gates: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    trends: object = None

    @property
    def timed(self):
        """The newest case of each subject that has a time, in order of appearance."""
        newest = {}
        for case in self.cases:
            if case.bench and not case.untimed:
                kind = (*case.subject, case.bench.get("what"), case.bench.get("cold"))
                if kind not in newest or newest[kind].run.time <= case.run.time:
                    newest[kind] = case
        return list(newest.values())


def _compared(record):
    """What two records of one comparison have in common."""
    block = record.get("block", {})
    return tuple(record.get(key) for key in ("case", "what", "profile", "golden", "caches", "backend", "backend_b", "device",
                                             "machine", "a_count", "b_count")) + (block.get("a_ns"), block.get("b_ns"))


def _verdict(record):
    return Verdict(record["mode"], record["stage"], record.get("layer"), record["outcome"], record.get("score"), record)


def _options(model):
    return ", ".join(f"{key}={value}" for key, value in model.get("options", {}).items())


class Assembly:
    """Takes records of one file in order; a case is complete with its `case` record."""

    def __init__(self, results, source):
        self.results, self.source = results, source
        self.run, self.model, self.verdicts, self.bench = Run(source), {}, [], None

    def take(self, record):
        take = getattr(self, "_" + record["type"], None)
        if take:
            take(record)

    def _run(self, record):
        self.run = Run(self.source, record.get("command", ""), record.get("tool", ""), record.get("environment", {}))
        self.results.runs.append(self.run)
        self.model, self.verdicts, self.bench = {}, [], None

    def _model(self, record):
        self.model = record

    def _verdict(self, record):
        self.verdicts.append(_verdict(record))

    def _bench(self, record):
        self.bench = record

    def _case(self, record):
        side = f"side {self.bench['side']}" if self.bench and self.bench.get("side") else ""
        options = ", ".join(part for part in (_options(self.model), side) if part)
        port = Port(record.get("backend", "?"), record.get("device", ""), record.get("profile", ""), options)
        case = Case(self.run, record.get("file", ""), record.get("case", ""), port, record, self.model, self.verdicts,
                    self.bench)
        self.results.cases.append(case)
        self.verdicts, self.bench = [], None

    def _draw(self, record):
        self.results.draws.append(record)

    def _defect(self, record):
        self.results.defects.append(record)

    def _bad_input(self, record):
        self.results.bad.append(record)

    def _comparison(self, record):
        """A gate tells again what `bench --against` told of the same processes: by the gate's rule, which counts."""
        known = self.results.comparisons
        known[:] = [one for one in known if _compared(one) != _compared(record)] + [record]

    def _gate(self, record):
        self.results.gates.append(record)


def _untimed(case, failed):
    parity = case.bench.get("parity", {}).get("outcome", "not judged")
    if outcome_class(parity) != PASSED:
        return f"parity: {parity}"
    if case.bench.get("implausible"):
        return f"not plausible: {case.bench['implausible']}"
    if wrong(case.outcome):
        return case.outcome
    if any(subject == case.subject and ("" in (build, case.build) or build == case.build) for subject, build in failed):
        return "the same backend fails verify"
    device = case.bench["block"].get("device", {}).get("median")
    return "" if is_time(device) else "no time was measured"


def finish(results):
    """What failed parity gets no time; nothing at all is an error."""
    failed = {(case.subject, case.build) for case in results.cases if wrong(case.outcome)}
    for case in results.cases:
        if case.bench:
            case.untimed = _untimed(case, failed)
    if not any((results.cases, results.draws, results.defects, results.bad, results.comparisons, results.gates,
                results.trends)):
        raise Problem("the files hold no results", NOTHING)
    return results

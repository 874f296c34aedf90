"""Tables to sort and to filter: backends side by side, every timed stage and block, cases, verdicts."""

from . import parity, summary, text, timing
from .html import el
from .results import wrong
from .table import ROWS, Column, table
from .view_time import title



def _time(ns):
    return (text.time(ns), ns) if text.is_time(ns) else None


def _stage_label(stage):
    layer = stage.get("layer")
    return stage.get("stage", "?") + (f"/{layer}" if layer is not None else "")


def _side_by_side(key, cases):
    """One row a stage and layer, one column a backend, and how many times as long as the fastest the slowest takes."""
    medians = [{_stage_label(s): s.get("time", {}).get("median") for s in case.bench.get("stages", [])}
               for case in cases]
    rows = [["block"] + [case.bench["block"]["device"]["median"] for case in cases]]
    for name in dict.fromkeys(name for one in medians for name in one):
        rows.append([name] + [one.get(name) for one in medians])
    for row in rows:
        times = [ns for ns in row[1:] if text.is_time(ns)]
        best = min(times, default=None)
        ratio = max(times) / best if len(times) > 1 else None
        cells = [(text.time(ns), ns, "best" if ns == best and len(times) > 1 else None) if text.is_time(ns) else None
                 for ns in row[1:]]
        yield [row[0], *cells, (f"{ratio:.2f}", ratio) if ratio else None]


def side_by_side(results):
    parts = []
    for key, cases in timing.largest_first(results.timed):
        if len(cases) > 1:
            columns = [Column("stage")] + [Column(case.port.label, True) for case in cases]
            columns.append(Column("slowest / fastest", True))
            parts.append(table(columns, list(_side_by_side(key, cases)), f"Backends side by side: {title(key, cases)}"))
    return parts


def _stage_row(case, stage, block):
    time = stage.get("time", {})
    ns = time.get("median")
    share = stage.get("share")
    mark = ("high" if text.known(share) and share > 1 else None)
    return [_stage_label(stage), case.port.label, case.label, stage.get("group", ""), _time(ns),
            (text.share(time.get("half_width")), time.get("half_width")),
            (text.share(ns / block), ns / block) if text.is_time(ns) else None,
            (text.bandwidth(stage.get("bandwidth")), stage.get("bandwidth")),
            (text.operations(stage.get("rate")), stage.get("rate")), (text.share(share), share, mark),
            stage.get("bound", ""), (text.share(stage.get("library_share")), stage.get("library_share")),
            stage.get("path", "")]


def stages(results):
    rows = [_stage_row(case, stage, case.bench["block"]["device"]["median"]) for case in results.timed
            for stage in case.bench.get("stages", [])]
    columns = [Column("stage"), Column("backend", filter=True), Column("golden", filter=True),
               Column("group", filter=True), Column("median", True), Column("95% interval", True), Column("of block", True),
               Column("bandwidth", True), Column("rate", True), Column("of roofline", True), Column("bound"),
               Column("library", True, about="the vendor library's best time over this stage's"), Column("path")]
    return table(columns, rows, "Every timed stage", name="stages") if rows else None


def _block_row(case):
    block = case.bench["block"]
    share, bound = timing.bound(block)
    device = block["device"]
    return [case.port.label, case.label, case.run.time.replace("T", " ").rstrip("Z"),
            (text.count(device.get("n")), device.get("n")), _time(device.get("min")), _time(device["median"]),
            _time(device.get("p95")), (text.share(device.get("half_width")), device.get("half_width")),
            _time(block.get("wall", {}).get("median")), _time(block.get("cpu", {}).get("median")),
            (text.data(block.get("bytes")), block.get("bytes")), (text.bandwidth(block.get("bandwidth")), block.get("bandwidth")),
            (f"{text.share(share)} of {bound}" if bound else None, share),
            (text.share(case.bench.get("overhead_share")), case.bench.get("overhead_share")),
            "hot" if case.bench.get("cache_hot") else "cold" if case.bench.get("cold") else ""]


def blocks(results):
    rows = [_block_row(case) for case in results.cases if case.bench and not case.untimed]
    columns = [Column("backend", filter=True), Column("golden", filter=True), Column("when (UTC)"), Column("n", True),
               Column("min", True), Column("median", True), Column("p95", True), Column("95% interval", True),
               Column("wall", True), Column("CPU", True), Column("bytes", True), Column("bandwidth", True),
               Column("of roofline", True), Column("stamping", True, about="what stamping the stages costs"), Column("cache")]
    return table(columns, rows, "Every timed block: device, wall and CPU time", name="blocks") if rows else None


def _case_row(case):
    record = case.record
    numbers = [(text.count(record.get(key)), record.get(key)) for key in ("passed", "failed", "other")]
    elapsed = record.get("elapsed_s")
    return [case.name or text.DASH, case.golden, case.port.label, record.get("modes", ""),
            (case.outcome, None, "bad" if wrong(case.outcome) else None), *numbers,
            (text.score(record.get("largest_score")), record.get("largest_score")),
            (text.time(elapsed * 1e9) if text.known(elapsed) else None, elapsed), record.get("message", "")]


def cases(results):
    columns = [Column("case"), Column("golden", filter=True), Column("backend", filter=True), Column("modes", filter=True),
               Column("outcome", filter=True), Column("passed", True), Column("failed", True), Column("other", True),
               Column("largest score", True), Column("took", True), Column("message")]
    return table(columns, [_case_row(case) for case in results.cases], "Every case", name="cases") if results.cases else None


def verdicts(results):
    found = [(v, case) for case in results.cases for v in case.verdicts]
    if not found:
        return None
    found.sort(key=lambda entry: entry[0].rank, reverse=True)
    columns = [Column("stage"), Column("mode", filter=True), Column("outcome", filter=True), Column("score", True),
               Column("max abs", True), Column("max ulp", True), Column("backend", filter=True),
               Column("golden", filter=True), Column("told")]
    rows = [[v.label, v.mode, (v.outcome, None, "bad" if wrong(v.outcome) else None), (text.score(v.score), v.score),
             (text.digits(v.record.get("max_abs"), 3), v.record.get("max_abs")),
             (text.count(v.record.get("max_ulp")), v.record.get("max_ulp")), case.port.label, case.label,
             parity.tell(v).split(": ", 1)[1]] for v, case in found[:ROWS]]
    left = f"; the {text.count(ROWS)} worst of {text.count(len(found))}" if len(found) > ROWS else ""
    return table(columns, rows, f"Verdicts, the worst first{left}", name="verdicts")


def section(results):
    parts = [(name, part) for name, part in (("Every timed block", blocks(results)),
                                             ("Backends side by side", side_by_side(results)), ("Every timed stage", stages(results)),
                                             ("Every case", cases(results)), ("Verdicts", verdicts(results))) if part]
    if not parts:
        return None
    counts = ", ".join(f"{text.count(n)} {name}" for name, n in summary.outcomes(results).most_common())
    return el("section", el("h2", "Tables"), el("p", "Verdicts by outcome: ", counts, class_="about") if counts else None,
              [el("details", el("summary", name), part, open=i == 0) for i, (name, part) in enumerate(parts)], id="tables")

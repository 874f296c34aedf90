"""Stages by layer as heat maps of scores, a table a backend; what failed stands above with its command."""

from . import parity, summary, text
from .html import Html, data, el, framed
from .results import PASSED, outcome_class, wrong
from .view_top import icon

SHOWN = 40  # failing cases that are told one by one
OPEN = 3  # backends whose maps are open from the start; those that fail always are
MODE_MEANS = {"alone": "each stage on golden inputs", "chain": "the backend's own values flow from taps to tokens",
              "local": "each stage recomputed in float64 from the backend's own inputs"}


def command(line):
    """A command with a button that copies it."""
    return el("div", el("code", line), el("button", "copy", type="button", class_="copy js", aria_label="copy command"),
              class_="command")


def _cause(case):
    first = case.record.get("first", {})
    for verdict in case.verdicts:
        if verdict.record.get("cause") and verdict.stage == first.get("stage") and verdict.mode == first.get("mode"):
            return verdict.record["cause"]
    return None


def _failure(case):
    cause, message = _cause(case), case.record.get("message") or "no message"
    return el("article", el("h4", icon("wrong"), Html(" "), el("b", case.outcome), ": ", summary.where(case)),
              el("p", message),
              el("p", "usually: ", cause) if cause and cause not in message else None,
              command(case.record["reproduce"]) if case.record.get("reproduce") else None, class_="failure")


def failures(results):
    failed = [case for case in results.cases if wrong(case.outcome)]
    if not failed:
        return None
    more = el("p", f"and {len(failed) - SHOWN} more: see the table of cases") if len(failed) > SHOWN else None
    return el("div", (_failure(case) for case in failed[:SHOWN]), more, class_="failures")


def _key(stage, layer, mode):
    return f"{stage}|{'' if layer is None else layer}|{mode}"


def _cell(found, stage, layer, mode, span=1, name="td"):
    entry = found.worst.get((stage, layer, mode))
    spans = span if span > 1 else None
    if entry is None:
        return el(name, colspan=spans, class_="none", data_k=_key(stage, layer, mode))
    return el(name, parity.sign(entry[0]), colspan=spans, class_=parity.kind(entry[0]), tabindex="-1",
              aria_label=parity.tell(*entry), data_k=_key(stage, layer, mode))


def _laws(found):
    """Checks of the whole block, one behind the other."""
    chips = [el("span", stage, Html(" "), _cell(found, stage, None, mode, name="span"), class_="chip")
             for stage in found.stages if stage in parity.LAWS for mode in found.modes
             if (stage, None, mode) in found.worst]
    wide = max(1, found.layers) * len(found.modes)
    return el("tr", el("th", "laws", scope="row"), el("td", el("div", chips), colspan=wide, class_="none laws"),
              class_="rule") if chips else None


def family(stage, stages):
    """What stands before the dot, where several stages share it."""
    prefix = stage.split(".")[0]
    return prefix if sum(other.startswith(prefix + ".") for other in stages) > 1 else ""


def _row(found, stage, before):
    cells = []
    for mode in found.modes:
        if found.layered(stage):
            cells += [_cell(found, stage, layer, mode) for layer in range(found.layers)]
        else:
            cells.append(_cell(found, stage, None, mode, max(1, found.layers)))
    rule = before is not None and before != family(stage, found.stages)
    return el("tr", el("th", stage, scope="row"), cells, class_="rule" if rule else None)


def _heads(found):
    width = max(1, found.layers)
    first = el("tr", el("th", "stage", scope="col", rowspan="2"),
               (el("th", mode, scope="colgroup", colspan=width, title=MODE_MEANS.get(mode)) for mode in found.modes))
    numbers = [el("th", str(layer), scope="col", aria_label=f"layer {layer}") for layer in range(found.layers)] or [
        el("th", "", scope="col")]
    return el("thead", first, el("tr", [numbers for _ in found.modes]))


def heat_map(found, caption):
    """The table is the figure: each cell holds its score, its colour repeats it."""
    rows, before = [], None
    for stage in (stage for stage in found.stages if stage not in parity.LAWS):
        rows.append(_row(found, stage, before))
        before = family(stage, found.stages)
    return framed(el("table", _heads(found), el("tbody", rows, _laws(found)), class_="heat", aria_label=caption,
                     data_grid=True), caption)


def _largest(cases):
    scored = [(v.score, v, case) for case in cases for v in case.verdicts
              if outcome_class(v.outcome) == PASSED and text.known(v.score)]
    return max(scored, key=lambda entry: entry[0], default=None)


def _title(port, cases):
    verdicts = [v for case in cases for v in case.verdicts]
    failed = sum(wrong(v.outcome) for v in verdicts)
    passed = sum(outcome_class(v.outcome) == PASSED for v in verdicts)
    words = [f"{text.count(passed)} pass"] + ([f"{text.count(failed)} fail"] if failed else [])
    other = len(verdicts) - passed - failed
    words += [f"{text.count(other)} not judged"] if other else []
    largest = _largest(cases)
    if largest:
        words.append(f"largest passing score {text.score(largest[0])} at {largest[1].label} "
                     f"({largest[1].mode}, {largest[2].label})")
    return el("summary", icon("wrong" if failed else "right"), Html(" "), el("b", port.label), " on ",
              port.device or "?", el("div", "; ".join(words), class_="soft"))


def _packed(cases):
    """Verdicts of each case for the list that chooses one: [stage|layer|mode, sign, class, text]."""
    return [[[_key(v.stage, v.layer, v.mode), parity.sign(v), parity.kind(v), parity.tell(v)] for v in case.verdicts] for case in cases]


def _choice(name, cases):
    options = [el("option", f"worst of {text.plural(len(cases), 'case')}", value="")]
    options += [el("option", f"{case.label}: {case.outcome}", value=str(i)) for i, case in enumerate(cases)]
    return el("label", "show ", el("select", options, data_cases=name), class_="js choice")


def _port(index, port, cases, opened, room):
    found = parity.grid(cases)
    caption = f"Scores of {port.full}: the worst of {text.plural(len(cases), 'case')}, by stage, layer and mode"
    name = f"cases-{index}"
    several = 1 < len(cases) and sum(len(case.verdicts) for case in cases) <= room
    return el("details", _title(port, cases), _choice(name, cases) if several else None, heat_map(found, caption),
              data(name, _packed(cases)) if several else None, class_="port", open=opened)


def legend():
    boxes = [el("span", sign, class_=f"box {kind}") + Html(" ") + el("span", about) for kind, sign, about in (
        ("s1", ".05", "score, lighter is smaller"), ("s9", ".65", "larger"), ("high", ".85", "above 0.7, still passes"),
        ("fail", "✕12", "fails, its score or outcome"), ("skip", "cov", "not judged: covered, not trusted, not run"))]
    return el("p", (el("span", box, class_="entry") for box in boxes), class_="legend")


def section(results, room=8000):
    judged = [case for case in results.cases if case.verdicts]
    if not judged and not any(wrong(case.outcome) for case in results.cases):
        return None
    by_port = {}
    for case in judged:
        by_port.setdefault(case.port, []).append(case)
    order = sorted(by_port, key=lambda port: not any(wrong(c.outcome) for c in by_port[port]))
    maps = []
    for index, port in enumerate(order):
        cases = by_port[port]
        opened = index < OPEN or any(wrong(case.outcome) for case in cases)
        maps.append(_port(index, port, cases, opened, room))
        room -= sum(len(case.verdicts) for case in cases)
    about = el("p", "A score is the largest difference over what correct arithmetic would show at that very element; "
                    "up to 1 passes, a correct backend stays below 0.7. ",
               "; ".join(f"{mode}: {means}" for mode, means in MODE_MEANS.items()), ". Arrow keys move through a map.",
               class_="about")
    return el("section", el("h2", "Parity"), failures(results), about, legend(),
              el("div", maps, class_="maps"), id="parity")

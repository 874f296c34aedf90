"""What stands first: the verdict, and a table that says it for each golden and backend."""

from . import summary, text, timing
from .html import Html, el, framed
from .results import BROKEN, FAILED, PASSED, outcome_class

ICONS = {"right": "✓", "wrong": "✕", "unsure": "?", "slower": "▲", "nothing": "–"}


def icon(kind):
    return el("span", ICONS[kind], class_=f"icon {kind}", aria_hidden="true")


def outcome_kind(outcome):
    how = outcome_class(outcome)
    return "right" if how == PASSED else "wrong" if how in (FAILED, BROKEN) else "nothing"


def _facts(results):
    """When, of what, where: each said once."""
    environments = [run.environment for run in results.runs]
    times = sorted(run.time for run in results.runs if run.time)
    facts = []
    if times:
        first, last = times[0].replace("T", " ").rstrip("Z"), times[-1].replace("T", " ").rstrip("Z")
        facts.append(last + " UTC" if first[:10] == last[:10] else f"{first[:10]} to {last[:10]}")
    for name, show in (("revision", lambda v: f"revision {v[:10]}"), ("cpu", str)):
        values = list(dict.fromkeys(str(e[name]) for e in environments if e.get(name)))
        if values:
            facts.append(show(values[0]) + (f" and {len(values) - 1} more" if len(values) > 1 else ""))
    if any(e.get("dirty") == "yes" for e in environments):
        facts.append("with changes that were not committed")
    facts += [text.plural(len(results.runs), "run")] if results.runs else []
    return facts + ([results.trends.facts()] if results.trends else [])


def banner(results):
    verdict = summary.verdict(results)
    more = el("p", verdict.more, class_="more") if verdict.more else None
    facts = el("p", " · ".join(_facts(results)), class_="facts")
    notes = [el("p", note, class_="note") for note in results.notes]
    heading = el("h1", icon(verdict.kind), el("span", el("b", verdict.word), Html(": "), verdict.line))
    return el("div", heading, more, facts, notes, class_=f"banner {verdict.kind}", id="verdict")


def _time_line(cases):
    timed = [case for case in cases if case.bench]
    if not timed:
        return None
    case = timed[-1]
    name = f"{case.name}: " if len({c.name for c in cases if c.bench}) > 1 else ""
    if case.untimed:
        return el("div", name, "no time: ", case.untimed, class_="sub bad")
    block = case.bench["block"]
    share, bound = timing.bound(block)
    parts = [el("b", text.time(block["device"]["median"]), class_="time"),
             text.plus_minus(block["device"].get("half_width")),
             f"{text.share(share, 0)} of {bound}" if text.known(share) else ""]
    return el("div", name, [Html(f"{part} ") for part in map(_escaped, parts) if part], class_="sub")


def _escaped(part):
    return part if isinstance(part, Html) else el("span", part) if part else ""


def _cell(cell):
    if cell is None:
        return el("td", el("span", text.DASH, class_="soft"))
    total, passed = cell.judged
    kind = outcome_kind(cell.outcome)
    words = [cell.outcome if cell.outcome != "pass" else "pass" if total == 1 else f"{passed} of {total} cases pass"]
    if text.known(cell.largest) and kind == "right":
        words.append(f"score {text.score(cell.largest)}")
    first = next((case for case in cell.cases if case.outcome == cell.outcome), None)
    where = summary.where(first).split(", first at ") if first and kind == "wrong" else []
    at = el("div", "first at ", el("code", where[1]), class_="sub bad") if len(where) == 2 else None
    return el("td", icon(kind), Html(" "), ", ".join(words), at, _time_line(cell.cases))


def matrix(results):
    files, ports, cells = summary.matrix(results)
    if not files:
        return None
    golden = {case.file: case.golden for case in results.cases}
    head = el("tr", el("th", "golden", scope="col"), (el("th", p.label, scope="col", title=p.full) for p in ports))
    rows = [el("tr", el("th", golden[file], scope="row", title=file),
               (_cell(cells.get((file, port))) for port in ports)) for file in files]
    caption = ("Each golden on each backend: cases that pass, largest passing score (up to 1 passes), device median of "
               "the block with its 95% interval, share of the roofline that bounds it")
    return framed(el("table", el("thead", head), el("tbody", rows), class_="matrix", id="matrix", aria_label=caption),
                  caption)


def _draws(results):
    if not results.draws:
        return None
    kinds = summary.Counter(draw["outcome"] for draw in results.draws)
    scores = [d["largest_score"] for d in results.draws if text.known(d.get("largest_score"))]
    words = ", ".join(f"{text.count(number)} {name}" for name, number in kinds.most_common())
    return el("p", el("b", f"Sweep: {text.plural(len(results.draws), 'draw')}: "), words,
              f"; largest passing score {text.score(max(scores))}" if scores else "")


def _defects(results):
    if not results.defects:
        return None
    planted = [d for d in results.defects if d.get("defect") and not d.get("lawful")]
    found = sum(bool(d.get("found")) for d in planted)
    alarms = sum(bool(d.get("found")) for d in results.defects if d not in planted)
    return el("p", el("b", "Self test: "), f"{found} of {text.plural(len(planted), 'trial')} with a defect found it; ",
              text.plural(alarms, "false alarm"), f" in {len(results.defects) - len(planted)} correct ones")


def section(results):
    return el("section", banner(results), matrix(results), _draws(results), _defects(results), id="overview")

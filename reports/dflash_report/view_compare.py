"""What a gate found, and comparisons of two sides: by how much each group moved, with its interval."""

from . import samples, summary, text
from .html import Html, el, percent
from .table import Column, table
from .view_top import icon

KINDS = {"same": "right", "faster": "right", "passed": "right", "noted": "right", "waived": "unsure", "cannot tell": "unsure"}

GRAVEST = ("failed", "cannot tell", "waived", "noted", "passed")


def kind(verdict):
    return KINDS.get(verdict, "slower" if verdict == "slower" else "wrong")


def _moved(comparison):
    """The block, then groups, each with a change."""
    rows = [dict(comparison["block"], name="block")] if comparison.get("block") else []
    return [row for row in rows + comparison.get("groups", []) if text.known(row.get("change"))]


def signed(share):
    return ("+" if text.known(share) and share > 0 else "") + text.share(share)


def _axis(rows):
    """Shares on both sides of none; at least 1%, at most 200%."""
    ends = [abs(row[key]) for row in rows for key in ("change", "low", "high") if text.known(row.get(key))]
    wide = 1.15 * min(2.0, max(0.01, *ends))
    return samples.Scale(-wide, wide, False)


def _at(axis, share):
    return 100 * min(1.0, max(0.0, axis.at(share)))


def _line(axis, row, ticks):
    low, high = (row.get(key) if text.known(row.get(key)) else row["change"] for key in ("low", "high"))
    worse = row.get("verdict") == "slower"
    told = (f"{row.get('name', '?')}: {signed(row['change'])} ({signed(low)} to {signed(high)}), "
            f"{text.time(row.get('a_ns'))} to {text.time(row.get('b_ns'))}" + (f": {row['verdict']}" if row.get("verdict") else ""))
    left = _at(axis, low)
    marks = [el("i", class_=f"gap c{int(worse)}", style=f"left:{percent(left)};width:{percent(_at(axis, high) - left)}"),
             el("i", class_=f"mark p{int(worse)}", style=f"left:{percent(_at(axis, row['change']))}")]
    track = el("span", ticks, marks, class_="track", role="img", tabindex="-1", aria_label=told)
    return el("div", el("span", row.get("name", "?"), class_="name"), track, el("span", text.time(row.get("b_ns")), class_="v"),
              el("span", signed(row["change"]), class_="v share"), class_="line")


def _chart(comparison, rows):
    axis = _axis(rows)
    places = [value for value in samples.ticks(axis, 6)]
    ticks = [el("i", class_="tick", style=f"left:{percent(100 * axis.at(value))}") for value in places]
    labels = [el("i", signed(value) if abs(value) > 1e-12 else "0", style=f"left:{percent(100 * axis.at(value))}")
              for value in places]
    head = el("div", el("span", class_="name"), el("span", labels, class_="track axis"), el("span", "B", class_="v"),
              el("span", "change", class_="v share"), class_="line head", aria_hidden="true")
    return el("div", head, [_line(axis, row, ticks) for row in rows], class_="chart", role="group", data_marks=True,
              aria_label=f"changes of {summary.told(comparison)}")


def _comparison(comparison):
    rows = _moved(comparison)
    units = text.count(comparison.get("a_count")), text.count(comparison.get("b_count")), comparison.get("units", "")
    return el("article", el("h3", icon(kind(comparison["verdict"])), Html(" "), comparison["verdict"], ": ",
                            summary.told(comparison)),
              el("p", comparison.get("message", "").removeprefix(f"{comparison['verdict']}: ")),
              el("p", f"A {comparison.get('backend', '?')}, B {comparison.get('backend_b', '?')}; {units[0]} and {units[1]} "
                      f"processes, {units[2]}" + (f"; {comparison['differs']}" if comparison.get("differs") else ""),
                 class_="about"), _chart(comparison, rows) if rows else None)


def _numbers(comparisons):
    columns = [Column("compared", filter=True), Column("of", filter=True), Column("A", True), Column("B", True),
               Column("change", True), Column("low", True), Column("high", True), Column("p", True), Column("verdict", filter=True)]
    rows = [[summary.told(c), row.get("name"), *((text.time(row.get(k)), row.get(k)) for k in ("a_ns", "b_ns")),
             *((signed(row.get(k)), row.get(k)) for k in ("change", "low", "high")), (text.digits(row.get("p"), 2), row.get("p")),
             row.get("verdict", "")] for c in comparisons for row in _moved(c) + c.get("stages", [])]
    return el("details", el("summary", "the numbers"), table(columns, rows, "Changes from side A to side B", name="moved")
              ) if rows else None


def _gravity(finding):
    """What is wrong stands first."""
    verdict = finding.get("verdict")
    return GRAVEST.index(verdict) if verdict in GRAVEST else 0


def _gate(gate):
    columns = [Column("verdict", filter=True), Column("kind", filter=True), Column("what"), Column("message")]
    rows = [[(f.get("verdict"), None, "bad" if kind(f.get("verdict", "")) == "wrong" else None), f.get("kind"), f.get("name"),
             f.get("message") or (f"{text.count(f['times'])} processes" if f.get("times") else "")]
            for f in sorted(gate.get("findings", []), key=_gravity)]
    how = {0: "right", 5: "unsure"}.get(gate["exit"], "wrong")
    return el("article", el("h3", icon(how), " the gate"), el("p", gate.get("message", "")),
              el("p", gate.get("promise", ""), class_="about"),
              table(columns, rows, f"What the gate looked at; baseline {gate.get('baseline', '?')}") if rows else None)


def section(results):
    if not results.comparisons and not results.gates:
        return None
    return el("section", el("h2", "Compared"), map(_gate, results.gates), map(_comparison, results.comparisons),
              _numbers(results.comparisons), id="compared")

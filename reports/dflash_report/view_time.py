"""Times of stages beside their roofline, and where the block's time goes, a figure with its table each."""

from . import samples, text, timing
from .html import Html, el, percent
from .table import Column, table

OPEN = 2  # goldens that are open from the start
SHOWN = 60  # blocks that have figures; all are in the tables
NAMED = 0.07  # share of a bar from which on a part has room for its name


def title(key, cases):
    """"tiny-f32 / main, round, cold"."""
    words = [cases[0].label] + ([key[2]] if key[2] != "block" else []) + (["cold"] if key[3] else [])
    return ", ".join(words)


def key_of(cases):
    """The marks of the backends."""
    return el("p", (el("span", el("i", class_=f"mark p{i % 8}"), Html(" "), case.port.label, class_="entry",
                       title=case.port.full) for i, case in enumerate(cases)),
              el("span", el("i", class_="mark hollow"), " what the roofline allows", class_="entry"), class_="legend")


def _told(case, bar):
    words = f"{bar.name}, {case.port.label}: {text.time(bar.ns)}"
    if bar.floor is None:
        return words + ", no roofline"
    words += f"; the roofline allows {text.time(bar.floor)}, {text.share(bar.share)} of it is reached"
    return words + (" (above 100%: values came out of a cache)" if bar.share > 1 else "")


def _line(axis, name, index, case, bar, grid):
    at = axis.at(bar.ns)
    marks = []
    if bar.floor:
        floor = axis.at(bar.floor)
        marks.append(el("i", class_=f"gap c{index % 8}", style=f"left:{percent(100 * min(at, floor))};"
                                                               f"width:{percent(100 * abs(at - floor))}"))
        marks.append(el("i", class_="mark hollow", style=f"left:{percent(100 * floor)}"))
    marks.append(el("i", class_=f"mark p{index % 8}", style=f"left:{percent(100 * at)}"))
    flag = el("b", "!", title="above its roofline: values came out of a cache") if bar.share and bar.share > 1 else ""
    track = el("span", grid, marks, class_="track", role="img", tabindex="-1", aria_label=_told(case, bar))
    values = el("span", text.time(bar.ns), class_="v"), el("span", text.share(bar.share, 0), flag, class_="v share")
    return el("div", el("span", name, class_="name"), track, values, class_="line")


def _grid(axis):
    return [el("i", class_="tick", style=f"left:{percent(100 * axis.at(value))}") for value in samples.ticks(axis, 5)]


def _axis_line(axis):
    labels = [el("i", text.tick(value), style=f"left:{percent(100 * axis.at(value))}")
              for value in samples.ticks(axis, 5)]
    return el("div", el("span", class_="name"), el("span", labels, class_="track axis"),
              el("span", "median", class_="v"), el("span", "reached", class_="v share"), class_="line head",
              aria_hidden="true")


def _axis(bars):
    values = [value for case_bars in bars for bar in case_bars for value in (bar.ns, bar.floor) if value]
    return samples.Scale(min(values) / 1.3, max(values) * 1.3, True)


def chart(cases, take, label, level):
    """One line a stage or group and backend: what it takes, and what its roofline allows, on one scale of times."""
    bars = [take(case) for case in cases]
    if not any(bars):
        return None
    axis, lines = _axis(bars), []
    grid = _grid(axis)
    names = list(dict.fromkeys(bar.name for case_bars in bars for bar in case_bars))
    for name in names:
        first = True
        for index, (case, case_bars) in enumerate(zip(cases, bars)):
            for bar in (b for b in case_bars if b.name == name):
                lines.append(_line(axis, name if first else "", index, case, bar, grid))
                first = False
    return el("div", _axis_line(axis), lines, class_="chart", role="group", aria_label=label, data_marks=True,
              data_level=level)


def _colour(name, index):
    return f"g{timing.ORDER.index(name)}" if name in timing.ORDER else f"x{index % 4}"


def _part(index, case, name, ns, share):
    told = f"{name}, {case.port.label}: {text.time(ns)}, {text.share(share)} of the block"
    inside = el("span", el("b", name), Html(" "), text.share(share, 0)) if share >= NAMED else None
    return el("span", inside, class_=f"part {_colour(name, index)}", style=f"flex:{share:.5f} 0 0", role="img",
              tabindex="-1", aria_label=told)


def stack(case):
    """The groups of a block side by side, as long as their shares of its time."""
    found, rest = timing.parts(case)
    ns = {bar.name: bar.ns for bar in timing.groups(case)}
    block = case.bench["block"]["device"]["median"]
    parts = [_part(i, case, name, ns[name], share) for i, (name, share) in enumerate(found)]
    if rest >= 0.001:
        parts.append(el("span", class_="part rest", style=f"flex:{rest:.5f} 0 0", role="img", tabindex="-1",
                        aria_label=f"in no stage, {case.port.label}: {text.share(rest)} of the block"))
    note = f"; stages sum to {text.share(1 - rest)}" if rest < -0.01 else ""
    return el("div", el("p", el("b", case.port.label), f" {text.time(block)}", note, class_="stack-name"),
              el("div", parts, class_="stack", role="group", aria_label=f"shares of the block, {case.port.label}",
                 data_marks=True), class_="stack-row")


def _share_rows(cases):
    of_case = [({bar.name: bar for bar in timing.groups(case)}, dict(timing.parts(case)[0])) for case in cases]
    names = list(dict.fromkeys(name for bars, _ in of_case for name in bars))
    for name in names:
        row = [name]
        for bars, shares in of_case:
            bar = bars.get(name)
            row += [(text.time(bar.ns), bar.ns), (text.share(shares.get(name)), shares.get(name)),
                    (text.share(bar.share), bar.share)] if bar else [None, None, None]
        yield row
    rests = [timing.parts(case)[1] for case in cases]
    yield ["in no stage (below 0: overlap)"] + [c for rest in rests for c in (None, (text.share(rest), rest), None)]


def group_table(cases, name):
    columns = [Column("group")]
    for case in cases:
        columns += [Column(f"{case.port.label}: median", True), Column("of block", True),
                    Column("of roofline", True)]
    return table(columns, list(_share_rows(cases)), f"{name}: groups of stages", tools=False)


def _peer(case, peer):
    doubt = "" if peer.get("counts") else f"; the ratio does not count: the peer is below {text.share(peer.get('least_share'))} of read"
    return el("li", el("b", case.port.label), f" is {text.digits(peer.get('ratio'), 3)} times as fast as the peer "
              f"{peer.get('peer', '?')} {peer.get('way', '?')} ({peer.get('library', '?')}), which takes {text.time(peer.get('ns'))}, "
              f"{text.share(peer.get('share_read'))} of read{doubt}")


def peers(cases):
    """The same block in another library, where bench was given its times."""
    found = [_peer(case, peer) for case in cases for peer in case.bench.get("peers", [])]
    return [el("h4", "Beside other libraries"), el("ul", found, class_="peers")] if found else None


def _fastest(cases):
    return "; ".join(f"{case.port.label} {text.time(case.bench['block']['device']['median'])}" for case in cases)


def golden_part(key, cases, opened):
    name = title(key, cases)
    by_group = chart(cases, timing.groups, f"{name}: groups beside their roofline", "groups")
    by_stage = chart(cases, timing.stages, f"{name}: stages beside their roofline, layers summed", "stages")
    switch = el("p", "by ", [el("button", word, type="button", data_show=word, aria_pressed=str(word == "groups").lower())
                             for word in ("groups", "stages")], class_="js switch") if by_group and by_stage else None
    return el("details", el("summary", el("h3", name), el("span", _fastest(cases), class_="soft")), el("h4", "Time beside the roofline"), key_of(cases), switch, by_group,
              by_stage, el("h4", "Where the block's time goes"), [stack(case) for case in cases], peers(cases),
              el("details", el("summary", "the numbers"), group_table(cases, name)), class_="golden",
              open=opened)


def untimed(results):
    rows = [case for case in results.cases if case.bench and case.untimed]
    if not rows:
        return None
    return el("ul", (el("li", el("b", case.port.label), f" on {case.label}: no time, {case.untimed}") for case in rows),
              class_="untimed")


def _some(together):
    """As many goldens as have room, at least one."""
    some, blocks = [], 0
    for key, cases in together:
        blocks += len(cases)
        if some and blocks > SHOWN:
            break
        some.append((key, cases))
    return some


def section(results):
    together = timing.largest_first(results.timed)
    shown = _some(together)
    without = untimed(results)
    if not together and not without:
        return None
    about = el("p", "Filled: the median. Hollow: what the same device's own streaming read or matrix product, measured "
                    "in the same run, would take for the same bytes and operations. The longer the line between, the "
                    "more is left to gain; the scale is logarithmic. Backends measure their roofline with their own "
                    "code.", class_="about")
    return el("section", el("h2", "Time"), without, about if together else None,
              [golden_part(key, cases, i < OPEN) for i, (key, cases) in enumerate(shown)],
              el("p", f"and {len(together) - len(shown)} more, in the tables", class_="about") if shown != together else None,
              id="time")

"""Trends: the block over nights with its change points, its groups in small beside it, a table of changes."""

from html import escape

from . import plot, samples, text
from .html import Html, el, framed
from .table import Column, table
from .trends import RECENT, size, tell
from .view_top import icon

SERIES, GROUPED = 40, 8  # subjects that a page shows, and with the lines of their groups; those with changes come first
BLOCK = 3  # the block's column in a table of nights


def _x(line):
    first, last = line.nights[0].time, line.nights[-1].time
    wide = max(1, last - first)
    return [1 + 98 * (night.time - first) / wide for night in line.nights]


def _axis(line, own_band):
    values = list(line.values)
    if own_band:
        values += [v for night in line.nights for v in (night.low, night.high) if v]
    middle = sorted(line.values)[len(line.values) // 2]
    return samples.scale([min(max(v, middle / 20), middle * 20) for v in values])


def _y(axis, value):
    return 100 * min(1.0, max(0.0, axis.at(value)))


def _bands(line, axis, xs):
    rows = [(x, _y(axis, night.low), _y(axis, night.high)) for x, night in zip(xs, line.nights) if night.low and night.high]
    return plot.band(rows, "c0")


def _levels(line, axis, xs):
    """The level of each stretch between changes, and where one begins."""
    marks = [plot.line([(xs[part.first], _y(axis, part.level)), (xs[part.last], _y(axis, part.level))], "level")
             for part in line.trend.segments]
    for change in line.changes:
        marks.append(plot.upright(xs[change.night], "change" if change.size > 0 else "change better"))
    return marks


def _told(line, i):
    night = line.nights[i]
    words = f"{night.date}: {text.time(line.values[i])}"
    if line.name == "block" and night.low and night.high:
        words += f" ({text.time(night.low)} to {text.time(night.high)})"
    words += f", {night.revision[:10] or 'no revision'}"
    for change in line.changes:
        if change.night == i:
            words += f"; change {size(change)}"
    return words.replace(";", "·")


def figure(subject, line, small, table_id):
    """The line over its nights. Its dots are told by the table of nights where it has all of them."""
    whole = line.name == "block"
    axis, xs = _axis(line, whole), _x(line)
    dots = [(x, _y(axis, value)) for x, value in zip(xs, line.values)]
    marks = [_bands(line, axis, xs) if whole else None, plot.dots(dots, "c0"), _levels(line, axis, xs)]
    tabled = table_id and len(line.nights) == len(subject.nights)
    column = BLOCK if whole else BLOCK + 3 + [group.name for group in subject.groups].index(line.name)
    words = None if tabled else [_told(line, i) for i in range(len(line.nights))]
    label = f"{line.name} of {subject.label} over {text.plural(len(line.values), 'night')}: {line.trend.verdict}"
    ends = el("div", el("span", line.nights[0].date), el("span", line.nights[-1].date), class_="xaxis", aria_hidden="true")
    last = line.changes[-1] if line.changes else None
    head = el("p", el("b", line.name), f" {text.time(line.values[-1])} ", el("span", line.trend.verdict if not last else
              f"{text.plural(len(line.changes), 'change')}, last {size(last)}", class_="soft"), class_="plot-name")
    return el("div", head, el("div", plot.area(axis, label, marks, words, (table_id, column) if tabled else None), class_="plot"), ends,
              class_="trend small" if small else "trend")


def _change_rows(subjects):
    for subject in subjects:
        for line, change in subject.changes:
            night = line.nights[change.night]
            levels = line.trend.segments[list(line.changes).index(change) :][:2]
            yield [subject.label, line.name, (night.date, None), (size(change), change.size, "bad" if change.size > 0 else None),
                   f"{text.share(change.size_low)} to {text.share(change.size_high)}",
                   (text.time(levels[0].level), levels[0].level), (text.time(levels[1].level), levels[1].level),
                   f"{line.nights[change.low].date} to {line.nights[change.high].date}", change.revision_before[:10],
                   change.revision_after[:10], "machine" if change.same_revision else "code",
                   (text.digits(change.p, 2), change.p)]


def changes(subjects):
    columns = [Column("series", filter=True), Column("of", filter=True), Column("since"), Column("size", True), Column("95%"),
               Column("before", True), Column("after", True), Column("began within"), Column("last revision before"),
               Column("first after"), Column("cause"), Column("p", True, about="share of steady series that ever show so much")]
    rows = list(_change_rows(subjects))
    return table(columns, rows, "Change points", name="changes") if rows else el("p", "No change points.")


def _nights(subject, name, groups):
    """Every night, the newest first: what the figures show. Times of groups where their figures are shown."""
    heads = ["night", "revision", "runs", "block", "low", "high"] + [line.name for line in groups]
    rows = []
    for night in reversed(subject.nights):
        cells = [night.date, night.revision[:10] or text.DASH, text.count(night.runs), text.time(night.ns),
                 text.time(night.low), text.time(night.high)]
        cells += [text.time(night.groups.get(line.name)) for line in groups]
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    body = Html("".join(f"<tr>{row}</tr>" for row in rows))
    inside = el("table", el("thead", el("tr", (el("th", head, scope="col") for head in heads))), el("tbody", body),
                id=name, class_="numbers")
    return el("details", el("summary", "the numbers"), framed(inside, f"Nights of {subject.label}"))


def _subject(index, subject):
    name, shown = f"nights-{index}", subject.groups if index < GROUPED else []
    groups = el("div", [figure(subject, line, True, name) for line in shown], class_="multiples")
    worse = any(change.size > 0 for change in subject.block.changes)
    kind = "nothing" if subject.block.trend.verdict == "too few" else "slower" if worse else "right"
    return el("details", el("summary", icon(kind), Html(" "), el("b", subject.label),
                            el("span", f"{text.plural(len(subject.nights), 'night')}, {subject.block.trend.verdict}",
                               class_="soft")),
              figure(subject, subject.block, False, name), groups if shown else None, _nights(subject, name, shown),
              class_="golden", open=index == 0)


def section(results):
    if not results.trends or not results.trends.subjects:
        return None
    subjects = results.trends.subjects
    recent = [el("li", tell(*entry), class_="bad" if entry[2].size > 0 else None) for entry in results.trends.recent()]
    news = [el("p", f"Called in the last {RECENT} nights:"), el("ul", recent)] if recent else None
    about = el("p", "Of each night the run with the middle median. Line: the level between changes; dashed: where a new "
                    "level begins; band: the 95% interval within that run. A change is called when steady nights "
                    "would hardly ever look so.", class_="about")
    more = len(subjects) - SERIES
    return el("section", el("h2", "Trends"), news, about, changes(subjects),
              [_subject(i, subject) for i, subject in enumerate(subjects[:SERIES])],
              el("p", f"and {text.count(more)} more series without more changes", class_="about") if more > 0 else None,
              id="trends")

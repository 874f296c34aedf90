"""The figures as SVG and PNG, for papers and letters: the page's numbers, drawn by matplotlib. Equal input gives equal
SVG. Imported by a process of its own (drawing.py)."""

import io

import matplotlib
from matplotlib import colors, ticker
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from . import parity, samples, text, timing
from .trends import size
from .view_time import title

COLOURS = ("#0a67a8", "#c8550a", "#00876a", "#a8448e", "#8a6d00", "#3d9bd4", "#7a7f86", "#5b3fa0")
MARKERS = "os^Dov*"
GROUPS = ("#9aa3ad", "#c9dff2", "#6fa8d6", "#a5cbe8", "#2f74ad", "#8dbde2", "#f6dcc0", "#e69a4c", "#f0ba82", "#ddd0ea",
          "#a68ac4", "#c7b3da")
HEAT = colors.LinearSegmentedColormap.from_list("heat", ("#f0f5fb", "#5796cf"))
HIGH, FAIL, SKIP = "#f2b632", "#b8350b", "#e9ebed"
STYLE = {"svg.hashsalt": "dflash", "svg.fonttype": "none", "font.size": 8.5, "axes.spines.top": False, "font.family": "DejaVu Sans",
         "axes.spines.right": False, "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlesize": 9.5,
         "text.parse_math": False, "axes.edgecolor": "#9aa3ad", "xtick.color": "#5a646f", "ytick.color": "#1b1f24"}
MOST = 8  # goldens or backends that one figure shows
DATES = 6  # that an axis names


def colour(index):
    return COLOURS[index % len(COLOURS)]


def canvas(width, height, rows=1, columns=1, layout="constrained", **options):
    figure = Figure(figsize=(width, height), layout=layout)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def rendered(figure):
    """{suffix: bytes}"""
    made = {}
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 144, "metadata": {"Software": None}})):
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix, facecolor="white", **options)
        made[suffix] = stream.getvalue()
        figure.set_layout_engine("none")  # it stays as it was laid out
    return made


def _time_axis(axis):
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text.tick(value)))
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())
    axis.grid(axis="x", color="#e2e4e7", linewidth=0.7)
    axis.set_axisbelow(True)


def _cell(axis, x, y, width, verdict):
    """The cell's text; (its place, its colour)."""
    kind = parity.kind(verdict)
    face = {"fail": FAIL, "skip": SKIP, "high": HIGH}.get(kind)
    face = face or HEAT(min(1.0, max(0.0, verdict.score or 0) / parity.HIGH) if text.known(verdict.score) else 0.0)
    told = axis.text(x + width / 2, y + 0.52, parity.sign(verdict), ha="center", va="center", fontsize=6,
                     color="white" if kind == "fail" else "#14202b")
    told.set_in_layout(False)
    return Rectangle((x + 0.03, y + 0.03), width - 0.06, 0.94), face


def _map(axis, port, found):
    layers = max(1, found.layers)
    stages = [stage for stage in found.stages if stage not in parity.LAWS]
    cells = []
    for (name, layer, mode), (verdict, _) in found.worst.items():
        if name in stages:
            at = found.modes.index(mode) * (layers + 0.4) + (layer or 0)
            cells.append(_cell(axis, at, stages.index(name), 1 if layer is not None else layers, verdict))
    axis.add_collection(PatchCollection([cell for cell, _ in cells], facecolors=[face for _, face in cells], linewidths=0))
    wide = len(found.modes) * (layers + 0.4)
    axis.set(xlim=(0, wide), ylim=(len(stages), 0), xticks=[], yticks=[y + 0.5 for y in range(len(stages))])
    axis.set_yticklabels(stages, fontsize=7)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    for i, mode in enumerate(found.modes):
        axis.text(i * (layers + 0.4) + layers / 2, -0.3, mode, ha="center", va="bottom", fontsize=7.5)
    axis.set_title(f"{port.label}\n", fontsize=9.5)


def parity_figure(results):
    by_port = {}
    for case in results.cases:
        if case.verdicts:
            by_port.setdefault(case.port, []).append(case)
    maps = [(port, parity.grid(cases)) for port, cases in list(by_port.items())[:MOST]]
    if not maps:
        return None
    widths = [len(found.modes) * (max(1, min(64, found.layers)) + 0.4) for _, found in maps]
    stages = max(len(found.stages) for _, found in maps)
    figure, axes = canvas(sum(widths) * 0.3 + 1.5 * len(maps), min(60, stages) * 0.17 + 0.9, 1, len(maps),
                          width_ratios=widths)
    for axis, (port, found) in zip(axes[0], maps):
        _map(axis, port, found)
    figure.supxlabel("score by stage and layer, the worst of all cases: up to 1 passes", fontsize=8, color="#5a646f")
    return figure


def _beside(axis, key, cases):
    bars = [timing.groups(case) for case in cases]
    names = list(dict.fromkeys(bar.name for one in bars for bar in one))
    for index, (case, one) in enumerate(zip(cases, bars)):
        shift = (index - (len(cases) - 1) / 2) * 0.24
        for bar in one:
            y = names.index(bar.name) + shift
            if bar.floor:
                axis.plot([bar.floor, bar.ns], [y, y], color=colour(index), alpha=0.45, linewidth=2)
                axis.plot(bar.floor, y, "o", markerfacecolor="white", markeredgecolor="#5a646f", markersize=4.5)
            axis.plot(bar.ns, y, MARKERS[index % len(MARKERS)], color=colour(index), markersize=5,
                      label=case.port.label if bar is one[0] else None)
    _time_axis(axis)
    axis.set(ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)), yticklabels=names, title=title(key, cases))
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def stages_figure(results):
    together = [(key, cases) for key, cases in timing.largest_first(results.timed) if any(map(timing.groups, cases))][:MOST]
    if not together:
        return None
    figure, axes = canvas(7.6, 0.4 + sum(1.0 + 0.085 * 11 * (1 + len(cases)) for _, cases in together), len(together))
    for axis, (key, cases) in zip(axes[:, 0], together):
        _beside(axis, key, cases)
    axes[-1, 0].set_xlabel("filled: median of the group; hollow: what the device's roofline allows")
    return figure


def block_figure(results):
    rows = [(key, case) for key, cases in timing.largest_first(results.timed)[:MOST] for case in cases if timing.groups(case)]
    if not rows:
        return None
    figure, axes = canvas(7.6, 1.1 + 0.36 * len(rows))
    axis, seen = axes[0, 0], {}
    for y, (_, case) in enumerate(rows):
        at = 0.0
        for i, (name, share) in enumerate(timing.parts(case)[0]):
            face = GROUPS[timing.ORDER.index(name)] if name in timing.ORDER else GROUPS[(2 * i) % 12]
            drawn = axis.barh(y, share, left=at, color=face, edgecolor="white", linewidth=0.6, height=0.72)
            seen.setdefault(name, drawn)
            if share > 0.06:
                axis.text(at + share / 2, y, text.share(share, 0), ha="center", va="center", fontsize=6.5,
                          color="white" if face == GROUPS[4] else "#14181c")
            at += share
    labels = [f"{title(key, [case])}: {case.port.label}, {text.time(case.bench['block']['device']['median'])}"
              for key, case in rows]
    axis.set(yticks=range(len(rows)), yticklabels=labels, ylim=(len(rows) - 0.4, -0.6))
    axis.xaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
    axis.set_xlabel("share of the unstamped block's median")
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    return figure


def _strip(axes, key, case, index):
    values = samples.clean(case)
    kept = samples.thin(values)
    scale = samples.scale(values)
    order, spread = axes
    order.plot([i + 1 for i, _ in kept], [v for _, v in kept], ".", color=colour(index), markersize=3, alpha=0.7)
    order.axhline(case.bench["block"]["device"]["median"], color="#1b1f24", linewidth=0.9)
    if scale.log:
        order.set_yscale("log")
    order.set(ylim=(scale.low, scale.high), title=f"{title(key, [case])}: {case.port.label}")
    order.set_yticks(samples.ticks(scale, 4))
    order.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text.tick(value)))
    order.yaxis.set_minor_formatter(ticker.NullFormatter())
    edges = [scale.value(i / samples.BINS) for i in range(samples.BINS + 1)]
    spread.hist(values, bins=edges, orientation="horizontal", color="#9aa3ad")
    spread.tick_params(labelleft=False, left=False)
    spread.set_xticks([])


def samples_figure(results):
    rows = [(key, case, i) for key, cases in timing.largest_first(results.timed) for i, case in enumerate(cases)
            if samples.clean(case)][:MOST]
    if not rows:
        return None
    figure, axes = canvas(7.6, 0.4 + 1.35 * len(rows), len(rows), 2, width_ratios=(5, 1), sharey="row")
    for pair, (key, case, index) in zip(axes, rows):
        _strip(pair, key, case, index)
    axes[-1, 0].set_xlabel("unstamped blocks in the order they ran; how often each time came")
    return figure


def _trend(axis, subject):
    """Dates are placed here: matplotlib's own take longer than all else."""
    line = subject.block
    dates = [night.time for night in line.nights]
    ticks = line.nights[:: max(1, -(-len(dates) // DATES))]
    axis.set_xticks([night.time for night in ticks], [night.date for night in ticks])
    axis.plot(dates, line.values, ".", color=COLOURS[0], markersize=3.5, alpha=0.6)
    for part in line.trend.segments:
        axis.plot([dates[part.first], dates[part.last]], [part.level] * 2, color="#1b1f24", linewidth=1.3)
    for change in line.changes:
        axis.axvline(dates[change.night], color=FAIL if change.size > 0 else "#00735c", linestyle="--", linewidth=1)
        axis.annotate(size(change), (dates[change.night], 1), xycoords=("data", "axes fraction"), fontsize=7, ha="center", va="bottom")
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text.tick(value)))
    axis.set_title(subject.label + (chr(10) if line.changes else ""))


def trends_figure(results):
    subjects = results.trends.subjects if results.trends else []
    if not subjects:
        return None
    height = 0.3 + 1.7 * len(subjects)
    figure, axes = canvas(7.6, height, len(subjects), layout=None)  # places are known: nothing is drawn to find them
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.35 / height, top=1 - 0.45 / height, hspace=0.65)
    for axis, subject in zip(axes[:, 0], subjects):
        _trend(axis, subject)
    return figure


FIGURES = {"trends": trends_figure, "parity": parity_figure, "stages": stages_figure, "block": block_figure, "samples": samples_figure}


def draw(results, names):
    """{file name: bytes} of the figures that have something to show."""
    made = {}
    with matplotlib.rc_context(STYLE):
        for name in names:
            figure = FIGURES[name](results)
            if figure is not None:
                made |= {f"{name}.{suffix}": data for suffix, data in rendered(figure).items()}
    return made

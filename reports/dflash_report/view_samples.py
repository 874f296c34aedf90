"""Samples of the blocks in their order, with how they are distributed beside it."""

from . import plot, samples, text
from .html import el, percent
from .table import Column, table
from .timing import largest_first
from .view_time import title

TOGETHER = 20_000  # points of all figures
QUANTILES = (("p5", 0.05), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95))


def _histogram(values, axis):
    counts = samples.histogram(values, axis)
    most = max(counts)
    return el("div", [el("i", style=f"width:{percent(100 * count / most)}") for count in reversed(counts)],
              class_="histogram", aria_hidden="true")


def _told(case, values):
    device = case.bench["block"]["device"]
    return (f"{case.port.label}, {text.plural(len(values), 'sample')} of the block in order: median "
            f"{text.time(device['median'])}, from {text.time(min(values))} to {text.time(max(values))}")


def figure(case, index, values, most):
    axis = samples.scale(values)
    device = case.bench["block"]["device"]
    wide = max(1, len(values) - 1)
    shown = [(1 + 98 * i / wide, 100 * axis.at(value), value, i) for i, value in samples.thin(values, most)]
    low, high = device.get("low"), device.get("high")
    marks = [plot.band([(0, 100 * axis.at(low), 100 * axis.at(high)), (100, 100 * axis.at(low), 100 * axis.at(high))],
                       "interval")] if text.is_time(low) and text.is_time(high) else []
    marks += [plot.flat(100 * axis.at(device["median"]), "median"),
              plot.dots([(x, y) for x, y, _, _ in shown], f"c{index % 8}")]
    words = [f"sample {i + 1}: {text.time(value)}" for _, _, value, i in shown]
    head = el("p", el("b", case.port.label), f" median {text.time(device['median'])} ",
              text.plus_minus(device.get("half_width")), el("span", f"{text.plural(len(values), 'sample')}"
                                                            + (", log scale" if axis.log else ""), class_="soft"))
    return el("div", head, el("div", plot.area(axis, _told(case, values), marks, words), _histogram(values, axis),
                              class_="plot with-histogram"), class_="samples")


def _row(case):
    values = sorted(samples.clean(case))
    device = case.bench["block"]["device"]
    row = [case.port.label, case.label, (text.count(len(values)), len(values)), _time(values[0])]
    row += [_time(samples.quantile(values, q)) for _, q in QUANTILES]
    row += [_time(values[-1]), _time(device.get("mad")), (text.share(device.get("half_width")), device.get("half_width")),
            (text.digits(device.get("lag1"), 2), device.get("lag1")), case.bench.get("stopped_by")]
    return row


def _time(ns):
    return text.time(ns), ns


def section(results):
    sampled = [case for case in results.timed if samples.clean(case)]
    if not sampled:
        return None
    columns = [Column("backend"), Column("golden"), Column("n", True), Column("min", True)]
    columns += [Column(name, True) for name, _ in QUANTILES]
    columns += [Column("max", True), Column("MAD", True), Column("95% interval", True, about="half width of the median's"),
                Column("lag 1", True, about="correlation of neighbours"), Column("stopped by")]
    about = el("p", "Every unstamped block in the order it ran, none left out of the numbers (of more than "
                    "can be drawn the lowest and the highest of each stretch are shown), and beside it how often each time came. "
                    "Line: the median; band: its 95% interval.", class_="about")
    parts, most = [], max(100, min(samples.POINTS, TOGETHER // len(sampled)))
    for key, cases in largest_first(sampled):
        parts.append(el("h3", title(key, cases)))
        parts += [figure(case, index, samples.clean(case), most) for index, case in enumerate(cases)]
    return el("section", el("h2", "Samples"), about, parts,
              table(columns, [_row(case) for case in sampled], "Device times of the unstamped block"), id="samples")

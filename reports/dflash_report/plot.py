"""Plots as SVG that stretches with the page; labels are HTML beside it, so that they never do."""

from . import samples, text
from .html import Html, el, percent


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def dots(points, kind):
    """Round dots whatever the stretch: lines of no length with round ends. Points in percent, y upwards."""
    return el("path", d="".join(f"M{number(x)} {number(100 - y)}h0" for x, y in points), class_=f"dots {kind}")


def line(points, kind):
    shape = "L".join(f"{number(x)} {number(100 - y)}" for x, y in points)
    return el("path", d=f"M{shape}", class_=f"curve {kind}") if points else None


def band(points, kind):
    """Points (x, low, high)."""
    if len(points) < 2:
        return None
    up = [f"{number(x)} {number(100 - high)}" for x, _, high in points]
    down = [f"{number(x)} {number(100 - low)}" for x, low, _ in reversed(points)]
    return el("path", d=f"M{'L'.join(up + down)}Z", class_=f"band {kind}")


def flat(y, kind):
    return el("path", d=f"M0 {number(100 - y)}H100", class_=f"rule {kind}")


def upright(x, kind):
    return el("path", d=f"M{number(x)} 0V100", class_=f"rule {kind}")


def svg(*inside):
    return el("svg", inside, viewBox="0 0 100 100", preserveAspectRatio="none", aria_hidden="true", focusable="false")


def y_axis(axis, most=4):
    return el("div", [el("span", text.tick(value), style=f"bottom:{percent(100 * axis.at(value))}")
                      for value in samples.ticks(axis, most)], class_="yaxis", aria_hidden="true")


def grid(axis, most=4):
    return [flat(100 * axis.at(value), "grid") for value in samples.ticks(axis, most)]


def area(axis, label, marks, words=None, table=None):
    """The plot with its axis. Its dots can be walked with the arrow keys and pointed at: `words` tells each of them, or
    (id of a table, column) does, whose rows have the dots' order from the last one back."""
    inside = el("div", svg(grid(axis), marks), el("i", class_="cursor"), class_="area", role="img", tabindex="0",
                aria_label=label, data_words=";".join(words) if words else None,
                data_table=table[0] if table else None, data_column=table[1] if table else None)
    return Html(y_axis(axis) + inside)

"""The figure: largest scores of correct goldens, beside the scores at which defects are found."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

COLOURS = {"exact": "#0b6e99", "i8": "#c1660c", "f16": "#3b8132", "bf16": "#8a4fa3"}
DEFECTS = {"color": "#b3123b", "linestyle": "--"}
LEAST, MOST = 0.1, 1e4  # scores that are shown
POINTS, EXTREME = 200, 40  # of a curve: about so many, and so many at its end one by one


def defect_scores(records):
    """The score at which each planted defect was found, from the records of a self test."""
    return sorted(
        float(row["score"])
        for row in records
        if row["type"] == "defect" and row["defect"] and not row["lawful"] and row["found"] and not row["end_values"]
    )


def _thin(count):
    """Indexes from the extreme on."""
    apart = max(1, count // POINTS)
    return [i for i in range(count) if i < EXTREME or i % apart == 0]


def _above(axes, values, **style):
    """The share of values that are as large or larger."""
    values = sorted(values, reverse=True)
    kept = _thin(len(values))
    axes.step([values[i] for i in kept], [(i + 1) / len(values) for i in kept], where="pre", **style)


def _below(axes, values, **style):
    """The share of values that are as small or smaller."""
    values = sorted(values)
    kept = [i for i in _thin(len(values)) if values[i] <= MOST]
    x, shares = [values[i] for i in kept] + [MOST], [(i + 1) / len(values) for i in kept]
    axes.step(x, shares + shares[-1:], where="post", **style)


def draw(path, profiles, lambda_, defects):
    """Writes the SVG; equal input gives equal bytes."""
    matplotlib.rcParams.update({"svg.hashsalt": "dflash", "svg.fonttype": "none", "font.size": 9})
    figure, axes = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")
    for profile in profiles:
        scores = [max(draw.needed.values()) / lambda_ for draw in profile.draws if draw.needed]
        _above(axes, scores, color=COLOURS.get(profile.name), label=f"correct, {profile.name}: {len(scores)} goldens")
    if defects:
        far = sum(score > MOST for score in defects)
        _below(axes, defects, label=f"defects: {len(defects)},\n{far} of them further right", **DEFECTS)
    for line, side in ((0.7, "right"), (1, "left"), (2, "left")):
        axes.axvline(line, color="#999999", linewidth=0.8, zorder=0)
        axes.annotate(f"{line:g}", (line, 1.01), xycoords=("data", "axes fraction"), ha=side, va="bottom")
    axes.set(xscale="log", yscale="log", xlim=(LEAST, MOST), ylim=(None, 1.2))
    axes.set_xlabel(f"largest score at lambda {lambda_:g}")
    axes.set_ylabel("share of correct goldens at or above,\nof defects at or below")
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)

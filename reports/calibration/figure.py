"""The figure: largest scores of correct goldens, beside the scores at which defects are found."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

COLOURS = {"exact": "#0b6e99", "i8": "#c1660c", "f16": "#3b8132", "bf16": "#8a4fa3"}
FAR = 1e6  # scores above, infinite ones among them, stand here


def defect_scores(records):
    """The score at which each planted defect was found, from the records of a self test."""
    return sorted(
        float(row["score"])
        for row in records
        if row["type"] == "defect" and row["defect"] and not row["lawful"] and row["found"] and not row["end_values"]
    )


def _steps(axes, values, **style):
    values = sorted(min(value, FAR) for value in values)
    shares = [(i + 1) / len(values) for i in range(len(values))]
    axes.step(values, shares, where="post", **style)


def draw(path, profiles, lambda_, defects):
    """Writes the SVG; equal input gives equal bytes."""
    matplotlib.rcParams.update({"svg.hashsalt": "dflash", "font.size": 9, "svg.fonttype": "path"})
    figure, axes = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")
    for profile in profiles:
        scores = [max(draw.needed.values()) / lambda_ for draw in profile.draws if draw.needed]
        label = f"correct, {profile.name} ({len(scores)} goldens)"
        _steps(axes, [max(score, 1e-3) for score in scores], color=COLOURS.get(profile.name, "black"), label=label)
    if defects:
        style = {"color": "#b3123b", "linestyle": "--"}
        _steps(axes, defects, label=f"defects, where found ({len(defects)})", **style)
    for line in (0.7, 1, 2):
        axes.axvline(line, color="#777777", linewidth=0.8, zorder=0)
        axes.annotate(f"{line:g}", (line, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom")
    axes.set(xscale="log", ylim=(0, 1.01), ylabel="share of goldens, of defects")
    axes.set_xlabel(f"largest score at lambda {lambda_:.3g}")
    axes.legend(loc="center right", frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)

#!/usr/bin/env python3
"""Fits lambda to the scores that ci/calibrate collected: tables to stdout, all figures as JSON, the figure as SVG.

Exit status: 0 a lambda follows; 1 it does not hold, because a tail is heavier than exponential; 2 there are no files;
5 there are too few goldens to tell."""

import argparse
import json
import sys
from pathlib import Path

from calibration import analysis, figure, golden, scores

PROFILES = ("exact", "i8", "f16", "bf16")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="score files, or folders with them")
    add("--above", type=float, default=0.25, help="share of goldens that a tail is fitted to (%(default)s)")
    add("--probability", type=float, default=1e-4, help="of a false alarm in one verification (%(default)s)")
    add("--samples", type=int, default=1000, help="of the bootstrap (%(default)s)")
    add("--seed", type=int, default=1, help="of the bootstrap (%(default)s)")
    add("--preset", default=golden.PRESET, help="whose golden is verified (%(default)s)")
    add("--context", type=int, default=golden.CONTEXT, help="its context rows (%(default)s)")
    add("--at", type=float, default=scores.LAMBDA, help="lambda at which the figure shows scores (%(default)s)")
    add("--defects", type=Path, metavar="FILE", help="records of 'selftest --json', for the figure")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    add("--figure", type=Path, metavar="FILE", help="write the SVG")
    return parser.parse_args()


def table(head, rows):
    """Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def number(value):
    return "" if value is None else f"{value:.2f}"


def shape_of(group):
    return f"{group.shape:+.2f}{' heavy' if group.heavy else ''}"


def print_modes(profiles):
    print("## Tails by profile and mode\n")
    head = ["profile", "mode", "goldens", "elements", "largest lambda", "b", "lambda", "upper bound", "shape", "k",
            "growth"]
    rows = []
    for profile in profiles:
        for group in profile.modes:
            row = [profile.name, group.mode, str(group.goldens), f"{group.elements:.3g}", number(group.largest)]
            if group.tail is None:
                rows.append(row + [""] * (len(head) - len(row)))
                continue
            of = profile.of_mode[group.mode]
            row += [number(group.tail.b), number(of["lambda"]), number(of["upper"]), shape_of(group)]
            rows.append(row + [number(group.weibull.k), number(group.growth)])
    table(head, rows)


def print_lambdas(profiles):
    print("## Lambda of a profile, alone and chain together\n")
    rows = []
    for profile in profiles:
        row = [profile.name]
        for fitted in (profile.staged, profile.pooled):
            row += [number(fitted[key]) if fitted else "" for key in ("lambda", "upper", "grown")]
        rows.append(row)
    table(["profile", "by stage", "upper bound", "grown", "by mode", "upper bound", "grown"], rows)
    for profile in profiles:
        if profile.unfitted:
            print(f"{profile.name}: too few goldens for {', '.join(profile.unfitted)}\n")


def print_stages(profiles, count=6):
    print("## Stages with the largest lambda, and others with a heavy tail\n")
    rows = []
    for profile in profiles:
        ranked = sorted(profile.stages, key=lambda group: -group.largest)
        for group in ranked[:count] + [g for g in ranked[count:] if g.heavy]:
            row = [profile.name, f"{group.stage} ({group.mode})", str(group.goldens), number(group.largest)]
            rows.append(row + ([number(group.tail.b), shape_of(group)] if group.tail is not None else ["", ""]))
    table(["profile", "stage", "goldens", "largest lambda", "b", "shape"], rows)


def print_outliers(profiles):
    print("## Draws that need the largest lambda\n")
    rows = [
        [profile.name, number(value), stage, mode, draw.slice, f"--seed {draw.seed} --draw {draw.number}"]
        for profile in profiles
        for value, mode, stage, draw in profile.outliers()
    ]
    table(["profile", "lambda", "stage", "mode", "slice", "draw"], rows)


def print_failures(profiles):
    failed = [draw for profile in profiles for draw in profile.draws if draw.failure is not None]
    if not failed:
        return
    print("## Draws that failed\n")
    rows = [[d.slice, f"--seed {d.seed} --draw {d.number}", d.message.replace("|", "/")] for d in failed]
    table(["slice", "draw", "what"], rows)


def rounded(value):
    """Six digits: what differs beyond is the machine's mathematics."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def result(options, sizes, needed, profiles, defects):
    return {
        "lambda": needed,
        "holds": not any(profile.heavy for profile in profiles),
        "judged_at": scores.LAMBDA,
        "probability": options.probability,
        "confidence": analysis.CONFIDENCE,
        "above": options.above,
        "samples": options.samples,
        "golden": {"preset": options.preset, "context": options.context, "elements": sizes},
        "defects": {"found": len(defects), "smallest_score": defects[0]} if defects else None,
        "profiles": {profile.name: profile.as_json() for profile in profiles},
    }


def main():
    options = arguments()
    try:
        return calibrate(options, scores.find(options.files))
    except scores.Unreadable as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 2


def calibrate(options, files):
    """Fits, prints, and writes what the options ask for; the exit status."""
    if not files:
        print("calibrate: there are no score files (*.scores.jsonl, *.scores.jsonl.gz)", file=sys.stderr)
        return 2
    draws = [draw for path in files for draw in scores.read(path)]
    sizes = golden.stage_elements(options.preset, options.context)
    settings = analysis.Settings(options.above, options.probability, options.samples, options.seed)
    profiles = [
        analysis.Profile(name, mine, sizes, settings)
        for name in PROFILES
        if (mine := [draw for draw in draws if draw.profile == name])
    ]
    for show in (print_modes, print_lambdas, print_stages, print_outliers, print_failures):
        show(profiles)
    fitted = [profile.staged["upper"] for profile in profiles if profile.staged]
    if not fitted:
        print("calibrate: too few goldens to fit a tail", file=sys.stderr)
        return 5
    heavy = sum(len(profile.heavy) for profile in profiles)
    print(f"lambda that covers all profiles: {max(fitted):.2f}")
    if heavy:
        print(f"it does not hold: {heavy} tails are heavier than exponential; look at the error scale there first")
    defects = figure.defect_scores(scores.read_lines(options.defects)) if options.defects else []
    if defects:
        print(f"defects found: {len(defects)}, smallest score {defects[0]:.3g}")
    if options.json:
        figures = rounded(result(options, sizes, max(fitted), profiles, defects))
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.figure:
        figure.draw(options.figure, profiles, options.at, defects)
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())

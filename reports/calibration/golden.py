"""How many elements one verification of a preset's golden compares, by kind of stage: from the stage table and the
preset as the harness's sources have them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAGES = ROOT / "harness/include/dflash/stages.h"
PRESETS = ROOT / "harness/model/preset.c"
PRESET = "qwen3.8-27b"
CONTEXT = 2048  # rows of its one push (docs/goldens.md)


def geometry(name):
    """The numbers of a preset."""
    _, found, rest = PRESETS.read_text().partition(f'.name = "{name}"')
    if not found:
        raise ValueError(f"{PRESETS}: there is no preset {name}")
    rest = rest.partition(".name =")[0]
    return {key: float(value) for key, value in re.findall(r"\.(\w+) = ([\d.e-]+),", rest)}


def stage_elements(name=PRESET, context=CONTEXT):
    """Stage -> elements over all layers, of a full block and the whole head. Tokens have no error scale."""
    g = geometry(name)
    kv = g["kv_heads"] * g["head_dim"]
    rows = {"CONTEXT": context, "BLOCK": g["block"], "DRAFT": g["block"] - 1}
    widths = {
        "HIDDEN": g["hidden"],
        "Q": g["heads"] * g["head_dim"],
        "KV": kv,
        "KERNEL": 2 * g["conv_kernel"] * g["hidden"] / g["conv_group"],
        "INTERMEDIATE": g["intermediate"],
        "HEAD": g["vocab"],
        "RANK": g["selector_rank"],
    }
    table = re.findall(r'X\(\w+, "([\w.]+)", (ONCE|LAYER), \w+, (\w+), (\w+),', STAGES.read_text())
    return {
        stage: int(rows[kind] * widths[width] * (g["layers"] if scope == "LAYER" else 1))
        for stage, scope, kind, width in table
        if width != "TOP"
    }

"""The members of records that the report reads (docs/records.md), and their checks.

A member that is absent is absent; one of another kind than documented is an error, so that nothing behind this module
meets a surprise. Infinity and NaN come as strings and leave as floats."""

import math
import unicodedata

from .problem import Problem

SCHEMA, VERSION = "dflash-record", 1
LONGEST = 4000  # characters of a text that is shown; far more than any that the tool writes
SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

LAYERS = 10_000  # more than any drafter has

TEXT, NUMBER, TRUE, OBJECT, LAYER = "text", "a number", "true or false", "an object", "a layer"

SUBJECT = {"file": TEXT, "case": TEXT, "backend": TEXT, "device": TEXT, "profile": TEXT, "inputs_hash": TEXT}
SAMPLE = {key: NUMBER for key in ("n", "min", "median", "p95", "mad", "low", "high", "half_width", "lag1")}
STAGE = {"stage": TEXT, "layer": LAYER, "group": TEXT, "time": SAMPLE, "bytes": NUMBER, "operations": NUMBER,
         "bandwidth": NUMBER, "rate": NUMBER, "share": NUMBER, "bound": TEXT, "path": TEXT, "library_share": NUMBER}
GROUP = {"group": TEXT, "ns": NUMBER, "share_of_block": NUMBER, "bytes": NUMBER, "bandwidth": NUMBER, "share": NUMBER}
PEER = {"peer": TEXT, "way": TEXT, "library": TEXT, "ns": NUMBER, "share_read": NUMBER, "least_share": NUMBER, "ratio": NUMBER,
        "counts": TRUE}
BLOCK = {"device": SAMPLE, "wall": SAMPLE, "cpu": SAMPLE, "bytes": NUMBER, "operations": NUMBER, "bandwidth": NUMBER,
         "rate": NUMBER, "share_read": NUMBER, "share_matrix": NUMBER, "share_read_beside": NUMBER}
FIRST = {"stage": TEXT, "layer": NUMBER, "mode": TEXT, "place": TEXT, "pattern": TEXT, "got": NUMBER,
         "expected": NUMBER, "score": NUMBER, "bad": NUMBER, "elements": NUMBER}

MOVED = {"name": TEXT, "a_ns": NUMBER, "b_ns": NUMBER, "change": NUMBER, "low": NUMBER, "high": NUMBER, "p": NUMBER,
         "verdict": TEXT}
FINDING = {"kind": TEXT, "verdict": TEXT, "name": TEXT, "message": TEXT, "times": NUMBER}

MEMBERS = {
    "run": {"command": TEXT, "tool": TEXT, "backend": TEXT, "environment": OBJECT},
    "model": SUBJECT | {"backend_version": TEXT, "device_name": TEXT, "driver": TEXT, "options": OBJECT, "path": TEXT,
                        "resident_bytes": NUMBER, "open_s": NUMBER},
    "verdict": SUBJECT | {"mode": TEXT, "stage": TEXT, "layer": LAYER, "outcome": TEXT, "score": NUMBER,
                          "elements": NUMBER, "bad": NUMBER, "place": TEXT, "got": NUMBER, "expected": NUMBER,
                          "pattern": TEXT, "cause": TEXT, "covered_by": TEXT, "note": TEXT, "inherited": TRUE,
                          "max_abs": NUMBER, "max_ulp": NUMBER},
    "case": SUBJECT | {"modes": TEXT, "outcome": TEXT, "message": TEXT, "first": FIRST, "passed": NUMBER,
                       "failed": NUMBER, "other": NUMBER, "largest_score": NUMBER, "reproduce": TEXT,
                       "elapsed_s": NUMBER, "settings": TEXT},
    "bench": SUBJECT | {"what": TEXT, "side": TEXT, "cold": TRUE, "cache_hot": TRUE, "parity": {"outcome": TEXT},
                        "stopped_by": TEXT, "path": TEXT, "block": BLOCK, "stamped": SAMPLE,
                        "overhead_share": NUMBER, "sum_share": NUMBER, "stages_note": TEXT, "implausible": TEXT,
                        "roofline": {"read_bytes_per_s": NUMBER, "matrix_operations_per_s": NUMBER},
                        "stages": [STAGE], "groups": [GROUP], "peers": [PEER], "samples": [NUMBER], "state_before": OBJECT,
                        "state_after": OBJECT, "environment": OBJECT},
    "bad_input": {"file": TEXT, "message": TEXT, "outcome": TEXT},
    "draw": {"outcome": TEXT, "message": TEXT, "verdicts": NUMBER, "passed": NUMBER, "failed": NUMBER,
             "largest_score": NUMBER, "reproduce": TEXT, "draw": NUMBER},
    "defect": {"defect": TEXT, "lawful": TRUE, "found": TRUE, "outcome": TEXT, "end_values": TRUE, "hidden": TEXT},
    "comparison": {"case": TEXT, "what": TEXT, "profile": TEXT, "golden": TEXT, "file": TEXT, "caches": TEXT, "machine": TEXT, "backend": TEXT,
                   "device": TEXT, "backend_b": TEXT, "verdict": TEXT, "message": TEXT, "differs": TEXT, "a_count": NUMBER, "b_count": NUMBER,
                   "left_out": NUMBER, "units": TEXT, "block": MOVED, "groups": [MOVED], "stages": [MOVED]},
    "gate": {"exit": NUMBER, "message": TEXT, "promise": TEXT, "baseline": TEXT, "findings": [FINDING]},
    "summary": {"cases": NUMBER, "exit": NUMBER, "elapsed_s": NUMBER},
}
NEEDED = {"verdict": ("mode", "stage", "outcome"), "case": ("outcome",), "bench": ("block",), "draw": ("outcome",),
          "comparison": ("verdict",), "gate": ("exit",)}


def clean(text, longest=LONGEST):
    """Text that any page can hold: what would move the cursor, turn the writing direction or is no character is
    shown by its code."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" if unicodedata.category(c) != "Cn" else "\ufffd"
                       for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def cleaned(value, depth=0):
    """Objects of free form, such as an environment: texts cleaned, numbers as floats, not deeper than four."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (bool, type(None))):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    if depth > 3:
        return "…"
    if isinstance(value, list):
        return [cleaned(inner, depth + 1) for inner in value[:1000]]
    return {clean(key): cleaned(inner, depth + 1) for key, inner in list(value.items())[:1000]}


def number(value):
    """A float; None when it is none. Whole numbers beyond a float's range become infinite."""
    if isinstance(value, str):
        return SPECIAL.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def is_layer(value):
    found = number(value)
    return found is not None and math.isfinite(found) and found == int(found) and 0 <= found < LAYERS


def _member(kind, value, name):
    if isinstance(kind, dict):
        return _members(kind, value, name)
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise Problem(f"'{name}' is not a list")
        return [_member(kind[0], inner, f"{name}[{i}]") for i, inner in enumerate(value)]
    if kind == NUMBER and (taken := number(value)) is not None:
        return taken
    if kind == LAYER and is_layer(value):
        return int(value)
    if kind == TEXT and isinstance(value, str):
        return clean(value)
    if kind == TRUE and isinstance(value, bool) or kind == OBJECT and isinstance(value, dict):
        return cleaned(value)
    raise Problem(f"'{name}' is not {kind}")


def _members(table, value, name):
    if not isinstance(value, dict):
        raise Problem(f"'{name}' is not an object")
    inside = f"{name}." if name else ""
    return {key: _member(kind, value[key], inside + key) for key, kind in table.items() if value.get(key) is not None}


def record(value):
    """The record with the members that the report reads; None for a type that it does not know. Raises Problem."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise Problem(f'is no record ("schema": "{SCHEMA}")')
    if value.get("version") != VERSION or isinstance(value.get("version"), bool):
        raise Problem(f"has version {clean(str(value.get('version')), 40)} of the records; this reads {VERSION}")
    kind = value.get("type")
    if not isinstance(kind, str):
        raise Problem("has no 'type'")
    if kind not in MEMBERS:
        return None
    taken = _members(MEMBERS[kind], value, "")
    missing = [name for name in NEEDED.get(kind, ()) if name not in taken]
    if missing:
        raise Problem(f"{kind} without '{missing[0]}'")
    return taken | {"type": kind}

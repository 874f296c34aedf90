"""Records of peers (docs/records.md), written beside their place and renamed."""

import json
import os
import platform
import secrets
import time
from pathlib import Path
from typing import Any

from dflash_report.problem import Problem

LEAST_SHARE = 0.58  # of the streaming read that a peer must reach, or a ratio to it does not count
SCHEMA = {"schema": "dflash-record", "version": 1}


def run(command: str, library: str) -> dict[str, Any]:
    environment = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "host": platform.node() or "unknown",
                   "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
                   "python": platform.python_version(), "library": library, "load": list(os.getloadavg())}
    return SCHEMA | {"type": "run", "id": secrets.token_hex(16), "command": command, "tool": "peers", "backend": "peers",
                     "environment": environment}


def _plain(value: Any) -> Any:
    """Infinity and NaN as the records' strings."""
    if isinstance(value, float) and value - value != 0:
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def write(path: Path, records: list[dict[str, Any]]) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text("".join(json.dumps(_plain(record), allow_nan=False) + "\n" for record in records))
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise Problem(f"{path}: cannot be written: {error.strerror}") from None


def told(record: dict[str, Any]) -> str:
    """The record as a line of the table."""
    head = f"{record['peer']:5} {record['way']:9}"
    if record["outcome"] not in ("pass", "mismatch"):
        return f"{head} {record['outcome']}: {record['message']}"
    right = (f"error {record['error']:.2g} in a layer ({record['error_stage']}), {record['end_error']:.2g} at the end; tokens "
             f"{record['chosen_agree']} and {record['plain_agree']} of {record['drafted']}")
    if record["outcome"] != "pass":
        return f"{head} {record['outcome']}: {record['message']}; {right}"
    if "time" not in record:
        return f"{head} right, not timed; {right}"
    ns, width = record["time"]["median"], record["time"].get("half_width")
    interval = f" +-{100 * width:.1f}%" if width is not None else ""
    doubt = "" if record["share_read"] >= record["least_share"] else "; the ratio does not count"
    return (f"{head} {ns / 1e6:.3f} ms{interval}  {record['bytes'] / 1e9:.2f} GB, {100 * record['share_read']:.0f}% of read"
            f"{doubt}; {right}")

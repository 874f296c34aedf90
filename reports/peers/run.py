"""One golden, several peers: compared, and timed only where that found nothing wrong."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from dflash_report.fields import clean
from dflash_report.problem import UNAVAILABLE, Problem

from . import check, records, sampling, ways
from .assemble import FORMS, Assembly
from .block import Drafted, Layer, Tail
from .golden import Case, Golden, opened

BEGIN = time.monotonic()


def _progress(text: str) -> None:
    print(f"peers: {time.monotonic() - BEGIN:5.1f} s  {text}", file=sys.stderr, flush=True)


def _first_line(error: Exception) -> str:
    return clean(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no text'}", 300)


class Peer:
    """One form of the weights on the device, and what its stages showed."""

    def __init__(self, golden: Golden, case: Case, form: str, device: str) -> None:
        self.golden, self.case, self.form, self.device = golden, case, form, device
        made = Assembly(golden, case, form, device)
        self.parts: list[Layer] = [made.layer(n) for n in range(golden.geometry.layers)]
        self.end: Tail = made.tail()
        self.h = torch.from_numpy(case.h).to(device, FORMS[form])
        with torch.no_grad():
            self.worst = check.worst(check.layers(golden, case, self.parts, FORMS[form]))

    def judged(self, drafted: Drafted) -> dict[str, Any]:
        """Members of the record that say whether it was right."""
        alone, end = check.LIMITS[FORMS[self.form]]
        ends = check.worst(check.ends(self.golden, self.case, drafted))
        chosen, plain = check.agreement(self.case, drafted)
        message = check.tokens(self.golden, self.case, drafted)
        for found, limit in ((self.worst, alone), (ends, end)):
            if not found.error <= limit:
                message = f"{found.stage} is off by {found.error:.3g} of its length, where {limit:g} is allowed"
        return {"outcome": "mismatch" if message else "pass", "error": self.worst.error, "error_stage": self.worst.stage,
                "error_limit": alone, "end_error": ends.error, "end_error_stage": ends.stage, "end_error_limit": end,
                "chosen_agree": chosen, "plain_agree": plain, "drafted": self.case.n_draft,
                } | ({"message": message} if message else {})


def _identity(golden: Golden, case: Case, device: str) -> dict[str, Any]:
    name = torch.cuda.get_device_name(0) if device == "cuda" else "CPU"
    return {"file": golden.path, "case": case.name, "device": device, "device_name": name} | golden.hashes | {
        "geometry": golden.geometry.attributes, "rows": case.rows, "n_draft": case.n_draft,
        "head_width": case.head_width, "context": len(case.keys[0]), "library": f"PyTorch {torch.__version__}"}


def _timed(run: Callable[[], Drafted], options: argparse.Namespace, queued: bool) -> dict[str, Any]:
    from .device import event_time, warm
    warm(run, options.warmup)
    found = sampling.sample(lambda: event_time(run, queued), options.confidence, options.budget)
    return {"time": sampling.summary(found.samples), "stopped_by": found.stopped_by, "samples": found.samples}


def _ways(peer: Peer, options: argparse.Namespace, read: float) -> list[dict[str, Any]]:
    found = []
    for way in ["eager"] if options.check else options.way:
        _progress(f"{peer.form} {way}")
        record = {"peer": peer.form, "way": way}
        try:
            run = ways.prepared(way, peer.parts, peer.end, peer.case, peer.golden.geometry, peer.h)
            record |= peer.judged(run())
        except RuntimeError as error:  # a compiler that is not there, kernels that are not for this device, no memory
            record |= {"outcome": "error", "message": _first_line(error)}
        if record["outcome"] == "pass" and not options.check:
            record |= _timed(run, options, way != "eager")
            size = ways.bytes_read(peer.parts, peer.end, peer.case)
            bandwidth = size / record["time"]["median"] * 1e9
            record |= {"bytes": size, "bandwidth": bandwidth, "read_bytes_per_s": read, "share_read": bandwidth / read,
                       "least_share": records.LEAST_SHARE}
        found.append(record)
    return found


def _form(golden: Golden, case: Case, form: str, device: str, options: argparse.Namespace, read: float) -> list[dict[str, Any]]:
    """All ways of a form; one record that says why where it cannot be had here."""
    try:
        peer = Peer(golden, case, form, device)
    except torch.cuda.OutOfMemoryError as error:
        return [{"peer": form, "way": "any", "outcome": "unavailable", "message": _first_line(error)}]
    except Problem as problem:
        if problem.status != UNAVAILABLE:
            raise
        return [{"peer": form, "way": "any", "outcome": "unavailable", "message": str(problem)}]
    with torch.no_grad():
        return _ways(peer, options, read)


def _read(device: str) -> float:
    from .device import read_rate
    _progress("streaming read")
    rate = read_rate(device)
    torch.cuda.empty_cache()
    return rate


def _all(options: argparse.Namespace, golden: Golden, device: str) -> list[dict[str, Any]]:
    case = golden.case(options.case)
    read = 0.0 if options.check else _read(device)
    found, identity = [], _identity(golden, case, device)
    for form in options.peer:
        _progress(f"{form}: reading weights")
        found += _form(golden, case, form, device, options, read)
        if device == "cuda":
            torch.cuda.empty_cache()
    if not options.check:
        read = max(read, _read(device))
        for record in found:
            if "time" in record:
                record |= {"read_bytes_per_s": read, "share_read": record["bandwidth"] / read}
    return [records.SCHEMA | {"type": "peer"} | identity | record for record in found]


def measure(options: argparse.Namespace, device: str, command: str) -> int:
    """Prints a table, writes the records; 0, 1 when a peer is wrong, 3 when one cannot be had here."""
    torch.backends.cuda.matmul.allow_tf32 = False
    with opened(options.golden) as golden:
        found = _all(options, golden, device)
    for record in found:
        print(records.told(record))
    if device == "cuda" and not options.check and found:
        print(f"read: {max(record.get('read_bytes_per_s', 0) for record in found) / 1e9:.0f} GB/s, the best of several streaming reads")
    if options.json:
        records.write(options.json, [records.run(command, f"PyTorch {torch.__version__}"), *found])
    outcomes = {record["outcome"] for record in found}
    return 1 if outcomes & {"mismatch", "error"} else UNAVAILABLE if "unavailable" in outcomes else 0

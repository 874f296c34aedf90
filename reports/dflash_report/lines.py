"""JSON lines of records (docs/records.md), plain or gzipped, whole or cut off behind any line."""

import gzip
import json
import zlib

from . import fields
from .problem import NOTHING, Problem

LINE, FILE = 64 << 20, 2 << 30  # bytes that are read at most


def _refuse(text):
    raise ValueError(f"{text} is no JSON number")


def _whole(text):
    return int(text) if len(text) < 400 else float(text)  # as large as a float is; beyond that it is infinite


def parse(line):
    """An object of one line. Raises ValueError."""
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse, parse_int=_whole)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _raw(path):
    """Numbered lines as bytes, each with whether it is a whole one."""
    total = 0
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE + 1), b""), 1):
            total += len(line)
            if len(line) > LINE or total > FILE:
                raise Problem(f"{path}, line {number}: longer than a report reads")
            yield number, line, line.endswith(b"\n")


def _record(path, number, line):
    try:
        return fields.record(parse(line))
    except ValueError as error:
        raise Problem(f"{path}, line {number}: no JSON: {fields.clean(str(error), 200)}") from None
    except Problem as problem:
        raise Problem(f"{path}, line {number}: {problem}") from None


def read(path, notes):
    """The records of a file, in order. A last line that a crash broke off is left out, with a note."""
    records, count = [], 0
    try:
        for count, line, whole in _raw(path):
            try:
                taken = _record(path, count, line)
            except Problem:
                if whole or count == 1:
                    raise
                notes.append(f"{path.name}: its last line is broken off and was left out")
                break
            records += [taken] if taken else []
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path}: cannot be read: {fields.clean(reason, 200)}") from None
    if count == 0:
        raise Problem(f"{path}: is empty", NOTHING)
    return records

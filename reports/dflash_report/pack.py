"""Packs of records in a history (docs/history.md): zlib, JSON lines, and their numbers apart, as columns."""

import re
import struct
import zlib

from .lines import parse
from .problem import Problem

LARGEST = 256 << 20  # bytes of an inflated pack
PIECES = re.compile(r'("(?:[^"\\]|\\.)*":?|\x01)')


def _inflate(pack):
    stream = zlib.decompressobj()
    data = stream.decompress(pack, LARGEST)
    if not stream.eof:
        raise ValueError("cut off, or too large")
    return data


def _column(data, at, count):
    """(where the next column begins, this one's numbers)"""
    kind = data[at]
    if kind > 24 or 8 < kind < 17:
        raise ValueError(f"a column of kind {kind}")
    at, width, before = at + 1, (kind & 15) or 8, 0
    if kind > 16:
        before = struct.unpack_from("<q", data, at)[0]
        at += 8
    if at + width * count > len(data):
        raise ValueError("a column is cut off")
    rows = zip(*(data[at + plane * count : at + (plane + 1) * count] for plane in range(width)))
    if kind == 0:
        return at + width * count, [struct.unpack(">d", bytes(row))[0] for row in rows]
    numbers = []
    for row in rows:
        z = int.from_bytes(row, "big")
        numbers.append(before + (z >> 1 if z % 2 == 0 else -((z + 1) >> 1)))
        before = numbers[-1] if kind < 16 else before
    return at + width * count, numbers


def _lines(data):
    size = struct.unpack_from("<I", data)[0]
    if 4 + size > len(data):
        raise ValueError("its text is cut off")
    pieces, places, name = PIECES.split(data[4 : 4 + size].decode()), {}, ""
    for i, piece in enumerate(pieces):
        if piece.endswith('":'):
            name = piece
        elif piece == "\x01":
            places.setdefault(name, []).append(i)
    at = 4 + size
    for where in places.values():
        at, numbers = _column(data, at, len(where))
        for i, number in zip(where, numbers):
            pieces[i] = repr(number)
    return "".join(pieces).split("\n")


def unpack(pack):
    """The lines of a pack as JSON values. Raises Problem."""
    try:
        return [parse(line.encode()) for line in _lines(_inflate(pack)) if line]
    except (ValueError, IndexError, struct.error, zlib.error, TypeError) as error:
        raise Problem(f"damaged records: {error}") from None

"""Stored tensors, decoded exactly (docs/storages-and-sidecars.md). NumPy alone: what a device decodes rests on this."""

from dataclasses import dataclass

import numpy as np

from dflash_report.problem import Problem

GROUP = 32  # columns that share a scale in q4tp
RUNGS = 32
FLOATS = {"f32": np.float32, "f16": np.uint16, "bf16": np.uint16}


@dataclass(frozen=True)
class Stored:
    """A tensor as its golden holds it: bits of floats in the tensor's shape, or the bytes of a quantised matrix."""

    name: str
    storage: str
    shape: tuple[int, ...]
    data: np.ndarray


def code_bytes(cols: int) -> int:
    """Bytes of a row's 5-bit codes."""
    return -(-5 * (cols // GROUP) // 8)


def stored_bytes(storage: str, shape: tuple[int, ...]) -> int:
    """Bytes that a tensor takes as its storage says. Raises ValueError where the storage has no such shape."""
    if storage in FLOATS:
        return int(np.prod(shape)) * np.dtype(FLOATS[storage]).itemsize
    if len(shape) != 2 or storage not in ("q8_2f", "q4tp"):
        raise ValueError(f"{storage!r} is no storage of a tensor of {len(shape)} dimensions")
    rows, cols = shape
    if storage == "q8_2f":
        return rows * cols + 2 * rows + 2 * cols
    if cols % GROUP:
        raise ValueError(f"q4tp with {cols} columns, no multiple of {GROUP}")
    return rows * (cols // 2 + 4 + code_bytes(cols))


def _finite(stored: Stored, values: np.ndarray, what: str) -> np.ndarray:
    if not np.isfinite(values).all():
        raise Problem(f"{stored.name}: {what} is not finite")
    return values


def floats(stored: Stored) -> np.ndarray:
    """f32, f16 or bf16 as f32, which holds all of them exactly."""
    if stored.storage == "bf16":
        values = (stored.data.astype(np.uint32) << 16).view(np.float32)
    else:
        values = stored.data.view(np.float16).astype(np.float32) if stored.storage == "f16" else stored.data
    return _finite(stored, values, "a weight")


def two_fields(stored: Stored) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q8_2f: int8 [rows, cols], the rows' factors and the columns', f32."""
    rows, cols = stored.shape
    codes, scales = stored.data[: rows * cols].view(np.int8).reshape(rows, cols), stored.data[rows * cols :]
    factors = _finite(stored, scales.view(np.float16).astype(np.float32), "a scale")
    return codes, factors[:rows], factors[rows:]


def _ladders(ends: np.ndarray) -> np.ndarray:
    """f32 [rows, 32]. exp2 rounds once, from f64; each rung's product rounds to f32."""
    lo, step = np.exp2(ends.astype(np.float64)).astype(np.float32).T
    rungs = np.empty((len(ends), RUNGS), np.float32)
    rungs[:, 0] = lo
    with np.errstate(over="ignore"):
        for code in range(1, RUNGS):
            rungs[:, code] = rungs[:, code - 1] * step
    return rungs


def _codes(packed: np.ndarray, count: int) -> np.ndarray:
    """5-bit codes, least significant bit first, each row from a byte of its own."""
    padded = np.pad(packed, ((0, 0), (0, 1))).astype(np.uint16)
    bit = 5 * np.arange(count)
    pairs = padded[:, bit >> 3] | padded[:, (bit >> 3) + 1] << np.uint16(8)
    return (pairs >> (bit & 7).astype(np.uint16)) & np.uint16(31)


def ladder(stored: Stored) -> tuple[np.ndarray, np.ndarray]:
    """q4tp: nibbles u8 [rows, cols / 2], the low one first, and the groups' scales f32 [rows, cols / 32]."""
    rows, cols = stored.shape
    half, groups = cols // 2, cols // GROUP
    nibbles, rest = stored.data[: rows * half].reshape(rows, half), stored.data[rows * half :]
    ends = rest[: 4 * rows].view(np.float16).reshape(rows, 2)
    codes = _codes(rest[4 * rows :].reshape(rows, code_bytes(cols)), groups)
    scales = np.take_along_axis(_ladders(ends), codes.astype(np.intp), axis=1)
    return nibbles, _finite(stored, scales, "a scale")


def values(stored: Stored) -> np.ndarray:
    """The exact values, f64: for checks, since it takes 8 bytes a weight."""
    if stored.storage == "q8_2f":
        codes, rows, cols = two_fields(stored)
        return codes * rows.astype(np.float64)[:, None] * cols.astype(np.float64)
    if stored.storage == "q4tp":
        nibbles, scales = ladder(stored)
        codes = np.stack((nibbles & 15, nibbles >> 4), axis=-1).reshape(stored.shape).astype(np.float64) - 8
        return codes * np.repeat(scales.astype(np.float64), GROUP, axis=1)
    return floats(stored).astype(np.float64)

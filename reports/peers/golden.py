"""A golden file (docs/golden-format.md): geometry, weights as they are stored, one case and its values."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dflash_report.fields import clean
from dflash_report.problem import UNAVAILABLE, Problem

from .storage import FLOATS, Stored, stored_bytes

SIZES = ("hidden", "intermediate", "layers", "heads", "kv_heads", "head_dim", "vocab", "block", "conv_group",
         "conv_kernel", "selector_rank", "selector_top")
MAY_BE_ZERO = ("window", "mask_token", "target_layers")
LARGEST, POSITIONS = 1 << 31, 1 << 62


@dataclass(frozen=True)
class Geometry:
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    block: int
    conv_group: int
    conv_kernel: int
    selector_rank: int
    selector_top: int
    windows: tuple[int, ...]  # one a layer; 0: the whole context
    no_rope: frozenset[int]
    eps: float
    inv_freq: np.ndarray
    attributes: dict[str, Any]  # as the file has them, for the record

    @property
    def groups(self) -> int:
        return self.hidden // self.conv_group


@dataclass(frozen=True)
class Case:
    name: str
    anchor_pos: int
    anchor_token: int
    rows: int
    n_draft: int
    head_width: int
    first: int
    h: np.ndarray
    keys: list[np.ndarray]    # [layer] of [len, kv_heads, head_dim], rotated
    values: list[np.ndarray]
    chosen: np.ndarray
    plain: np.ndarray


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Whatever is wrong with the file becomes one line that names it."""
    try:
        yield
    except Problem as problem:
        raise Problem(f"{path}: {problem}", problem.status) from None
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise Problem(f"{path}: cannot be read: {clean(str(error), 200)}") from None


def _integer(attributes: Any, name: str, least: int, limit: int = LARGEST) -> int:
    value = np.asarray(attributes[name]).reshape(()).item()
    if not isinstance(value, int) or not least <= value < limit:
        raise Problem(f"{name} is {value}, no integer from {least} on")
    return value


def _list(attributes: Any, name: str) -> list[int]:
    value = attributes.get(name)
    return [int(v) for v in np.ravel(value)] if value is not None and getattr(value, "shape", None) is not None else []


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Golden:
    """Open for reading. Everything that it hands out was checked against the geometry."""

    def __init__(self, path: str, file: Any) -> None:
        self.path, self._file = path, file
        if _text(file.attrs.get("format", "")) != "dflash-golden":
            raise Problem("is no golden file (attribute 'format')")
        self.geometry = self._geometry(file["geometry"])
        self.hashes = {name: _text(file.attrs.get(name, "")) for name in ("inputs_hash", "values_hash")}

    def _geometry(self, group: Any) -> Geometry:
        a = group.attrs
        sizes = {name: _integer(a, name, 1) for name in SIZES}
        if sizes["heads"] % sizes["kv_heads"] or sizes["head_dim"] % 2 or sizes["hidden"] % sizes["conv_group"]:
            raise Problem("geometry: heads, head_dim or hidden cannot be divided as they must be")
        windows = _list(a, "windows") or [_integer(a, "window", 0)] * sizes["layers"]
        if len(windows) != sizes["layers"] or min(windows) < 0:
            raise Problem("geometry: windows is neither empty nor one a layer")
        extra = {name: _integer(a, name, 0) for name in MAY_BE_ZERO}
        kept = sizes | extra | {name: _list(a, name) for name in ("taps", "windows", "no_rope")}
        kept |= {name: float(a[name]) for name in ("rope_theta", "eps")}
        inv_freq = self._array("geometry/inv_freq", (sizes["head_dim"] // 2,), np.float32)
        return Geometry(**sizes, windows=tuple(windows), no_rope=frozenset(kept["no_rope"]), eps=kept["eps"],
                        inv_freq=inv_freq, attributes={key: value for key, value in kept.items() if value != []})

    def _array(self, path: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        data = self._file[path]
        if tuple(data.shape) != shape:
            raise Problem(f"{path}: shape {tuple(data.shape)} where {shape} is expected")
        return np.ascontiguousarray(data[()], dtype=dtype)

    def tensor(self, path: str, shape: tuple[int, ...], kinds: tuple[str, ...] = ()) -> Stored:
        """A stored tensor; kinds: the storages it may have, none given for any."""
        with reading(self.path):
            return self._tensor(path, shape, kinds)

    def _tensor(self, path: str, shape: tuple[int, ...], kinds: tuple[str, ...]) -> Stored:
        data = self._file[path]
        storage, told = _text(data.attrs["storage"]), tuple(int(n) for n in np.ravel(data.attrs["shape"]))
        if told != shape or (kinds and storage not in kinds):
            raise Problem(f"{path}: {storage} {told} where {' or '.join(kinds) or 'a matrix'} {shape} is expected")
        try:
            size = stored_bytes(storage, shape)
        except ValueError as error:
            raise Problem(f"{path}: {error}") from None
        held = (shape, FLOATS[storage]) if storage in FLOATS else ((size,), np.uint8)
        return Stored(path, storage, shape, self._array(path, *held))

    def stage(self, case: Case, stage: str, layer: int | None = None) -> np.ndarray:
        path = f"cases/{case.name}/stages/{stage}" + (f"/{layer}" if layer is not None else "")
        with reading(self.path):
            return np.asarray(self._file[path][()], np.float32)

    def case(self, name: str | None) -> Case:
        """The case of that name; without one what bench takes, main or the first."""
        with reading(self.path):
            return self._case(name)

    def _case(self, name: str | None) -> Case:
        cases = self._file["cases"]
        name = name or ("main" if "main" in cases else next(iter(sorted(cases)), ""))
        if name not in cases:
            raise Problem(f"no case '{name}'; there are: {', '.join(sorted(cases)[:20])}")
        g, at, a = self.geometry, f"cases/{name}", cases[name].attrs
        rows, drafted = _integer(a, "rows", 2), _integer(a, "n_draft", 1)
        width = _integer(a, "head_width", g.selector_top)
        if rows > g.block or drafted >= rows or width > g.vocab:
            raise Problem(f"{at}: rows, n_draft or head_width is beyond the geometry")
        token = _integer(a, "anchor_token", 0)
        if token >= g.vocab:
            raise Problem(f"{at}: anchor_token {token} is no token")
        state = self._file[f"{at}/context_state"]
        length = _integer(state.attrs, "len", 0)
        held = (length, g.kv_heads, g.head_dim)
        kv = [[self._array(f"{at}/context_state/{x}/{n}", held, np.float32) for n in range(g.layers)] for x in "kv"]
        return Case(name, _integer(a, "anchor_pos", 0, POSITIONS), token, rows, drafted, width,
                    _integer(state.attrs, "first", 0, POSITIONS),
                    self._array(f"{at}/input/h", (rows, g.hidden), np.float32), kv[0], kv[1],
                    self._array(f"{at}/output/chosen", (drafted,), np.int64),
                    self._array(f"{at}/output/plain", (drafted,), np.int64))


@contextmanager
def opened(path: str) -> Iterator[Golden]:
    """Raises Problem for a file that is none."""
    try:
        import h5py
    except ImportError:
        raise Problem("Python has no h5py here, which reads golden files", UNAVAILABLE) from None
    if not Path(path).is_file():
        raise Problem(f"{path}: there is no such file")
    with ExitStack() as held:
        with reading(path):
            golden = Golden(path, held.enter_context(h5py.File(path, "r")))
        yield golden

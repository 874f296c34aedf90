"""A golden's weights and case in the form that a peer multiplies: decoded on the device, joined where products can be."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dflash_report.problem import UNAVAILABLE, Problem

from . import storage
from .block import CHUNK, Int4, Int8, Layer, Matrix, Tail
from .golden import Case, Golden
from .storage import GROUP, Stored

FORMS = {"f32": torch.float32, "bf16": torch.bfloat16, "int4": torch.bfloat16}  # of activations, and of what is not int4
AT_ONCE = 1 << 28  # elements that are decoded at a time


def _dense(codes: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """codes * scale, rounded to f32, then to dtype."""
    return (codes.float() * scale).to(dtype)


def _pieces(stored: Stored) -> list[slice]:
    step = max(1, AT_ONCE // stored.shape[1])
    return [slice(row, row + step) for row in range(0, stored.shape[0], step)]


def _upload(array: np.ndarray, device: str) -> Tensor:
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


def dense(stored: Stored, dtype: torch.dtype, device: str) -> Tensor:
    """A tensor of floats, one rounding or two away from the exact values."""
    if stored.storage in storage.FLOATS:
        bits = {"f16": torch.float16, "bf16": torch.bfloat16}
        raw = stored.data.view(np.int16) if stored.storage in bits else stored.data
        held = _upload(raw, device)
        return (held.view(bits[stored.storage]) if stored.storage in bits else held).to(dtype)
    out = torch.empty(stored.shape, dtype=dtype, device=device)
    if stored.storage == "q8_2f":
        codes, rows, cols = storage.two_fields(stored)
        factors, fields = _upload(rows, device)[:, None], _upload(cols, device)
        for at in _pieces(stored):
            out[at] = _dense(_upload(codes[at], device), factors[at] * fields, dtype)
        return out
    nibbles, scales = storage.ladder(stored)
    for at in _pieces(stored):
        pairs = _upload(nibbles[at], device)
        codes = torch.stack((pairs & 15, pairs >> 4), dim=-1).view(len(pairs), -1, GROUP).float() - 8
        out[at] = _dense(codes, _upload(scales[at], device)[:, :, None], dtype).view(len(pairs), -1)
    return out


def int4(parts: Sequence[Stored], device: str) -> Int4:
    """q4tp matrices, one below the other: the same codes, each scale rounded to bf16. PyTorch's zero is the value of
    code 8, which is 0 here."""
    if device == "cpu":
        raise Problem("int4: PyTorch's int4 product is for CUDA devices", UNAVAILABLE)
    rows, cols = sum(part.shape[0] for part in parts), parts[0].shape[1]
    tiles = next((n for n in (8, 4, 2) if cols % (16 * n) == 0), 0)
    if rows % 8 or not tiles:
        raise Problem(f"int4: PyTorch has no int4 product for {rows} x {cols}", UNAVAILABLE)
    read = [storage.ladder(part) for part in parts]
    pairs = _upload(np.concatenate([nibbles for nibbles, _ in read]), device)
    swapped = (pairs & 15) << 4 | pairs >> 4  # its first element is the high nibble
    scales = _upload(np.concatenate([scales for _, scales in read]), device).to(torch.bfloat16).T
    return Int4(torch.ops.aten._convert_weight_to_int4pack(swapped, tiles),
                torch.stack((scales, torch.zeros_like(scales)), dim=-1).contiguous())


def int8(stored: Stored, rows: int, device: str) -> Int8:
    codes, factors, fields = storage.two_fields(stored)
    return Int8(_upload(codes[:rows], device), _upload(factors[:rows], device).to(torch.bfloat16),
                _upload(fields, device).to(torch.bfloat16))


class Assembly:
    """Builds the parts of one form on one device."""

    def __init__(self, golden: Golden, case: Case, form: str, device: str) -> None:
        self.golden, self.case, self.form, self.device = golden, case, form, device
        self.dtype = FORMS[form]

    def vector(self, name: str, *shape: int) -> Tensor:
        return dense(self.golden.tensor(f"weights/{name}", shape, ("f32",)), torch.float32, self.device)

    def matrix(self, cols: int, *parts: tuple[str, int]) -> Matrix:
        """Matrices of as many columns, one below the other."""
        read = [self.golden.tensor(f"weights/{name}", (rows, cols)) for name, rows in parts]
        if self.form == "int4" and all(part.storage == "q4tp" for part in read):
            return int4(read, self.device)
        if self.form == "int4" and parts[0][0].endswith("q_proj.weight"):
            raise Problem(f"int4: the projections are {read[0].storage}, not q4tp", UNAVAILABLE)
        return torch.cat([dense(part, self.dtype, self.device) for part in read])

    def _held(self, rows: np.ndarray) -> Tensor:
        """Context rows, then room for the block's, as [kv_heads, room, head_dim]."""
        room = -(-(len(rows) + self.case.rows) // CHUNK) * CHUNK
        out = torch.zeros((rows.shape[1], room, rows.shape[2]), dtype=self.dtype, device=self.device)
        out[:, : len(rows)] = _upload(rows, self.device).to(self.dtype).transpose(0, 1)
        return out

    def _hidden(self, layer: int, length: int) -> Tensor:
        """0 where a row sees, minus infinity elsewhere."""
        c, window = self.case, self.golden.geometry.windows[layer]
        own = c.anchor_pos + np.arange(c.rows)[:, None]
        held = c.first + np.arange(length)[None, :]
        seen = (held < c.anchor_pos) & ((window == 0) | (held >= own + 1 - window))
        room = -(-(length + c.rows) // CHUNK) * CHUNK
        mask = np.full((c.rows, room), -np.inf, np.float32)
        mask[:, :length][seen] = 0
        mask[:, length : length + c.rows] = 0
        return _upload(mask, self.device)

    def _angles(self, layer: int) -> tuple[Tensor, Tensor]:
        g, c = self.golden.geometry, self.case
        at = (c.anchor_pos + np.arange(c.rows)).astype(np.float32)[:, None] * g.inv_freq[None, :]
        angle = np.zeros_like(at) if layer in g.no_rope else at
        return tuple(_upload(f(angle.astype(np.float64)).astype(np.float32), self.device) for f in (np.cos, np.sin))

    def layer(self, n: int) -> Layer:
        g, keys = self.golden.geometry, self.case.keys[n]
        at, width, kv = f"layers.{n}.", g.heads * g.head_dim, g.kv_heads * g.head_dim
        cos, sin = self._angles(n)
        kernels = 2 * g.conv_kernel * g.groups

        def matrix(cols: int, *parts: tuple[str, int]) -> Matrix:
            return self.matrix(cols, *((f"{at}{name}.weight", rows) for name, rows in parts))

        return Layer(
            input_norm=self.vector(at + "input_layernorm.weight", g.hidden),
            post_norm=self.vector(at + "post_attention_layernorm.weight", g.hidden),
            q_norm=self.vector(at + "self_attn.q_norm.weight", g.head_dim),
            k_norm=self.vector(at + "self_attn.k_norm.weight", g.head_dim),
            attention_base=self.vector(at + "attention_conv.base_kernel", 2, g.conv_kernel, g.hidden),
            mlp_base=self.vector(at + "mlp_conv.base_kernel", 2, g.conv_kernel, g.hidden),
            attention_kernel=matrix(g.hidden, ("attention_conv.kernel_projection", kernels)),
            mlp_kernel=matrix(g.hidden, ("mlp_conv.kernel_projection", kernels)),
            qkv=matrix(g.hidden, ("self_attn.q_proj", width), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv)),
            out=matrix(width, ("self_attn.o_proj", g.hidden)),
            gate_up=matrix(g.hidden, ("mlp.gate_proj", g.intermediate), ("mlp.up_proj", g.intermediate)),
            down=matrix(g.intermediate, ("mlp.down_proj", g.hidden)),
            keys=self._held(keys), values=self._held(self.case.values[n]),
            place=torch.arange(len(keys), len(keys) + self.case.rows, device=self.device),
            hidden=self._hidden(n, len(keys)), cos=cos, sin=sin)

    def head(self) -> Matrix:
        g, width = self.golden.geometry, self.case.head_width
        stored = self.golden.tensor("target/head", (g.vocab, g.hidden))
        if self.form == "int4" and stored.storage == "q8_2f":
            return int8(stored, width, self.device)
        return dense(stored, self.dtype, self.device)[:width]

    def tail(self) -> Tail:
        g, books, name = self.golden.geometry, [], "candidate_selector."
        for book in ("predecessor_codebook", "successor_codebook"):
            stored = self.golden.tensor(f"weights/{name}{book}", (g.vocab, g.selector_rank), ("f16", "bf16", "f32"))
            kind = torch.bfloat16 if stored.storage == "bf16" else getattr(torch, {"f16": "float16", "f32": "float32"}[stored.storage])
            books.append(dense(stored, kind, self.device))
        return Tail(self.vector("norm.weight", g.hidden), self.head(),
                    self.matrix(g.hidden, (name + "hidden_projection.weight", g.selector_rank)), *books,
                    anchor=torch.tensor([self.case.anchor_token], device=self.device))

"""The block as PyTorch operations (docs/block.md): functions of tensors alone, so that one compiled layer serves all."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 256  # context rows that one product over the values takes: a sum over many more would run on few units


class Int4(NamedTuple):
    """What PyTorch's int4 product takes: codes in its own order, bf16 (scale, zero) of each group and row."""

    packed: Tensor
    scales: Tensor


class Int8(NamedTuple):
    """Codes, a factor of each row and of each column."""

    codes: Tensor
    rows: Tensor
    cols: Tensor


Matrix = Tensor | Int4 | Int8


class Layer(NamedTuple):
    input_norm: Tensor
    post_norm: Tensor
    q_norm: Tensor
    k_norm: Tensor
    attention_base: Tensor  # [2, conv_kernel, hidden]
    mlp_base: Tensor
    attention_kernel: Matrix
    mlp_kernel: Matrix
    qkv: Matrix
    out: Matrix
    gate_up: Matrix
    down: Matrix
    keys: Tensor    # [kv_heads, room, head_dim]: the context, then the block's rows, then nothing
    values: Tensor
    place: Tensor   # [rows]: where the block's rows stand in them
    hidden: Tensor  # [rows, room]: 0, or minus infinity for what a row does not see
    cos: Tensor     # [rows, head_dim / 2]; 1 and 0 on a layer without rotation
    sin: Tensor


class Tail(NamedTuple):
    norm: Tensor
    head: Matrix
    selector: Matrix
    predecessor: Tensor
    successor: Tensor
    anchor: Tensor  # [1]: the anchor's token


class Drafted(NamedTuple):
    norm: Tensor
    logits: Tensor
    selector: Tensor
    chosen: Tensor
    plain: Tensor


Kept = dict[str, Tensor] | None  # stages by name, for checks; None: nothing is kept


def _keep(kept: Kept, name: str, value: Tensor) -> Tensor:
    if kept is not None:
        kept[name] = value
    return value


def linear(x: Tensor, matrix: Matrix) -> Tensor:
    if isinstance(matrix, Int4):
        return torch.ops.aten._weight_int4pack_mm(x, matrix.packed, 32, matrix.scales)
    if isinstance(matrix, Int8):
        return F.linear(x * matrix.cols, matrix.codes.to(x.dtype)) * matrix.rows
    return F.linear(x, matrix)


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [rows, heads, head_dim], its halves turned by each row's angles."""
    lo, hi = x.float().chunk(2, dim=-1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((lo * c - hi * s, lo * s + hi * c), dim=-1).to(x.dtype)


def conv(x: Tensor, kernel: Tensor, base: Tensor, which: int) -> Tensor:
    """Causal over the block's rows; which: 0 before a sub-layer, 1 after it, with the same kernel. f32."""
    rows, hidden = x.shape
    taps = base.shape[1]
    factors = kernel.view(rows, 2, taps, -1)[:, which].float()
    groups = factors.shape[-1]
    total = torch.zeros_like(x, dtype=torch.float32)
    for tap in range(min(taps, rows)):
        dynamic = factors[:, tap].unsqueeze(-1).expand(rows, groups, hidden // groups).reshape(rows, hidden)
        total = total + (base[which, tap] + dynamic) * F.pad(x.float(), (0, 0, tap, 0))[:rows]
    return total


def attend(q: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
    """q [rows, heads, head_dim] over everything held; query head a reads head a / rep. [rows, heads * head_dim]."""
    rows, heads, width = q.shape
    kv, room, _ = keys.shape
    rep, pieces = heads // kv, room // CHUNK
    scaled = (q.float() * width**-0.5).to(q.dtype)
    asked = scaled.view(rows, kv, rep, width).permute(1, 2, 0, 3).reshape(kv, rep * rows, width)
    scores = torch.bmm(asked, keys.transpose(1, 2)).float().view(kv, rep, rows, room) + hidden
    p = scores.softmax(dim=-1).to(q.dtype).view(kv, rep * rows, pieces, CHUNK).transpose(1, 2)
    parts = torch.bmm(p.reshape(kv * pieces, rep * rows, CHUNK), values.view(kv * pieces, CHUNK, width))
    mixed = parts.view(kv, pieces, rep, rows, width).float().sum(1)
    return mixed.permute(2, 0, 1, 3).reshape(rows, heads * width).to(q.dtype)


def attention(h: Tensor, w: Layer, eps: float, kept: Kept = None) -> Tensor:
    rows, width, kv = h.shape[0], w.keys.shape[2], w.keys.shape[0]
    x = _keep(kept, "attn.norm", rms(h, w.input_norm, eps))
    kernel = _keep(kept, "attn.kernel", linear(x, w.attention_kernel))
    xc = _keep(kept, "attn.conv_in", conv(x, kernel, w.attention_base, 0).to(h.dtype))
    qkv = linear(xc, w.qkv).view(rows, -1, width)
    q, k, v = qkv.split((qkv.shape[1] - 2 * kv, kv, kv), dim=1)
    q = _keep(kept, "attn.q", rotate(rms(q, w.q_norm, eps), w.cos, w.sin))
    k = _keep(kept, "attn.k", rotate(rms(k, w.k_norm, eps), w.cos, w.sin))
    w.keys[:, w.place] = k.transpose(0, 1)
    w.values[:, w.place] = _keep(kept, "attn.v_proj", v).transpose(0, 1)
    mix = _keep(kept, "attn.mix", attend(q, w.keys, w.values, w.hidden))
    o = _keep(kept, "attn.o_proj", linear(mix, w.out))
    return _keep(kept, "attn.out", (h.float() + conv(o, kernel, w.attention_base, 1)).to(h.dtype))


def mlp(h: Tensor, w: Layer, eps: float, kept: Kept = None) -> Tensor:
    x = _keep(kept, "mlp.norm", rms(h, w.post_norm, eps))
    kernel = _keep(kept, "mlp.kernel", linear(x, w.mlp_kernel))
    xc = _keep(kept, "mlp.conv_in", conv(x, kernel, w.mlp_base, 0).to(h.dtype))
    gate, up = linear(xc, w.gate_up).chunk(2, dim=-1)
    act = _keep(kept, "mlp.act", (F.silu(_keep(kept, "mlp.gate", gate).float()) * _keep(kept, "mlp.up", up)).to(h.dtype))
    down = _keep(kept, "mlp.down", linear(act, w.down))
    return _keep(kept, "mlp.out", (h.float() + conv(down, kernel, w.mlp_base, 1)).to(h.dtype))


def layer(h: Tensor, w: Layer, eps: float, kept: Kept = None) -> Tensor:
    return mlp(attention(h, w, eps, kept), w, eps, kept)

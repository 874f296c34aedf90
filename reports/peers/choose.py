"""From the last layer's rows to tokens, all on the device."""

import torch
from torch import Tensor

from .block import Drafted, Tail, linear, rms

PIECE = 128  # logits whose largest stands for them: the best k lie in the k best pieces


def top(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, largest first, and where they stand. Equal ones come as PyTorch gives them."""
    rows, width = logits.shape
    if width % PIECE or width // PIECE <= k:
        return torch.topk(logits, k)
    pieces = logits.view(rows, width // PIECE, PIECE)
    best = torch.topk(pieces.amax(-1), k).indices
    near = pieces.gather(1, best.unsqueeze(-1).expand(rows, k, PIECE)).reshape(rows, k * PIECE)
    values, at = torch.topk(near, k)
    return values, best.gather(1, at // PIECE) * PIECE + at % PIECE


def choose(logits: Tensor, ids: Tensor, hidden: Tensor, w: Tail) -> Tensor:
    """The chain of choices. All pairs of neighbours are scored at once; then each row looks up what follows the row before."""
    rows, k = ids.shape
    before = torch.cat((w.anchor.expand(1, k), ids[:-1]))
    left = w.predecessor[before].float() * hidden.float().unsqueeze(1)
    right = w.successor[ids].float()
    scores = (left.unsqueeze(2) * right.unsqueeze(1)).sum(-1) + logits.float().unsqueeze(1)
    follows = scores.argmax(-1)  # [rows, k]: the best candidate after each candidate of the row before
    at = follows[0, :1]
    chain = [at]
    for row in range(1, rows):
        at = follows[row].gather(0, at)
        chain.append(at)
    return ids.gather(1, torch.stack(chain)).view(-1)


def tail(h: Tensor, w: Tail, drafted: int, k: int, eps: float) -> Drafted:
    x = rms(h, w.norm, eps)
    rows = x[1 : 1 + drafted]
    logits, hidden = linear(rows, w.head), linear(rows, w.selector)
    values, ids = top(logits, k)
    return Drafted(x, logits, hidden, choose(values, ids, hidden, w), ids[:, 0])

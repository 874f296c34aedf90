"""What is timed was right: every stage against the golden's values, and the tokens against the peer's own logits."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import block, storage
from .block import Drafted, Layer
from .golden import Case, Golden

# Largest relative error of a row, by the activations' type: of a stage in a layer that starts from golden rows, and of
# what the whole block ends with. docs/peers.md tells what correct runs show and what a defect does.
LIMITS = {torch.float32: (1e-4, 1e-3), torch.bfloat16: (0.03, 0.06)}
NEAR = 1e-3  # a chosen token may be so far below the best score, as a share of it: sums in f32 differ in order


@dataclass(frozen=True)
class Worst:
    error: float
    stage: str


def relative(got: Tensor, want: np.ndarray) -> float:
    """The largest |got - want| / |want| of a row, by Euclidean length; infinite where anything is not finite."""
    expected = torch.from_numpy(want).to(got.device).double().reshape(len(want), -1)
    off = (got.double().reshape(expected.shape) - expected).norm(dim=1)
    length = expected.norm(dim=1)
    share = torch.where(off == 0, 0, off / length)
    return share.max().item() if bool(torch.isfinite(share).all()) else float("inf")


def worst(errors: dict[str, float]) -> Worst:
    stage = max(errors, key=lambda name: errors[name])
    return Worst(errors[stage], stage)


def layers(golden: Golden, case: Case, parts: list[Layer], dtype: torch.dtype) -> dict[str, float]:
    """Errors of every stage of every layer, each layer begun with the golden's own rows."""
    errors = {}
    for n, part in enumerate(parts):
        h = golden.stage(case, "mlp.out", n - 1) if n else case.h
        kept: dict[str, Tensor] = {}
        block.layer(torch.from_numpy(h).to(part.keys.device, dtype), part, golden.geometry.eps, kept)
        errors |= {f"{name}/{n}": relative(value, golden.stage(case, name, n)) for name, value in kept.items()}
    return errors


def ends(golden: Golden, case: Case, drafted: Drafted) -> dict[str, float]:
    named = {"final.norm": drafted.norm, "head.logits": drafted.logits, "selector.hidden": drafted.selector}
    return {name: relative(value, golden.stage(case, name)) for name, value in named.items()}


def _book(golden: Golden, name: str) -> np.ndarray:
    g = golden.geometry
    shape = (g.vocab, g.selector_rank)
    return storage.floats(golden.tensor(f"weights/candidate_selector.{name}_codebook", shape, ("f16", "bf16", "f32")))


def tokens(golden: Golden, case: Case, drafted: Drafted) -> str:
    """What is wrong with the tokens, given the peer's own logits; "" when nothing is."""
    logits, hidden = drafted.logits.double().cpu().numpy(), drafted.selector.double().cpu().numpy()
    chosen, plain = drafted.chosen.tolist(), drafted.plain.tolist()
    predecessor, successor = _book(golden, "predecessor"), _book(golden, "successor")
    before = case.anchor_token
    for row, (token, top) in enumerate(zip(chosen, plain)):
        of_row = logits[row]
        least = np.partition(of_row, -golden.geometry.selector_top)[-golden.geometry.selector_top]
        if of_row[top] != of_row.max():
            return f"row {row}: plain token {top} is not the top one"
        near = np.flatnonzero(of_row >= least)
        scores = of_row[near] + (predecessor[before] * hidden[row] * successor[near].astype(np.float64)).sum(1)
        mine = scores[near == token]
        best = scores[of_row[near] > least].max(initial=-np.inf)  # of several equal to the last any may be a candidate
        if len(mine) == 0 or mine[0] < best - NEAR * max(1.0, abs(best)):
            return f"row {row}: token {token} has not the best score"
        before = token
    return ""


def agreement(case: Case, drafted: Drafted) -> tuple[int, int]:
    """How many chosen and plain tokens are the golden's."""
    pairs = ((drafted.chosen, case.chosen), (drafted.plain, case.plain))
    return tuple(int((mine.cpu().numpy() == golden).sum()) for mine, golden in pairs)

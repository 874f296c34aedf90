"""The device: its clock, and what it reads in a stream."""

import time
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

READ_BYTES = 4 << 30
REPEATS = 8
HELD_BACK = 500_000  # cycles that a small kernel takes, behind which the launch of a graph waits: about 0.25 ms


def event_time(run: Callable[[], object], queued: bool) -> float:
    """ns of one call by the device's clock. queued: its launches wait on the device already when the clock starts, so
    that the device is never idle; without it, what the host takes to launch counts."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if queued:
        torch.cuda._sleep(HELD_BACK)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e6


def warm(run: Callable[[], object], seconds: float) -> None:
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        run()
        torch.cuda.synchronize()


@triton.jit
def _stream(source, out, steps, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.int32)
    for step in range(steps):
        at = (step * tl.num_programs(0) + program) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(source + at)
    tl.store(out + program, tl.sum(total))


def _streams(source: Tensor) -> list[Callable[[], object]]:
    """Ways to read it once: kernels of several shapes, and PyTorch's own reductions."""
    units = torch.cuda.get_device_properties(source.device).multi_processor_count
    runs: list[Callable[[], object]] = [source.max, source.view(torch.float32).sum]
    for block in (2048, 4096, 8192):
        for each in (4, 8, 32):
            grid = units * each
            steps, out = source.numel() // (grid * block), torch.empty(grid, dtype=torch.int32, device=source.device)
            runs.append(lambda g=grid, o=out, s=steps, b=block: _stream[(g,)](source, o, s, BLOCK=b, num_warps=8))
    return runs


def read_rate(device: str) -> float:
    """Bytes a second: the best of several streaming reads of 4 GiB."""
    source = torch.zeros(READ_BYTES // 4, dtype=torch.int32, device=device)
    best = 0.0
    for run in _streams(source):
        run()
        torch.cuda.synchronize()
        best = max(best, READ_BYTES / min(event_time(run, True) for _ in range(REPEATS)) * 1e9)
    return best

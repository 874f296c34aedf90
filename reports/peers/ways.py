"""A peer's block as something to call: operation by operation, as a CUDA graph, compiled and as a CUDA graph."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from . import block, choose
from .block import Drafted, Layer, Tail
from .golden import Case, Geometry

WAYS = ("eager", "graph", "compiled")
MODE = "max-autotune-no-cudagraphs"  # the graph is captured here, over the whole block


def chain(parts: list[Layer], end: Tail, case: Case, geometry: Geometry, compiled: bool = False) -> Callable[[Tensor], Drafted]:
    """The block as a function of its embeddings. One compiled layer serves all layers."""
    layer, tail = block.layer, choose.tail
    if compiled:
        layer, tail = (torch.compile(f, mode=MODE, fullgraph=True, dynamic=False) for f in (layer, tail))

    def run(h: Tensor) -> Drafted:
        for part in parts:
            h = layer(h, part, geometry.eps)
        return tail(h, end, case.n_draft, geometry.selector_top, geometry.eps)

    return run


def captured(run: Callable[[Tensor], Drafted], h: Tensor) -> Callable[[], Drafted]:
    """The graph of run(h). The first calls, which compile and choose kernels, go before it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run(h)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        drafted = run(h)

    def replay() -> Drafted:
        graph.replay()
        return drafted

    return replay


def prepared(way: str, parts: list[Layer], end: Tail, case: Case, geometry: Geometry, h: Tensor) -> Callable[[], Drafted]:
    run = chain(parts, end, case, geometry, way == "compiled")
    return captured(run, h) if way != "eager" else lambda: run(h)


def _tensors(part: object) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from _tensors(inner)


def bytes_read(parts: list[Layer], end: Tail, case: Case) -> int:
    """Weights as they are held and the context, each once; of the codebooks the rows that candidates need, and nothing
    of the room beyond the context."""
    held = sum(t.nbytes for part in parts for t in _tensors(part._replace(keys=None, values=None)))
    kv, _, width = parts[0].keys.shape
    context = 2 * len(parts) * kv * width * (len(case.keys[0]) + case.rows) * parts[0].keys.element_size()
    books = (end.predecessor, end.successor)
    rows = sum(book.shape[1] * book.element_size() for book in books) * case.n_draft * 16
    return held + context + rows + sum(t.nbytes for t in _tensors(end._replace(predecessor=None, successor=None)))

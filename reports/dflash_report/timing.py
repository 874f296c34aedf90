"""Times beside what the roofline allows, for figures and tables."""

from dataclasses import dataclass

from .text import is_time, known

CONTEXT = "context"
# The groups in the block's order, for their colours, and where no record gives an order.
ORDER = (CONTEXT, "norm+kernel+conv", "qkv", "qk norm+rope", "attention", "o+conv", "mlp norm+kernel+conv", "gate-up+silu",
         "down+conv", "final norm+selector", "head", "select")


@dataclass(frozen=True)
class Bar:
    """One stage or group of one backend: its median, and the time that its roofline allows."""

    name: str
    ns: float
    floor: float | None
    share: float | None  # floor / ns; above 1: values came out of a cache


def _bar(name, ns, share):
    share = share if known(share) and share > 0 and is_time(ns * share) else None
    return Bar(name, ns, ns * share if share else None, share)


def groups(case):
    """Groups in the block's order; of each the median of the sums over layers."""
    return [_bar(group.get("group", "?"), group["ns"], group.get("share"))
            for group in case.bench.get("groups", []) if is_time(group.get("ns"))]


def stages(case):
    """Stages, their layers' medians summed."""
    sums = {}
    for stage in case.bench.get("stages", []):
        ns = stage.get("time", {}).get("median")
        if is_time(ns):
            share = stage.get("share")
            entry = sums.setdefault(stage.get("stage", "?"), [0.0, 0.0])
            entry[0] += ns
            entry[1] += ns * share if known(share) else float("nan")
    return [_bar(name, ns, floor / ns) for name, (ns, floor) in sums.items()]


def parts(case):
    """(group, share of the unstamped block's median), then what is in no stage, or below 0 what overlaps."""
    block = case.bench["block"]["device"]["median"]
    found = [(bar.name, bar.ns / block) for bar in groups(case) if bar.name != CONTEXT]
    return found, 1 - sum(share for _, share in found)


def bound(block):
    """The larger of the block's two shares of the roofline, and whose it is."""
    read, matrix = block.get("share_read"), block.get("share_matrix")
    if not known(read) and not known(matrix):
        return None, ""
    if not known(matrix) or known(read) and read >= matrix:
        return read, "read"
    return matrix, "matrix"


def by_golden(cases):
    """{(file, case, what, cold): [timed cases]}: what is fair to put side by side."""
    together = {}
    for case in cases:
        key = case.file, case.name, case.bench.get("what", "block"), bool(case.bench.get("cold"))
        together.setdefault(key, []).append(case)
    return together


def largest_first(cases):
    """What by_golden gives, as a list: the block that moves most bytes says most."""
    def moved(entry):
        return -max((case.bench["block"].get("bytes") or 0) for case in entry[1])

    return sorted(by_golden(cases).items(), key=moved)

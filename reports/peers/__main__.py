"""Times the block of a golden in PyTorch on this device, beside which backends are then measured (docs/peers.md)."""

import argparse
import shlex
import sys
from pathlib import Path

from dflash_report.fields import clean
from dflash_report.problem import UNAVAILABLE, Problem

FORMS = ("bf16", "int4", "f32")
WAYS = ("eager", "graph", "compiled")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem(f"{message}; --help tells what there is")


def _several(known: tuple[str, ...]):
    def take(text: str) -> list[str]:
        words = text.split(",")
        unknown = [word for word in words if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"'{clean(unknown[0], 60)}' is none of {', '.join(known)}")
        return list(dict.fromkeys(words))

    return take


def _share(text: str) -> float:
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{clean(text, 60)}' is no share such as 1%")
    return value


def _seconds(text: str) -> float:
    value = float(text.removesuffix("s"))
    if not 0 < value < 1e5:
        raise argparse.ArgumentTypeError(f"'{clean(text, 60)}' is no time such as 10s")
    return value


def arguments(words: list[str]) -> argparse.Namespace:
    parser = Parser(prog="peers", description=__doc__)
    add = parser.add_argument
    add("golden", metavar="GOLDEN")
    add("--peer", type=_several(FORMS), default=["bf16", "int4"], metavar="FORMS", help=f"of {','.join(FORMS)} (bf16,int4)")
    add("--way", type=_several(WAYS), default=list(WAYS), metavar="WAYS", help=f"of {','.join(WAYS)} (all)")
    add("--case", help="case to run (main, or the first)")
    add("--confidence", type=_share, default=0.01, metavar="SHARE", help="sample until the median is known so well (1%%)")
    add("--budget", type=_seconds, default=5.0, metavar="TIME", help="or until this much time has passed (5s)")
    add("--warmup", type=_seconds, default=1.0, metavar="TIME", help="before the first sample (1s)")
    add("--check", action="store_true", help="compare with the golden's values only; runs without a GPU, too")
    add("--json", type=Path, metavar="FILE", help="records, for bench --peers and report")
    return parser.parse_args(words)


def _need(check: bool) -> str:
    """The device. Raises Problem where there is no PyTorch or nothing to time on."""
    try:
        import torch
    except (ImportError, OSError) as error:
        raise Problem(f"Python has no PyTorch here ({clean(str(error), 120)}); docs/peers.md says how to get it", UNAVAILABLE) from None
    if torch.cuda.is_available():
        return "cuda"
    if not check:
        raise Problem("PyTorch finds no CUDA device to time on; --check compares without one", UNAVAILABLE)
    return "cpu"


def main(words: list[str]) -> int:
    try:
        options = arguments(words)
        if not Path(options.golden).is_file():
            raise Problem(f"{options.golden}: there is no such file")
        device = _need(options.check)
        from .run import measure
        return measure(options, device, shlex.join(["peers", *words]))
    except Problem as problem:
        print(f"peers: {clean(str(problem))}", file=sys.stderr)
        return problem.status
    except Exception as error:  # one line and a status, whatever happens
        print(f"peers: {type(error).__name__}: {clean(str(error), 300)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

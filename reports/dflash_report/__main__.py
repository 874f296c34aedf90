"""dflash-harness report: reads, then makes the page and the figures, then writes."""

import argparse
import sys
from pathlib import Path

from . import fields, lines, page, results, samples, summary, timing, write
from .drawing import Drawing
from .problem import Problem

FIGURES = ("parity", "stages", "block", "samples", "trends")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem(f"{message}; --help tells what there is")


def arguments(words):
    parser = Parser(prog="dflash-harness report", description=__doc__, add_help=True)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--output", "-o")
    parser.add_argument("--title", default="dflash-harness report")
    parser.add_argument("--trends", action="store_true")
    options = parser.parse_args(words)
    if not options.files:
        raise Problem("no results are given: JSON lines of runs, or a history")
    if not options.output:
        raise Problem("--output is missing: the folder that gets the page")
    return options


def _is_history(path):
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise Problem(f"{path}: cannot be read: {error.strerror}") from None


def read(files, trends_only=False):
    """Results of files of records, and of one history. Raises Problem."""
    found = results.Results()
    histories = [path for path in files if _is_history(path)]
    if len(histories) > 1:
        raise Problem(f"{histories[1]}: a second history; one is read")
    if trends_only and (not histories or len(files) > 1):
        raise Problem("--trends needs a history, and nothing beside it")
    for path in files:
        if path not in histories:
            assembly = results.Assembly(found, path.name)
            for record in lines.read(path, found.notes):
                assembly.take(record)
    if histories:
        from . import history
        history.read(histories[0], found, newest=not trends_only and len(files) == 1)
    return results.finish(found)


def report(options):
    """What goes to stdout, when all is written."""
    names = ("trends",) if options.trends else FIGURES
    drawing = Drawing(names)
    try:
        found = read([Path(name) for name in options.files], options.trends)
        drawing.begin(found)
        title, shown = fields.clean(options.title, 120), [name for name in names if figured(found, name)]
        html = page.page(found, title, shown, options.trends).encode("utf-8", "replace")
        drawn = {f"figures/{name}": data for name, data in drawing.made().items()}
    finally:
        drawing.close()
    known = [f"figures/{name}.{suffix}" for name in FIGURES for suffix in ("svg", "png")]
    folder = Path(options.output)
    write.write(folder, drawn | {write.PAGE: html}, known)
    verdict = summary.verdict(found)
    return f"{verdict.word}: {verdict.line}\n{folder / write.PAGE}\n"


def figured(found, name):
    """Whether that figure has something to show."""
    return {"parity": lambda: any(case.verdicts for case in found.cases), "trends": lambda: found.trends,
            "stages": lambda: any(map(timing.groups, found.timed)), "block": lambda: any(map(timing.groups, found.timed)),
            "samples": lambda: any(map(samples.clean, found.timed))}[name]()


def _unforeseen(error):
    """A defect of the report itself, in one line."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    at = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
    return f"a defect of the report: {type(error).__name__} at {at}: {fields.clean(str(error), 300)}"


def main(words):
    try:
        told = report(arguments(words))
        sys.stdout.write(told)
        sys.stdout.flush()
        return 0
    except Problem as problem:
        message, status = str(problem), problem.status
    except BrokenPipeError:
        return 0
    except Exception as error:  # one line and a status, whatever happens
        message, status = _unforeseen(error), 1
    print(f"report: {fields.clean(message)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

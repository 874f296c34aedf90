"""Figures drawn in a process of its own: matplotlib is imported while records are read, and draws while the page is
made."""

import logging
import multiprocessing
import warnings
from dataclasses import replace

from .problem import UNAVAILABLE, Problem


def _draw(pipe, names):
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)  # of fonts that it looks for it tells on stderr
    warnings.simplefilter("ignore")
    try:
        from . import figures
        results = pipe.recv()
        pipe.send(None if results is None else figures.draw(results, names))
    except (EOFError, BrokenPipeError):
        pass  # the report ended before there was anything to draw
    except Exception as error:  # told by the report itself, in its one line
        pipe.send(error)


class Drawing:
    def __init__(self, names):
        context = multiprocessing.get_context("fork")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_draw, args=(end, names), daemon=True)
        self.process.start()
        end.close()

    def begin(self, results):
        trends = results.trends and results.trends.drawn()
        self.pipe.send(replace(results, trends=trends))

    def made(self):
        """{file name: bytes}. Raises what went wrong there."""
        try:
            found = self.pipe.recv()
        except EOFError:
            raise Problem("the figures could not be drawn: their process ended", UNAVAILABLE) from None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        self.pipe.close()
        self.process.terminate()
        self.process.join()

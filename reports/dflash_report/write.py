"""The folder of a report: each file written beside its place and renamed, the page last."""

import os
from pathlib import Path

from .problem import Problem

PAGE = "index.html"


def _beside(path, data):
    """The data in a file beside `path`, on disk."""
    beside = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return beside


def _made(folder):
    """The folders that had to be made, outermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def write(folder, files, known):
    """Writes {name: bytes}; removes files of `known` names that an earlier report left and this one has not. On failure
    nothing new stays. Raises Problem."""
    pairs, made = [], []
    try:
        made = _made(folder / "figures") if any("/" in name for name in files) else _made(folder)
        for name, data in files.items():
            pairs.append((_beside(folder / name, data), folder / name))
        for beside, path in sorted(pairs, key=lambda pair: pair[1].name == PAGE):
            os.replace(beside, path)
        for name in known:
            if name not in files:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        for beside, _ in pairs:
            beside.unlink(missing_ok=True)
        for place in made:
            _drop(place)
        raise Problem(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def _drop(place):
    try:
        Path(place).rmdir()
    except OSError:
        pass  # it holds something, or is gone

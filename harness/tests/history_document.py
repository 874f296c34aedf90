"""docs/history.md against a history that the program wrote: history_document.py HARNESS DOCUMENT RECORDS.

Every column of every table stands in the document and none that is not there; the Python of the document unpacks every
pack to what `history export` gives."""

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path


def columns_told(document: str) -> dict[str, set[str]]:
    """What the document says of `run`, `series` and `result`: a heading line, then a table of columns."""
    told = {}
    for name, rows in re.findall(r"\n`(\w+)`: [^\n]*\n(?:[^|\n]+\n)*\n\| column \| \|\n\|---\|---\|\n((?:\|.*\n)+)", document):
        first = [row.split("|")[1] for row in rows.splitlines()]
        told[name] = {column for cell in first for column in re.findall(r"`(\w+)`", cell)}
    return told


def check_columns(base: sqlite3.Connection, document: str) -> None:
    told = columns_told(document)
    told["records"], told["group_time"] = {"result", "pack"}, {"result", "name", "ns"}
    for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"):
        there = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
        if there != told.get(table):
            sys.exit(f"table {table}: has {sorted(there)}, docs/history.md tells {sorted(told.get(table, ()))}")


def check_packs(base: sqlite3.Connection, document: str, exported: str) -> None:
    space: dict = {}
    exec(re.search(r"```python\n(.*?)```", document, re.S).group(1), space)
    records = []
    for run, head, tail in base.execute("SELECT id, head, tail FROM run ORDER BY id").fetchall():
        records += space["unpack"](head)
        for (pack,) in base.execute("SELECT pack FROM records JOIN result ON result.id = result WHERE run = ? ORDER BY number",
                                    (run,)).fetchall():
            records += space["unpack"](pack)
        records += space["unpack"](tail) if tail else []
    if records != [json.loads(line) for line in exported.splitlines()] or not records:
        sys.exit("the document's unpack() gives other records than 'history export'")


def main() -> None:
    harness, document, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "h.db")
        for file in files:
            subprocess.run([harness, "history", "import", file, "--history", path], check=True)
        exported = subprocess.run([harness, "history", "export", "--history", path], check=True, capture_output=True, text=True)
        base = sqlite3.connect(path)
        text = Path(document).read_text()
        check_columns(base, text)
        check_packs(base, text, exported.stdout)
        base.close()


main()

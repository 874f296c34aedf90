"""Histories for tests, made as docs/history.md says: nights of benches whose level changes where the test wants it."""

import hashlib
import json
import random
import re
import sqlite3
import struct
import sys
import zlib
from pathlib import Path

SCHEMA = """
PRAGMA application_id = 0x44464831;
PRAGMA user_version = 2;
CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, uid BLOB UNIQUE, time INTEGER, kind TEXT, command TEXT, tool TEXT,
  revision TEXT, dirty TEXT, machine TEXT, host TEXT, head BLOB, tail BLOB, exit INTEGER, elapsed_s REAL);
CREATE TABLE series (id INTEGER PRIMARY KEY, kind TEXT, backend TEXT, device TEXT, device_name TEXT, profile TEXT,
  case_name TEXT, inputs_hash TEXT, modes TEXT, settings TEXT, machine TEXT);
CREATE TABLE result (id INTEGER PRIMARY KEY, run INTEGER, number INTEGER, uid BLOB, series INTEGER, time INTEGER, golden TEXT,
  values_hash TEXT, backend_version TEXT, driver TEXT, backend_file TEXT, outcome TEXT, passed INTEGER, failed INTEGER,
  other INTEGER, largest_score REAL, elapsed_s REAL, stopped_by TEXT, samples INTEGER, median_ns REAL, low_ns REAL,
  high_ns REAL, wall_ns REAL, cpu_ns REAL, side TEXT NOT NULL DEFAULT '', pair INTEGER, revision TEXT NOT NULL DEFAULT '',
  dirty TEXT NOT NULL DEFAULT '', load REAL, other_users INTEGER, throttle INTEGER);
CREATE TABLE records (result INTEGER PRIMARY KEY, pack BLOB);
CREATE TABLE group_time (result INTEGER, name TEXT, ns REAL, PRIMARY KEY (result, name)) WITHOUT ROWID;
CREATE INDEX run_time ON run(time);
CREATE INDEX result_series_time ON result(series, time);
CREATE INDEX result_time ON result(time);
"""
SHARES = {"norm+kernel+conv": 0.02, "qkv": 0.06, "attention": 0.05, "o+conv": 0.04, "gate-up+silu": 0.28,
          "down+conv": 0.14, "head": 0.40, "select": 0.01}
DAY = 86400
FIRST = 1_780_000_000 // DAY * DAY + 7200
NUMBER = re.compile(r'"(?:[^"\\]|\\.)*":?|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?')


def pack(records):
    """A pack whose columns are all float64, or whole numbers of eight planes, so that both ways are read."""
    columns, name, kept = {}, "", []

    def take(match):
        nonlocal name
        piece = match.group()
        if piece.startswith('"'):
            name = piece if piece.endswith(":") else name
            return piece
        columns.setdefault(name, []).append(piece)
        return "\x01"

    for record in records:
        kept.append(NUMBER.sub(take, json.dumps(record, separators=(",", ":"))))
    text = "".join(line + "\n" for line in kept).encode()
    body = b"".join(map(_column, columns.values()))
    return zlib.compress(struct.pack("<I", len(text)) + text + body, 6)


def _column(numbers):
    if all(re.fullmatch(r"-?\d+", number) for number in numbers):
        before, rows, kind = 0, [], b"\x08"
        for value in map(int, numbers):
            d = value - before
            rows.append((2 * d if d >= 0 else -2 * d - 1).to_bytes(8, "big"))
            before = value
    else:
        rows, kind = [struct.pack(">d", float(number)) for number in numbers], b"\x00"
    return kind + b"".join(bytes(row[plane] for row in rows) for plane in range(8))


class History:
    """A file that runs are added to."""

    def __init__(self, path):
        Path(path).unlink(missing_ok=True)
        self.base = sqlite3.connect(path)
        self.base.executescript(SCHEMA)
        self.series, self.count = {}, 0

    def close(self):
        self.base.commit()
        self.base.close()

    def of_series(self, kind, backend, case, golden, machine="AMD EPYC, 2 CPUs, 24 GiB"):
        key = kind, backend, case, golden
        if key not in self.series:
            self.series[key] = self.base.execute(
                "INSERT INTO series VALUES (NULL, ?, ?, 'cpu', 'AMD EPYC', 'exact', ?, ?, ?, '', ?)",
                (kind, backend, case, hashlib.sha256(golden.encode()).hexdigest(), "bench" if kind == "bench" else
                 "alone,chain", machine)).lastrowid
        return self.series[key]

    def run(self, kind, time, revision, head=None):
        self.count += 1
        head = head or {"schema": "dflash-record", "version": 1, "type": "run", "command": f"dflash-harness {kind}",
                        "environment": {"time": "2026-01-01T00:00:00Z", "revision": revision}}
        return self.base.execute(
            "INSERT INTO run VALUES (NULL, ?, ?, ?, ?, 'dflash-harness 0.1.0', ?, 'no', 'AMD EPYC', 'ci', ?, NULL, 0, 1.0)",
            (str(self.count).encode(), time, kind, head["command"], revision, pack([head]))).lastrowid

    def result(self, run, series, time, golden, records, ns=None, groups=(), outcome="pass", revision="", side=""):
        self.count += 1
        result = self.base.execute(
            "INSERT INTO result (run, number, uid, series, time, golden, outcome, median_ns, low_ns, high_ns, samples, revision, "
            "dirty, side) VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, 64, ?, 'no', ?)",
            (run, str(self.count).encode(), series, time, golden, outcome, ns, ns and ns * 0.995, ns and ns * 1.005, revision,
             side)).lastrowid
        if records:
            self.base.execute("INSERT INTO records VALUES (?, ?)", (result, pack(records)))
        self.base.executemany("INSERT INTO group_time VALUES (?, ?, ?)", [(result, *group) for group in groups])
        return result


def revision(night):
    return hashlib.sha256(str(night).encode()).hexdigest()[:40]


def benches(history, backend, golden, nights, ns, generator, each=1, change=None, records=None):
    """Nights of one block; from `change` = (night, group, factor) on, that group takes factor times as long."""
    series = history.of_series("bench", backend, "main", golden)
    for night in range(nights):
        night_noise = generator.gauss(0, 0.008)
        for i in range(each):
            shares = dict(SHARES)
            if change and night >= change[0]:
                shares[change[1]] *= change[2]
            level = ns * (1 + night_noise + generator.gauss(0, 0.002))
            groups = [(name, share * level * (1 + generator.gauss(0, 0.003))) for name, share in shares.items()]
            time = FIRST + night * DAY + i * 60
            run = history.run("bench", time, revision(night))
            history.result(run, series, time, golden, records if night == nights - 1 else None, level * sum(shares.values()),
                           groups, revision=revision(night))


def many(path, small=100_000, large=2_000, nights=365):
    """As much as years bring: runs of a small golden and of the published geometry."""
    history, generator = History(path), random.Random(1)
    for backend, ns in (("reference", 6e5), ("blas", 6e4), ("vulkan", 1.5e7), ("faulty", 7e5)):
        benches(history, backend, "tiny-f32.h5", nights, ns, generator, small // 4 // nights + 1,
                (200, "attention", 1.4) if backend == "blas" else None)
    for backend, ns in (("blas", 2.37e8), ("vulkan", 4e8)):
        benches(history, backend, "27b.h5", nights, ns, generator, large // 2 // nights + 1,
                (nights - 9, "head", 1.25) if backend == "blas" else None)
    history.close()


if __name__ == "__main__":
    many(sys.argv[1])

"""The command line of trends: what it reads, what it refuses, what it says."""

import contextlib
import io
import json
import random
import sqlite3
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from trends import NEEDED, read
from trends import __main__ as command

HISTORY = """
PRAGMA application_id = 0x44464831; PRAGMA user_version = 2;
CREATE TABLE series(id INTEGER PRIMARY KEY, kind TEXT, backend TEXT, device TEXT, device_name TEXT, profile TEXT,
  case_name TEXT, settings TEXT, machine TEXT);
CREATE TABLE result(id INTEGER PRIMARY KEY, series INTEGER, time INTEGER, revision TEXT, dirty TEXT,
  golden TEXT, outcome TEXT, side TEXT, median_ns REAL, low_ns REAL, high_ns REAL);
CREATE TABLE group_time(result INTEGER, name TEXT, ns REAL);
INSERT INTO series VALUES(1, 'bench', 'blas', 'cpu', '', 'exact', 'main', '', 'here');
INSERT INTO series VALUES(2, 'verify', 'blas', 'cpu', '', 'exact', 'main', '', 'here');
"""
DAY = 86400


def lines(count=60, shift=1.2, first=45, name="block"):
    values = np.exp(0.02 * np.random.default_rng(1).standard_normal(count))
    values[first:] *= shift
    return [
        json.dumps({"series": name, "time": night, "revision": f"r{night}", "value": value})
        for night, value in enumerate(values)
    ]


class OnAFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "nights"

    def write(self, content):
        data = content if isinstance(content, bytes) else "\n".join(content).encode()
        self.path.write_bytes(data)

    def run_command(self, *options):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with mock.patch("sys.argv", ["trends", str(self.path), *options]):
                try:
                    status = command.main()
                except SystemExit as end:
                    status = end.code
        return status, out.getvalue(), err.getvalue()


class Lines(OnAFile):
    def expect_refused(self, content, text):
        self.write(content)
        status, out, err = self.run_command()
        self.assertEqual((status, out), (2, ""), err)
        self.assertIn(text, err)
        self.assertEqual(err.count("\n"), 1)

    def test_slower_faster_and_steady_have_their_statuses(self):
        for shift, expected, word in ((1.2, 1, "slower by +"), (0.8, 0, "faster by -"), (1.0, 0, "steady")):
            self.write(lines(shift=shift))
            status, out, _ = self.run_command()
            self.assertEqual(status, expected)
            self.assertIn(word, out)
        self.write(lines())
        self.assertIn("after r44, at the latest by r45: nights 45 to 45", self.run_command()[1])

    def test_only_recent_calls_decide_with_recent(self):
        self.write(lines())
        self.assertEqual(self.run_command("--recent", "20")[0], 1)
        self.assertEqual(self.run_command("--recent", "5")[0], 0)

    def test_only_the_last_nights_are_judged(self):
        self.write(lines())
        status, out, _ = self.run_command("--nights", "15")
        self.assertEqual(status, 0)
        self.assertIn("block: 15 nights, steady", out)

    def test_too_few_nights_cannot_tell_and_no_series_is_nothing(self):
        self.write(lines(NEEDED - 1))
        status, out, _ = self.run_command()
        self.assertEqual(status, 5)
        self.assertIn(f"{NEEDED - 1} of the {NEEDED} nights", out)
        self.write(lines(NEEDED - 1) + lines(name="other", shift=1.0))
        self.assertEqual(self.run_command()[0], 0)
        self.assertEqual(self.run_command("--series", "nothing*")[0], 4)
        self.write(b"")
        self.assertEqual(self.run_command()[0], 4)

    def test_json_says_the_same(self):
        self.write(lines())
        status, out, _ = self.run_command("--json")
        trend = json.loads(out)
        self.assertEqual((status, trend["verdict"], trend["changes"][0]["night"]), (1, "changed", 45))

    def test_nights_are_put_in_order(self):
        self.write(random.Random(1).sample(lines(), 60))
        self.assertIn("after r44", self.run_command()[1])

    def test_bad_lines_are_named(self):
        good = lines(3)
        self.expect_refused([*good, "{"], ":4: no JSON")
        self.expect_refused([*good, "[" * 100_000], ":4: no JSON")
        self.expect_refused([*good, "[]"], ":4: must be an object")
        self.expect_refused([*good, '{"series": 1}'], ":4: must be an object")
        for time in ("null", "true", "NaN", "[1]"):
            self.expect_refused([f'{{"series": "a", "time": {time}, "value": 1}}'], ":1: 'time'")
        for value in ("null", "true", "0", "-1", "NaN", "Infinity", '"1"'):
            self.expect_refused([f'{{"series": "a", "time": 1, "value": {value}}}'], ":1: 'value'")
        self.expect_refused(['{"series": "a", "time": 1, "revision": 2, "value": 1}'], ":1: 'revision'")
        for sides in ('"low": 1', '"low": 2, "high": 1', '"low": "1", "high": 2'):
            self.expect_refused([f'{{"series": "a", "time": 1, "value": 1, {sides}}}'], ":1: 'low'")
        mixed = ['{"series": "a", "time": 1, "value": 1}', '{"series": "a", "time": "1", "value": 1}']
        self.expect_refused(mixed, "series 'a' has times")

    def test_bad_files_and_options_are_named(self):
        self.assertEqual(self.run_command()[0], 2)
        self.expect_refused(b"\xff\xfe", "neither JSON lines")
        self.expect_refused(read.SQLITE + b"?" * 100, "file is not a database")
        self.write(lines())
        bad = ("rate", "0.9"), ("rate", "nan"), ("rate", "x"), ("least", "-1"), ("recent", "0"), ("nights", "0")
        for name, value in bad:
            self.assertEqual(self.run_command(f"--{name}", value)[0], 2, name)

    def test_names_cannot_steer_a_terminal_or_break_a_line(self):
        self.write(lines(name="a\n\x1b[2J\ud800"))
        self.assertIn("a??[2J?: 60 nights", self.run_command()[1])

    def test_mutated_files_are_read_or_refused(self):
        generator = random.Random(7)
        whole = "\n".join(lines(20)).encode()
        for _ in range(1500):
            data = bytearray(whole)
            for _ in range(generator.randint(1, 4)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            self.write(bytes(data[: generator.randint(1, len(data))]))
            with contextlib.suppress(read.Unreadable):
                for series in read.read(self.path):
                    self.assertTrue(all(point.value > 0 for point in series.points))


class History(OnAFile):
    def make(self, script="", version=2):
        self.path.unlink(missing_ok=True)
        database = sqlite3.connect(self.path)
        database.executescript(HISTORY + script)
        database.execute(f"PRAGMA user_version = {version}")
        return database

    def add(self, database, night, value, outcome="pass", series=1, side=""):
        row = series, 1_700_000_000 + night * DAY, f"r{night}", outcome, side, value, 0.99 * value, 1.01 * value
        into = "INSERT INTO result VALUES(NULL, ?, ?, ?, 'no', 'g.h5', ?, ?, ?, ?, ?)"
        result = database.execute(into, row).lastrowid
        database.execute("INSERT INTO group_time VALUES(?, 'head', ?)", (result, value / 2))

    def test_a_history_gives_its_blocks_and_groups(self):
        database = self.make()
        for night, line in enumerate(lines()):
            self.add(database, night, json.loads(line)["value"])
            self.add(database, night, 9.0, outcome="not trusted")
            self.add(database, night, 9.0, series=2)
            self.add(database, night, 9.0, side="A")
        database.commit()
        names = [(series.name, len(series.points)) for series in read.read(self.path)]
        self.assertEqual(names, [(f"blas cpu g.h5 main exact here {group}", 60) for group in ("block", "head")])
        status, out, _ = self.run_command("--series", "*block")
        self.assertEqual(status, 1)
        self.assertIn("after r44, at the latest by r45", out)

    def test_runs_of_one_night_are_one_point(self):
        database = self.make()
        for value in (1.0, 5.0, 2.0):
            self.add(database, 0, value)
        self.add(database, 1, 3.0)
        database.commit()
        block = read.read(self.path)[0]
        self.assertEqual([point.value for point in block.points], [2.0, 3.0])
        self.assertEqual(block.points[0].time, "2023-11-14T22:13:20Z")

    def test_other_databases_are_refused(self):
        self.make("PRAGMA application_id = 1;").close()
        self.assertIn("no history", self.run_command()[2])
        for version in (1, 3):
            self.make(version=version).close()
            self.assertIn(f"version {version}; ", self.run_command()[2])
        self.make("DROP TABLE result;").close()
        status, _, err = self.run_command()
        self.assertEqual((status, err.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()

"""Reading, judging and writing of the report, without a browser: good records, hostile ones, and what must be refused."""

import gzip
import json
import os
import random
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from html.parser import HTMLParser
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import nights  # noqa: E402
import records  # noqa: E402
from dflash_report import pack, page, results, samples, summary, text, timing  # noqa: E402
from dflash_report.__main__ import main, read  # noqa: E402
from dflash_report.problem import Problem  # noqa: E402

HARNESS = os.environ.get("DFLASH_HARNESS")
SUBJECT = {"file": "g.h5", "case": "main", "backend": "b", "device": "cpu", "profile": "exact"}
DEEP = '{"schema":"dflash-record","version":1,"type":"run","x":' + "[" * 100_000 + "]" * 100_000 + "}\n"


class Scratch(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.out = self.folder / "out"

    def file(self, content, name="r.jsonl"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path

    def read(self, *lines):
        return read([self.file("".join(lines))])

    def refused(self, status, words, *arguments):
        """One line that holds the words, the status, and nothing written."""
        before = sorted(self.folder.rglob("*"))
        found, out, err = records.report(main, [*arguments, "-o", self.out])
        self.assertEqual((found, out), (status, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        for word in words.split("|"):
            self.assertIn(word, err)
        self.assertEqual(sorted(self.folder.rglob("*")), before)


def verdict(outcome="pass", **members):
    return records.line("verdict", **(SUBJECT | {"mode": "alone", "stage": "attn.mix", "layer": 0, "outcome": outcome} | members))


def case(outcome="pass", **members):
    return records.line("case", **(SUBJECT | {"outcome": outcome} | members))


def bench(median=5e6, **members):
    block = {"device": records.sample(median), "bytes": 1e6}
    return records.line("bench", **(SUBJECT | {"parity": {"outcome": "pass"}, "block": block} | members))


class Refused(Scratch):
    def test_files_that_are_no_records(self):
        bad = {
            "nothing\n": "line 1: no JSON", "[1]\n": "line 1: is no record", '{"a":1}\n': "line 1: is no record",
            '{"schema":"dflash-record","version":1}\n': "line 1: has no 'type'",
            case() + '{"schema":"dflash-record","version":2,"type":"case"}\n': "line 2: has version 2|this reads 1",
            '{"schema":"dflash-record","version":true,"type":"case"}\n': "line 1: has version True",
            case(passed="many"): "line 1: 'passed' is not a number", case(message=7): "line 1: 'message' is not text",
            case(first=[]): "'first' is not an object", bench(stages={}): "'stages' is not a list",
            bench(samples=[1, "x"]): "'samples[1]' is not a number", verdict(layer=-1): "line 1: 'layer' is not a layer",
            verdict(layer="nan"): "line 1: 'layer' is not", verdict(inherited="yes"): "'inherited' is not true or false",
            case().replace('"outcome": "pass"', '"x": 1'): "line 1: case without 'outcome'",
            case() + '{"x": NaN}\n': "line 2: no JSON: NaN", DEEP: "line 1: no JSON: nested too deep",
            b"\xff\xfe\n": "line 1: no JSON", b"\x00" * 50 + b"\n": "line 1: no JSON", case() + "x" * 3_000_000 + "\n": "line 2",
        }
        for content, words in bad.items():
            with self.subTest(words=words):
                self.refused(2, "r.jsonl|" + words, self.file(content))

    def test_files_that_hold_nothing(self):
        self.refused(4, "r.jsonl: is empty", self.file(""))
        self.refused(4, "the files hold no results", self.file(records.line("run", command="x")))
        self.refused(4, "the files hold no results", self.file(verdict()))  # its case never ended

    def test_files_that_cannot_be_read(self):
        self.refused(2, "nosuch.jsonl: cannot be read: No such file", self.folder / "nosuch.jsonl")
        self.refused(2, "cannot be read: Is a directory", self.folder)
        self.refused(2, "cut.jsonl.gz: cannot be read", self.file(gzip.compress(case().encode() * 99)[:-9], "cut.jsonl.gz"))
        self.refused(2, "no.jsonl.gz: cannot be read", self.file(case(), "no.jsonl.gz"))
        self.refused(2, "given", )
        self.refused(2, "no\\u{a}a\\u{a}name|cannot be read", "no\na\nname")

    def test_databases_that_are_no_history(self):
        other = self.folder / "other.db"
        with sqlite3.connect(other) as base:
            base.execute("CREATE TABLE result (x)")
        base.close()
        self.refused(2, "other.db: is an SQLite file, but no history", other)
        newer = self.folder / "newer.db"
        history = nights.History(newer)
        history.base.execute("PRAGMA user_version = 3")
        history.close()
        self.refused(2, "newer.db: has version 3 of the history; this reads 2", newer)
        self.refused(2, "cut.db: cannot be read", self.file(newer.read_bytes()[:5000], "cut.db"))
        self.refused(2, "--trends needs a history", self.file(case()), "--trends")
        self.refused(2, "a second history", newer, newer)
        empty = self.folder / "empty.db"
        nights.History(empty).close()
        self.refused(4, "empty.db: the history holds no results", empty)

    def test_damaged_records_of_a_history(self):
        good = nights.pack([json.loads(case())])
        size = struct.pack("<I", 2**31)
        changed = zlib.compress(zlib.decompress(good)[:-1] + b"\x01")
        for blob in (b"", b"x", good[:-5], zlib.compress(b""), zlib.compress(size), changed,
                     zlib.compress(struct.pack("<I", 6) + b'{"a":\x01\n'), zlib.compress(struct.pack("<I", 7) + b'{"a":\x01}\n\x09')):
            path = self.folder / "h.db"
            history = nights.History(path)
            run = history.run("verify", nights.FIRST, "r")
            result = history.result(run, history.of_series("verify", "b", "c", "g"), nights.FIRST, "g", None)
            history.base.execute("INSERT INTO records VALUES (?, ?)", (result, blob))
            history.close()
            self.refused(2, "h.db: has version -1" if blob == changed else "h.db: damaged records", path)


class Histories(Scratch):
    def history(self):
        """Runs of one series: (hour, build, ns) each."""
        self.path = self.folder / "h.db"
        made = nights.History(self.path)
        self.addCleanup(made.base.close)
        self.series = made.of_series("bench", "b", "main", "g.h5")
        return made

    def add(self, made, hour, build, ns, **members):
        run = made.run("bench", nights.FIRST + hour * 3600, build)
        made.result(run, self.series, nights.FIRST + hour * 3600, "g.h5", members.pop("records", None), ns, revision=build, **members)

    def nights(self):
        return [[(n.revision, n.ns, n.runs) for n in subject.nights] for subject in read([self.path], True).trends.subjects]

    def test_a_night_is_what_a_build_ran_from_noon_to_noon(self):
        made = self.history()  # FIRST is 2 o'clock at night
        for hour, build, ns in ((-3, "a", 7e6), (0, "a", 5e6), (1, "a", 6e6), (2, "b", 9e6), (3, "b", 8e6), (24, "b", 4e6)):
            self.add(made, hour, build, ns)
        made.base.commit()
        self.assertEqual(self.nights(), [[("a", 6e6, 3), ("b", 8e6, 2), ("b", 4e6, 1)]])

    def test_times_that_do_not_count(self):
        made = self.history()
        self.add(made, 0, "a", 5e6)
        for number, members in enumerate(({"outcome": "mismatch"}, {"outcome": "not trusted"}, {"side": "A"})):
            self.add(made, 24 + number, "x", 9e6, **members)
        self.add(made, 24, "x", -1)
        self.add(made, 24, "x", float("inf"))
        self.add(made, -24 * 500, "x", 9e6)
        made.base.commit()
        self.assertEqual(self.nights(), [[("a", 5e6, 1)]])

    def test_the_newest_night_is_shown_and_what_missed_it_is_told(self):
        made = self.history()
        records_of = [json.loads(line) for line in (bench(5e6), case())]
        self.add(made, 0, "a", 5e6, records=[json.loads(case("mismatch"))], outcome="mismatch")
        self.add(made, 48, "b", 5e6, records=records_of)
        self.series = made.of_series("bench", "other", "main", "g.h5")
        self.add(made, 0, "a", 5e6)
        made.base.commit()
        found = read([self.path])
        self.assertEqual([c.outcome for c in found.cases], ["pass"])
        self.assertEqual(len(found.timed), 1)
        self.assertEqual(found.notes, ["1 series of the history ran within 30 days, but not in the newest night"])

    def test_a_change_is_found_where_it_was_made(self):
        files = records.unpacked(self.folder)
        records.history(self.folder / "h.db", files, 60)
        found = read([self.folder / "h.db"], True)
        blas, reference = sorted(found.trends.subjects, key=lambda subject: subject.place.backend)
        self.assertEqual([change.night for change in blas.block.changes], [60])
        self.assertEqual({line.name for line, _ in blas.changes}, {"block", "attention"})
        self.assertEqual(reference.changes, [])
        self.assertEqual(summary.verdict(found).word, "Steady")  # it is no news any more
        records.history(self.folder / "h.db", files, 82)
        self.assertEqual(summary.verdict(read([self.folder / "h.db"], True)).word, "Slower")


class Written(Scratch):
    def test_places_that_cannot_be_written(self):
        good = self.file(case())
        taken = self.file("mine", "taken")
        for place in (taken, taken / "below"):
            status, out, err = records.report(main, [good, "-o", place])
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertEqual(taken.read_text(), "mine")

    def test_a_full_disk_leaves_what_was_there(self):
        files = records.unpacked(self.folder)
        command = [sys.executable, "-B", str(Path(__file__).resolve().parents[1] / "report.py"), "-o", str(self.out)]
        self.assertEqual(subprocess.run([*command, self.file(case())], capture_output=True).returncode, 0)
        before = {path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
        full = subprocess.run([*command, files["blas"]], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)))
        self.assertEqual((full.returncode, full.stdout), (2, ""), full.stderr)
        self.assertIn("cannot be written: File too large", full.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}, before)

    def test_equal_records_give_equal_files_and_old_figures_go(self):
        files = records.unpacked(self.folder)
        inputs = [files["faulty"], files["blas-bench"]]
        for _ in range(2):
            status, out, err = records.report(main, [*inputs, "-o", self.out])
            self.assertEqual((status, err), (0, ""))
            self.assertIn("Wrong: 1 case of 2 failed", out)
            now = {path.name: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
            first = locals().get("first", now)
        self.assertEqual(first, now)
        self.assertEqual(set(now), {"index.html"} | {f"{name}.{suffix}" for name in ("parity", "stages", "block", "samples")
                                                    for suffix in ("svg", "png")})
        self.assertTrue(now["block.png"].startswith(b"\x89PNG"))
        keep = self.file("mine", "out/figures/own.svg")
        self.assertEqual(records.report(main, [self.file(case()), "-o", self.out])[0], 0)
        self.assertEqual([path.name for path in (self.out / "figures").iterdir()], [keep.name])


class Verdicts(Scratch):
    def kind(self, *lines):
        return summary.verdict(self.read(*lines)).word

    def test_words(self):
        skipped = case("unavailable")
        self.assertEqual(self.kind(case()), "Right")
        self.assertEqual(self.kind(case("near tie"), skipped), "Right")
        self.assertEqual(self.kind(case(), case("mismatch")), "Wrong")
        self.assertEqual(self.kind(case("of a new kind")), "Wrong")
        self.assertEqual(self.kind(case(), case("crashed")), "Wrong")
        self.assertEqual(self.kind(case(), records.line("bad_input", message="x")), "Incomplete")
        self.assertEqual(self.kind(skipped, case("not run")), "Nothing ran")
        self.assertEqual(self.kind(case(), case("not trusted")), "Cannot tell")
        self.assertEqual(self.kind(case(), bench(implausible="too fast"), case()), "Cannot tell")
        draw = {"draw": 1, "verdicts": 3}
        self.assertEqual(self.kind(records.line("draw", outcome="pass", **draw)), "Right")
        self.assertEqual(self.kind(records.line("draw", outcome="mismatch", **draw)), "Wrong")
        defect = {"defect": "d", "lawful": False, "outcome": "x"}
        self.assertEqual(self.kind(records.line("defect", found=True, **defect)), "Right")
        self.assertEqual(self.kind(records.line("defect", found=False, **defect)), "Wrong")
        self.assertEqual(self.kind(records.line("defect", found=False, hidden="why", **defect)), "Right")
        self.assertEqual(self.kind(records.line("defect", found=True, **(defect | {"lawful": True}))), "Wrong")

    def test_words_of_comparisons_and_gates(self):
        def comparison(verdict):
            return records.line("comparison", verdict=verdict, backend="a", backend_b="b", golden="g.h5, 7 bytes", case="main",
                                message=f"{verdict}: the block +9%", block={"a_ns": 1e6, "b_ns": 1.09e6, "change": 0.09, "low": "nan"},
                                groups=[{"name": "head", "change": 1e300, "low": -1e300, "high": "inf", "verdict": verdict}, {}])

        def gate(status, kind="time"):
            verdict = {0: "passed", 1: "failed", 5: "cannot tell"}[status]
            return records.line("gate", exit=status, message="m", findings=[{"kind": kind, "verdict": verdict, "name": "n"}])

        for lines, word in (((comparison("same"),), "Right"), ((comparison("faster"), case()), "Right"),
                            ((comparison("slower"), case()), "Slower"), ((comparison("cannot tell"),), "Cannot tell"),
                            ((comparison("slower"), gate(1)), "Slower"), ((comparison("slower"), gate(1, "parity")), "Wrong"),
                            ((gate(1), case()), "Wrong"), ((gate(5), case()), "Cannot tell"), ((gate(0),), "Right"),
                            ((comparison("slower"), case("mismatch")), "Wrong")):
            self.assertEqual(self.kind(*lines), word, lines)
            page.page(self.read(*lines), "t", [])
        self.assertIn("b beside a on g.h5 / main: the block +9%", summary.verdict(self.read(comparison("slower"))).line)

    def test_a_failure_is_not_made_good_by_a_later_pass(self):
        files, ports, cells = summary.matrix(self.read(case("mismatch"), case("pass")))
        cell = cells[files[0], ports[0]]
        self.assertEqual(cell.outcome, "mismatch")
        self.assertEqual(cell.judged, (1, 0))

    def test_what_failed_parity_has_no_time(self):
        build = {"settings": "backend_file=1"}
        timed = self.read(bench(), case(**build)).timed
        self.assertEqual(len(timed), 1)
        for lines in ((bench(parity={"outcome": "mismatch"}), case()), (bench(parity={}), case()), (bench(), case("error")),
                      (bench(implausible="too fast"), case("not trusted")), (case("mismatch", **build), bench(), case(**build)),
                      (case("mismatch"), bench(), case(**build)), (bench("inf"), case()), (bench(-1), case()), (bench(1e300), case())):
            found = self.read(*lines)
            self.assertEqual(found.timed, [], lines)
            self.assertTrue(found.cases[-1].untimed)
        another = self.read(case("mismatch", settings="backend_file=2"), bench(), case(**build))
        self.assertEqual(len(another.timed), 1)

    def test_ratios_to_peers(self):
        peer = {"peer": "bf16", "way": "compiled", "library": "L <1>", "ns": 7e6, "share_read": 0.6, "least_share": 0.58, "ratio": 1.4,
                "counts": True}
        shown = page.page(self.read(bench(peers=[peer, peer | {"way": "graph", "share_read": 0.4, "counts": False}]), case()), "t", [])
        self.assertIn("is 1.40 times as fast as the peer bf16 compiled (L &lt;1&gt;), which takes 7.000 ms, 60.0% of read</li>", shown)
        self.assertIn("40.0% of read; the ratio does not count: the peer is below 58.0% of read</li>", shown)
        self.assertNotIn("the peer", page.page(self.read(bench(), case()), "t", []))
        page.page(self.read(bench(peers=[{}, {"ratio": "nan", "ns": "inf", "peer": records.SCRIPT}]), case()), "t", [])
        self.refused(2, "r.jsonl|'peers[0].ratio' is not a number", self.file(bench(peers=[{"ratio": "x"}])))

    def test_a_broken_last_line_is_left_out_and_told(self):
        found = self.read(case(), case("mismatch")[:-20])
        self.assertEqual([c.outcome for c in found.cases], ["pass"])
        self.assertEqual(found.notes, ["r.jsonl: its last line is broken off and was left out"])

    def test_real_records_are_counted_as_their_summaries_say(self):
        files = records.unpacked(self.folder)
        found = read(list(files.values()))
        self.assertEqual(len(found.cases), sum(r["cases"] for path in files.values() for r in records.of(path, "summary")))
        self.assertEqual(sum(results.wrong(c.outcome) for c in found.cases),
                         sum(r["failed"] for path in files.values() for r in records.of(path, "summary")))
        for one in found.cases:
            if not one.bench:
                kinds = [results.outcome_class(v.outcome) for v in one.verdicts]
                self.assertEqual(kinds.count("passed"), one.record["passed"])
                self.assertEqual(kinds.count("failed"), one.record["failed"])


class Numbers(unittest.TestCase):
    def test_as_people_read_them(self):
        for ns, told in ((0.5, "0.5000 ns"), (999.99, "1.000 µs"), (62983.5, "62.98 µs"), (3.352e8, "335.2 ms"), (6.5e10, "65.00 s"),
                         (float("nan"), "NaN"), (float("inf"), "∞"), (None, "–"), (1e300, "1e291 s")):
            self.assertEqual(text.time(ns), told)
        self.assertEqual([text.score(s) for s in (0.284, 9.999, 12.3, 8.44e6, None)], ["0.28", "10.00", "12", "8.4e6", "–"])
        self.assertEqual([text.share(s, 0) for s in (0.284, 0.004, 1.2, 5e9)], ["28%", "0.4%", "120%", "5e9×"])
        self.assertEqual(text.count(1234567.0), "1\u202f234\u202f567")

    def test_axes(self):
        generator = random.Random(2)
        for _ in range(300):
            values = [10 ** generator.uniform(-3, 18) * 10 ** generator.uniform(-0.5, 0.2) for _ in range(generator.randint(1, 9))]
            values = [value for value in values if text.is_time(value)] or [1.0]
            axis = samples.scale(values)
            self.assertTrue(all(0 <= axis.at(value) <= 1 for value in values))
            self.assertTrue(all(abs(axis.value(axis.at(v)) / v - 1) < 1e-9 for v in values))
            self.assertTrue(all(axis.low <= tick <= axis.high * (1 + 1e-9) for tick in samples.ticks(axis)))
            self.assertLessEqual(len(samples.ticks(axis)), 8)
            self.assertEqual(sum(samples.histogram(values, axis)), len(values))

    def test_thin_keeps_the_extremes(self):
        values = [float(i % 997) for i in range(50_000)]
        kept = samples.thin(values)
        self.assertLessEqual(len(kept), samples.POINTS + 2)
        self.assertEqual((min(v for _, v in kept), max(v for _, v in kept)), (0.0, 996.0))
        self.assertTrue(all(values[i] == v for i, v in kept))

    def test_quantiles_are_nearest_ranks(self):
        ordered = [float(i) for i in range(1, 21)]
        self.assertEqual([samples.quantile(ordered, q) for q in (0.05, 0.5, 0.95, 1)], [1, 10, 19, 20])


class Packs(unittest.TestCase):
    def test_round_trip(self):
        found = [{"a": 1, "b": [1.5, -2, 1e300], "s": 'say "7": 8\\', "n": {"a": -(2**40), "b": "1"}}, {"a": 5, "b": [], "t": True}]
        self.assertEqual(pack.unpack(nights.pack(found)), found)

    def test_columns_with_a_base(self):
        text_part = b'{"a":\x01,"b":[\x01,\x01,\x01]}\n'
        body = b"\x11" + struct.pack("<q", 1000) + b"\x05" + b"\x12" + struct.pack("<q", -5) + b"\x00\x01\x00" + b"\x02\x00\x03"
        blob = zlib.compress(struct.pack("<I", len(text_part)) + text_part + body)
        self.assertEqual(pack.unpack(blob), [{"a": 997, "b": [-4, 123, -7]}])

    def test_what_would_fill_the_memory_is_refused(self):
        bomb = zlib.compress(bytes(pack.LARGEST + 1), 1)
        with self.assertRaisesRegex(Problem, "damaged records: cut off, or too large"):
            pack.unpack(bomb)


VALUES = (None, True, 0, -1, 1e308, -1e308, 5e-324, 10**400, "inf", "nan", "-inf", "", "x", "<b>", "\ud800", [], {}, [1], {"a": 1}, 2.5, 1e17)


def places(value):
    """Every (container, key) inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(inside):
        yield value, key
        yield from places(inner)


class Drawn(Scratch):
    """Records with members taken away or made something else: an error that is told, or a page. Nothing else."""

    def small(self):
        kept = []
        for name, wanted in (("faulty", 3), ("blas-bench", 1), ("27b-bench", 1)):
            taken = [json.loads(line) for line in self.files[name].read_text().splitlines()]
            for kind in ("run", "model", "verdict", "bench", "case", "summary"):
                kept += [record for record in taken if record["type"] == kind][: wanted if kind == "verdict" else 1]
        for record in kept:
            for key in ("stages", "groups", "samples"):
                if key in record:
                    record[key] = record[key][:8]
        return kept + [json.loads(line) for line in records.COMPARED.splitlines()]

    def test_pages_or_problems(self):
        self.files, generator, made = records.unpacked(self.folder), random.Random(5), 0
        originals = self.small()
        for number in range(250):
            changed = json.loads(json.dumps(originals))
            for _ in range(generator.randint(1, 4)):
                holder, key = generator.choice(list(places(changed))[1:])
                if isinstance(holder, list) and key >= len(holder) or isinstance(holder, dict) and key not in holder:
                    continue
                if generator.random() < 0.3:
                    del holder[key]
                else:
                    holder[key] = generator.choice(VALUES)
            path = self.file("".join(json.dumps(record) + "\n" for record in changed))
            with self.subTest(number=number):
                try:
                    page.page(read([path]), "t", []).encode()
                    made += 1
                except Problem:
                    pass
        self.assertGreater(made, 40)

    def test_bytes(self):
        self.files, generator = records.unpacked(self.folder), random.Random(6)
        whole = "".join(json.dumps(record) + "\n" for record in self.small()).encode()
        for number in range(250):
            data = bytearray(whole)
            for _ in range(generator.randint(1, 6)):
                data[generator.randrange(len(data))] = generator.choice(b'{}[]",:0-e\\\n\x00\xffna')
            with self.subTest(number=number):
                try:
                    read([self.file(bytes(data))])
                except Problem:
                    pass


class Balanced(HTMLParser):
    """Elements that are open; attributes and scripts that nobody asked for."""

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.handlers = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name in ("src", "autofocus")]
        if tag not in ("meta", "input", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Pages(Scratch):
    def parsed(self, found):
        made = page.page(found, "t", [])
        balanced = Balanced()
        balanced.feed(made)
        self.assertEqual((balanced.open, balanced.handlers), ([], []))
        return made, balanced

    def test_hostile_values_are_text(self):
        made, balanced = self.parsed(self.read(records.hostile()))
        self.assertEqual(balanced.scripts, 1 + made.count('type="application/json"'))
        self.assertNotIn("\x1b", made)
        self.assertNotIn("\u202e", made)
        made.encode()

    def test_a_long_night_stays_small(self):
        lines = [records.line("run", command="c")]
        stages = [(stage, layer) for layer in range(5) for stage in ("attn.norm", "attn.q_proj", "attn.mix", "mlp.gate", "mlp.up", "mlp.out")]
        for number in range(240):
            subject = SUBJECT | {"file": f"g{number % 8}.h5", "case": f"c{number}", "backend": f"b{number % 3}"}
            lines += [verdict(stage=stage, layer=layer, mode=mode, score=0.123456, place="row 1, channel 27 (group 1)", got=1.25,
                              expected=1.5, max_abs=1e-7, **{"file": subject["file"], "case": subject["case"], "backend": subject["backend"]})
                      for stage, layer in stages for mode in ("alone", "chain", "local")]
            lines.append(records.line("case", outcome="pass", message="", **subject))
        made, _ = self.parsed(self.read(*lines))
        self.assertLess(len(made.encode()), 5_000_000)

    def test_times_are_those_of_the_groups(self):
        found = self.read(bench(groups=[{"group": "head", "ns": 4e6, "share": 0.5}, {"group": "qkv", "ns": 2e6}]), case())
        self.assertEqual(timing.groups(found.timed[0]), [timing.Bar("head", 4e6, 2e6, 0.5), timing.Bar("qkv", 2e6, None, None)])
        parts, rest = timing.parts(found.timed[0])
        self.assertEqual((parts, round(rest, 9)), ([("head", 0.8), ("qkv", 0.4)], -0.2))


@unittest.skipUnless(HARNESS, "DFLASH_HARNESS names no program")
class Command(Scratch):
    def run_harness(self, *words, python=sys.executable):
        done = subprocess.run([HARNESS, "report", *map(str, words)], capture_output=True, text=True,
                              env=os.environ | {"DFLASH_PYTHON": python})
        return done.returncode, done.stdout, done.stderr

    def test_a_page_is_made(self):
        status, out, err = self.run_harness(self.file(case("mismatch"), "-r.jsonl"), "-o", self.out, "--title", "<b>night")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("Wrong: 1 case of 1 failed"), out)
        self.assertIn("&lt;b&gt;night", (self.out / "index.html").read_text())

    def test_files_beside_an_installed_program_come_first(self):
        program, script = self.folder / "bin/dflash-harness", self.folder / "share/dflash/reports/report.py"
        for path in (program, script):
            path.parent.mkdir(parents=True)
        shutil.copy(HARNESS, program)
        script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(5)\n")
        done = subprocess.run([program, "report", "a b", "-x", "-o", "c", "--trends", "--", "--d"], capture_output=True, text=True,
                              env=os.environ | {"DFLASH_PYTHON": sys.executable})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = subprocess.run([program, "report", "a b", "-o", "c", "--trends", "--", "--d"], capture_output=True, text=True,
                              env=os.environ | {"DFLASH_PYTHON": sys.executable})
        self.assertEqual((done.returncode, done.stdout), (5, "['--output', 'c', '--trends', '--', 'a b', '--d']\n"), done.stderr)

    def test_statuses(self):
        good = self.file(case())
        for status, words, arguments, python in (
                (2, "no results are given", ["-o", self.out], sys.executable), (2, "--output is missing", [good], sys.executable),
                (2, "option '--nosuch' is unknown", [good, "--nosuch"], sys.executable),
                (2, "cannot be read", ["nosuch.jsonl", "-o", self.out], sys.executable),
                (4, "is empty", [self.file("", "e.jsonl"), "-o", self.out], sys.executable),
                (3, "DFLASH_PYTHON: '/bin/false' is no Python", [good, "-o", self.out], "/bin/false"),
                (3, "DFLASH_PYTHON: '/no/such' is no Python", [good, "-o", self.out], "/no/such")):
            found, out, err = self.run_harness(*arguments, python=python)
            self.assertEqual((found, out, err.count("\n")), (status, "", 1), err)
            self.assertIn(words, err)
            self.assertFalse(self.out.exists())
        status, out, _ = self.run_harness("--help")
        self.assertEqual(status, 0)
        self.assertIn("--trends", out)


if __name__ == "__main__":
    unittest.main()

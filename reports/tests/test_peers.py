"""What needs neither PyTorch nor a device: decoding against small goldens, refusals, sampling, records. Where PyTorch is
there, the whole block in f32, too."""

import gzip
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

REPORTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPORTS)]

import h5py  # noqa: E402
import numpy as np  # noqa: E402

from dflash_report.problem import Problem  # noqa: E402
from peers import golden, records, sampling, storage  # noqa: E402
from peers.__main__ import arguments  # noqa: E402
from peers.storage import Stored  # noqa: E402

FILES = sorted((REPORTS.parent / "golden" / "files").glob("*.h5"))
BENCH = Path(__file__).parent / "records" / "27b-bench.jsonl.gz"


def ran(words, folder=None, fake=""):
    """The program as a user starts it; fake: the text of a module that stands where PyTorch would."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "torch.py").write_text(fake or "raise ImportError('not here')\n")
        environment["PYTHONPATH"] = f"{place}:{REPORTS}"
        return subprocess.run([sys.executable, "-B", "-m", "peers", *map(str, words)], env=environment, cwd=folder,
                              capture_output=True, text=True, timeout=60)


class Decoding(unittest.TestCase):
    """Products of decoded weights with golden inputs are the golden's values, which another implementation computed."""

    def matrices(self, g):
        q, kv = g.heads * g.head_dim, g.kv_heads * g.head_dim
        kernel = 2 * g.conv_kernel * g.groups
        for n in range(g.layers):
            at = f"weights/layers.{n}."
            for name, rows in (("q_proj", q), ("k_proj", kv), ("v_proj", kv)):
                yield f"{at}self_attn.{name}.weight", (rows, g.hidden), ("attn.conv_in", n), (f"attn.{name}", n)
            yield f"{at}self_attn.o_proj.weight", (g.hidden, q), ("attn.mix", n), ("attn.o_proj", n)
            yield f"{at}attention_conv.kernel_projection.weight", (kernel, g.hidden), ("attn.norm", n), ("attn.kernel", n)
            yield f"{at}mlp_conv.kernel_projection.weight", (kernel, g.hidden), ("mlp.norm", n), ("mlp.kernel", n)
            for name in ("gate", "up"):
                yield f"{at}mlp.{name}_proj.weight", (g.intermediate, g.hidden), ("mlp.conv_in", n), (f"mlp.{name}", n)
            yield f"{at}mlp.down_proj.weight", (g.hidden, g.intermediate), ("mlp.act", n), ("mlp.down", n)
        yield "target/head", (g.vocab, g.hidden), ("final.norm",), ("head.logits",)
        yield ("weights/candidate_selector.hidden_projection.weight", (g.selector_rank, g.hidden), ("final.norm",),
               ("selector.hidden",))

    def test_small_goldens(self):
        seen = set()
        for path in FILES:
            with self.subTest(path=path.name), golden.opened(str(path)) as file:
                case = file.case(None)
                for name, shape, source, result in self.matrices(file.geometry):
                    stored = file.tensor(name, shape)
                    seen.add(stored.storage)
                    x, want = file.stage(case, *source).astype(np.float64), file.stage(case, *result)
                    x = x[1 : 1 + case.n_draft] if source == ("final.norm",) else x
                    want = want.reshape(len(want), -1)
                    got = (x @ storage.values(stored).T)[:, : want.shape[1]]
                    self.assertLessEqual(np.abs(got - want).max(), 1e-6 * np.abs(want).max(), name)
        self.assertEqual(seen, {"f32", "f16", "bf16", "q8_2f", "q4tp"} & seen)
        self.assertLessEqual({"f32", "bf16", "q8_2f", "q4tp"}, seen)

    def test_q4tp_bit_by_bit(self):
        """Against the page's words, a bit at a time: 5 groups a row leave codes that cross bytes."""
        rows, cols, chosen = 3, 160, random.Random(5)
        nibbles = np.array([chosen.randrange(256) for _ in range(rows * cols // 2)], np.uint8)
        ends = np.array([[-3.5, 0.25], [0, -0.5], [-14, 0.0625]], np.float16)
        codes = np.array([chosen.randrange(256) for _ in range(rows * 4)], np.uint8)
        data = np.concatenate((nibbles, ends.reshape(-1).view(np.uint8), codes))
        found = storage.values(Stored("w", "q4tp", (rows, cols), data))
        for r in range(rows):
            row_bits = "".join(f"{byte:08b}"[::-1] for byte in codes[4 * r : 4 * r + 4])
            for c in range(cols):
                group = c // 32
                code = int(row_bits[5 * group : 5 * group + 5][::-1], 2)
                scale, step = (np.float32(2.0 ** float(end)) for end in ends[r])
                for _ in range(code):
                    scale = np.float32(scale * step)
                byte = int(nibbles[r * cols // 2 + c // 2])
                self.assertEqual(found[r, c], ((byte >> 4 if c % 2 else byte & 15) - 8) * float(scale))

    def test_what_is_not_finite_or_no_storage(self):
        infinite = np.concatenate((np.zeros(64, np.uint8), np.array([np.inf, 1], np.float16).view(np.uint8),
                                   np.ones(64, np.float16).view(np.uint8)))
        for stored in (Stored("w", "f32", (1,), np.array([np.nan], np.float32)),
                       Stored("w", "f16", (1,), np.array([0x7C00], np.uint16)),
                       Stored("w", "q8_2f", (2, 32), infinite)):
            with self.assertRaisesRegex(Problem, "w: .* is not finite"):
                storage.values(stored)
        for kind, shape in (("q4tp", (2, 33)), ("q4tp", (2, 2, 32)), ("q5", (2, 32))):
            with self.assertRaises(ValueError):
                storage.stored_bytes(kind, shape)


class Refused(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def refuses(self, words, change):
        """A copy of a golden that `change` damaged."""
        path = self.folder / "g.h5"
        path.write_bytes((FILES[0].parent / "tiny-f32.h5").read_bytes())
        with h5py.File(path, "r+") as file:
            change(file)
        with self.assertRaisesRegex(Problem, words) as caught:
            with golden.opened(str(path)) as opened:
                g = opened.geometry
                opened.case(None)
                opened.tensor("target/head", (g.vocab, g.hidden))
        self.assertIn("g.h5: ", str(caught.exception))
        self.assertEqual(caught.exception.status, 2)

    def test_goldens_that_do_not_hold_together(self):
        def attribute(path, name, value):
            return lambda file: file[path].attrs.__setitem__(name, value)

        self.refuses("no golden file", attribute("/", "format", "other"))
        self.refuses("hidden is 0", attribute("geometry", "hidden", 0))
        self.refuses("cannot be divided", attribute("geometry", "kv_heads", 3))
        self.refuses("cannot be divided", attribute("geometry", "head_dim", 15))
        self.refuses("windows is neither", attribute("geometry", "windows", [1]))
        self.refuses("rows is 1", attribute("cases/main", "rows", 1))
        self.refuses("beyond the geometry", attribute("cases/main", "n_draft", 99))
        self.refuses("is no token", attribute("cases/main", "anchor_token", 99999))
        self.refuses("shape", attribute("cases/main/context_state", "len", 3))
        self.refuses("target/head: 'f64' is no storage", attribute("target/head", "storage", "f64"))
        self.refuses("target/head: f32 .* is expected", attribute("target/head", "shape", [3, 3]))
        self.refuses("cannot be read", lambda file: file.__delitem__("cases/main/input/h"))
        self.refuses("no case", lambda file: [file["cases"].__delitem__(name) for name in list(file["cases"])])

    def test_files_that_are_none(self):
        for content in (b"", b"no HDF5 at all", b"\x89HDF\r\n\x1a\n" + bytes(500)):
            (self.folder / "g.h5").write_bytes(content)
            with self.assertRaisesRegex(Problem, "g.h5: cannot be read"), golden.opened(str(self.folder / "g.h5")):
                pass
        with golden.opened(str(FILES[0])) as file, self.assertRaisesRegex(Problem, "no case 'nosuch'; there are: "):
            file.case("nosuch")

    def one_line(self, found, status, words):
        self.assertEqual((found.returncode, found.stdout), (status, ""), found.stderr)
        self.assertEqual(found.stderr.count("\n"), 1, found.stderr)
        self.assertIn(words, found.stderr)

    def test_command_lines(self):
        self.one_line(ran([]), 2, "GOLDEN")
        self.one_line(ran([FILES[0], "--peer", "fp8"]), 2, "'fp8' is none of bf16, int4, f32")
        self.one_line(ran([FILES[0], "--budget", "soon"]), 2, "--budget")
        self.one_line(ran([FILES[0], "--confidence", "200%"]), 2, "200%")
        self.one_line(ran(["nosuch.h5"]), 2, "nosuch.h5: there is no such file")

    def test_no_pytorch_and_no_device(self):
        self.one_line(ran([FILES[0], "--json", "p.jsonl"], self.folder), 3, "Python has no PyTorch here (not here)")
        bare = "class cuda:\n    is_available = staticmethod(lambda: False)\n"
        self.one_line(ran([FILES[0], "--json", "p.jsonl"], self.folder, bare), 3, "no CUDA device to time on")
        self.assertEqual(list(self.folder.iterdir()), [])


class Sampling(unittest.TestCase):
    def test_the_same_figures_as_bench(self):
        """A record holds the samples and what the harness's own statistics made of them."""
        lines = map(json.loads, gzip.decompress(BENCH.read_bytes()).splitlines())
        counts = set()
        for record in lines:
            if record["type"] == "bench":
                counts.add(len(record["samples"]) >= sampling.FEWEST_BATCHED)
                for name, value in sampling.summary(record["samples"]).items():
                    self.assertAlmostEqual(value, record["block"]["device"][name], delta=1e-6 * abs(value) + 1e-9)
        self.assertTrue(counts)

    def test_intervals_of_few_samples(self):
        self.assertNotIn("low", sampling.summary([1.0, 2, 3, 4, 5]))
        six = sampling.summary([6.0, 5, 4, 3, 2, 1])
        self.assertEqual((six["low"], six["high"], six["median"]), (1, 6, 3.5))
        self.assertEqual(sampling.summary([7.0] * 40)["half_width"], 0)

    def test_when_it_stops(self):
        steady = sampling.sample(lambda: 100.0, 0.01, 1e9)
        self.assertEqual((len(steady.samples), steady.stopped_by), (32, "confidence"))
        drawn, clock = random.Random(1), iter(range(10_000))
        noisy = sampling.sample(lambda: drawn.uniform(1, 100), 1e-6, 500, lambda: float(next(clock)))
        self.assertEqual(noisy.stopped_by, "budget")
        self.assertIn(len(noisy.samples), range(495, 510))
        none = sampling.sample(lambda: 1.0, 0.01, 0)
        self.assertEqual(len(none.samples), 6)


class Records(unittest.TestCase):
    RECORD = {"peer": "bf16", "way": "compiled", "outcome": "pass", "error": 0.01, "error_stage": "mlp.act/1", "end_error": 0.02,
              "chosen_agree": 7, "plain_agree": 6, "drafted": 7, "time": {"median": 2.11e6, "half_width": 0.004}, "bytes": 5.9e9,
              "share_read": 0.6, "least_share": records.LEAST_SHARE}

    def test_lines_for_a_person(self):
        self.assertIn("2.110 ms +-0.4%  5.90 GB, 60% of read; error 0.01 in a layer (mlp.act/1), 0.02 at the end; tokens 7 and 6 of 7",
                      records.told(self.RECORD))
        self.assertNotIn("count", records.told(self.RECORD))
        self.assertIn("57% of read; the ratio does not count", records.told(self.RECORD | {"share_read": 0.57}))
        wrong = {key: value for key, value in self.RECORD.items() if key != "time"}
        told = records.told(wrong | {"outcome": "mismatch", "message": "attn.mix/0 is off"})
        self.assertIn("mismatch: attn.mix/0 is off", told)
        self.assertNotIn(" ms", told)
        self.assertEqual(records.told({"peer": "int4", "way": "any", "outcome": "unavailable", "message": "why"}),
                         "int4  any       unavailable: why")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "p.jsonl")
            records.write(path, [records.run("peers x", "none"), records.SCHEMA | {"type": "peer", "x": [math.inf, math.nan]}])
            run, peer = map(json.loads, path.read_text().splitlines())
            self.assertEqual((run["schema"], run["version"], run["type"], len(run["id"])), ("dflash-record", 1, "run", 32))
            self.assertEqual(peer["x"], ["inf", "nan"])
            with self.assertRaisesRegex(Problem, "nosuch/p.jsonl: cannot be written"):
                records.write(Path(folder, "nosuch", "p.jsonl"), [])
            self.assertEqual([found.name for found in Path(folder).iterdir()], ["p.jsonl"])

    def test_defaults(self):
        found = arguments(["g.h5"])
        self.assertEqual((found.peer, found.way, found.confidence, found.budget), (["bf16", "int4"], ["eager", "graph", "compiled"], 0.01, 5))
        self.assertEqual(arguments(["g.h5", "--peer", "f32", "--confidence", "2%", "--budget", "3s"]).confidence, 0.02)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not here")
class Block(unittest.TestCase):
    def test_small_goldens(self):
        from peers.__main__ import main
        for path in FILES:
            with self.subTest(path=path.name):
                self.assertEqual(main([str(path), "--peer", "f32,bf16", "--check"]), 0)

    def test_a_wrong_block_is_told(self):
        from peers import block
        from peers.__main__ import main
        right = block.rotate
        with mock.patch.object(block, "rotate", lambda x, cos, sin: right(x, cos, -sin)), tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "p.jsonl")
            self.assertEqual(main([str(FILES[0].parent / "tiny-f32.h5"), "--peer", "bf16", "--check", "--json", str(path)]), 1)
            peer = json.loads(path.read_text().splitlines()[1])
        self.assertEqual((peer["outcome"], "time" in peer), ("mismatch", False))
        self.assertIn("is off by", peer["message"])


if __name__ == "__main__":
    unittest.main()

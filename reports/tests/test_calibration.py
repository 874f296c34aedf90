"""The fit against data whose tail is known."""

import gzip
import json
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from calibration import analysis, figure, golden, scores, tail  # noqa: E402

B, C, GOLDENS = 0.35, 0.05, 2000
LAMBDA = B * np.log(1e7 * C / 1e-4)  # of a golden of 1e7 elements that fails once in 1e4


def synthetic(seed, b=B, k=1.0, goldens=GOLDENS):
    """Largest lambda of goldens of very different sizes, from P(largest <= t) = exp(-m c exp(-(t / b)^k))."""
    generator = np.random.default_rng(seed)
    elements = np.exp(generator.normal(10.5, 1.2, goldens)).round()
    x = np.log(elements * C) - np.log(generator.exponential(size=goldens))
    return b * np.maximum(x, 1e-9) ** (1 / k), elements


def threshold(largest):
    return float(np.quantile(largest, 0.75))


def bounds(values):
    return np.quantile(values, [0.005, 0.995])


class Fit(unittest.TestCase):
    def test_b_and_c_lie_in_their_bounds(self):
        largest, elements = synthetic(1)
        weights = tail.bootstrap_weights(len(largest), 400, 2)
        found = tail.fit(largest, elements, threshold(largest))
        samples = tail.fit(largest, elements, threshold(largest), weights=weights)
        for true, one, many in ((B, found.b, samples.b), (np.log(C), found.log_c, samples.log_c)):
            low, high = bounds(many)
            self.assertLess(low, true)
            self.assertLess(true, high)
            self.assertLess(low, one)
            self.assertLess(one, high)
        low, high = bounds(samples.b)
        self.assertLess(high - low, 0.3 * B)  # a bound that holds everything proves nothing

    def test_the_likelihood_is_largest_at_the_fit(self):
        largest, elements = synthetic(3)
        limit = threshold(largest)
        found = tail.fit(largest, elements, limit)
        above, x = largest > limit, np.maximum(largest, limit)

        def likelihood(b, log_c):
            density = np.log(elements) + log_c - np.log(b) - x / b
            return density[above].sum() - (elements * np.exp(log_c - x / b)).sum()

        best = likelihood(found.b, found.log_c)
        self.assertAlmostEqual(best, found.log_likelihood, places=5)
        for b, log_c in ((1.01, 0), (0.99, 0), (1, 0.05), (1, -0.05), (1.01, 0.1), (0.99, -0.1)):
            self.assertLess(likelihood(found.b * b, found.log_c + log_c), best)

    def test_the_upper_bound_covers(self):
        covered = 0
        for seed in range(60):
            largest, elements = synthetic(seed, goldens=600)
            weights = tail.bootstrap_weights(len(largest), 200, seed)
            samples = tail.fit(largest, elements, threshold(largest), weights=weights)
            covered += np.quantile(tail.solve([samples], [1e7], 1e-4), 0.99) >= LAMBDA
        self.assertGreaterEqual(covered, 55)

    def test_two_modes_need_more_than_one(self):
        one = tail.Tail(np.array(B), np.array(np.log(C)))
        self.assertAlmostEqual(float(tail.solve([one], [1e7], 1e-4)), LAMBDA, places=3)
        self.assertAlmostEqual(float(tail.solve([one, one], [1e7, 1e7], 1e-4)), LAMBDA + B * np.log(2), places=3)

    def test_the_exponent_of_a_weibull_tail(self):
        for k in (0.6, 2.0):
            largest, elements = synthetic(5, k=k)
            found = tail.fit_weibull(largest, elements, float(np.quantile(largest, 0.02)))
            self.assertLess(abs(np.log(found.k / k)), 0.25)

    def test_an_exponential_tail_bounds_a_lighter_one(self):
        largest, elements = synthetic(6, k=2.0)
        found = tail.fit(largest, elements, threshold(largest))
        true = B * np.sqrt(np.log(1e7 * C / 1e-4))
        self.assertGreater(float(tail.solve([found], [1e7], 1e-4)), true)

    def test_growth_with_the_number_of_elements(self):
        generator = np.random.default_rng(9)
        largest, elements = synthetic(9)
        power, _ = tail.fit_growth(largest, elements, threshold(largest))
        self.assertGreater(power, 0.8)
        alike = B * (8 - np.log(generator.exponential(size=GOLDENS)))
        power, found = tail.fit_growth(alike, elements, threshold(alike))
        self.assertLess(power, 0.2)
        self.assertLess(abs(float(found.b) / B - 1), 0.15)

    def test_a_heavy_tail_is_told(self):
        generator = np.random.default_rng(7)
        elements = np.full(GOLDENS, 1e5)
        pareto = generator.exponential(size=GOLDENS) ** -0.4
        shape, gain = tail.fit_shape(pareto, elements, threshold(pareto))
        self.assertLess(abs(shape - 0.4), 0.15)
        self.assertGreater(2 * gain, analysis.HEAVY)
        shape, gain = tail.fit_shape(*synthetic(8), threshold(synthetic(8)[0]))
        self.assertLess(abs(shape), 0.15)
        self.assertGreaterEqual(gain, -1e-6)


class Files(unittest.TestCase):
    def test_a_failed_stage_counts_from_the_draws_record(self):
        line = {"mode": "chain", "stage": "mlp.up", "elements": 70, "score": 0.3, "lambda": 2.9, "profile": "exact"}
        first = {"case": "a", "stage": "mlp.down", "mode": "chain", "outcome": "mismatch", "score": 1.5}
        law = {"case": "a", "stage": "linear", "mode": "alone", "outcome": "mismatch", "score": 9.0}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "one.scores.jsonl"
            path.write_text("".join(json.dumps(line | {"seed": 5, "draw": draw}) + "\n" for draw in (0, 1)))
            records = [{"type": "draw", "draw": 0, "first": first}, {"type": "draw", "draw": 1, "first": law}]
            path.with_name("one.draws.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
            self.assertEqual(scores.find([folder]), [path])
            failed, lawless = scores.read(path)
        self.assertEqual(failed.needed, {("chain", "mlp.up"): 2.9, ("chain", "mlp.down"): 1.5 * scores.LAMBDA})
        self.assertEqual(lawless.needed, {("chain", "mlp.up"): 2.9})
        self.assertIsNotNone(lawless.failure)

    def test_a_file_that_is_cut_or_no_json_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "s.scores.jsonl"
            path.write_text('{"mode":"alone"}\nnonsense\n')
            with self.assertRaisesRegex(scores.Unreadable, "s.scores.jsonl, line 2"):
                list(scores.read_lines(path))
            cut = Path(folder) / "t.scores.jsonl.gz"
            cut.write_bytes(gzip.compress(b'{"mode":"alone"}\n' * 100)[:-9])
            with self.assertRaisesRegex(scores.Unreadable, "t.scores.jsonl.gz"):
                list(scores.read_lines(cut))

    def test_the_figure_is_the_same_every_time(self):
        key = "alone", "mlp.up"
        draws = [scores.Draw("s", "exact", 1, i, {key: 1.0 + i / 9}, {key: 9}) for i in range(300)]
        settings = analysis.Settings(above=0.25, probability=1e-4, samples=10, seed=1)
        profile = analysis.Profile("exact", draws, golden.stage_elements(), settings)
        record = {"type": "defect", "defect": "a", "lawful": False, "found": True, "end_values": False}
        records = [record | {"score": score} for score in ("inf", 3.5, 70)]
        records += [record | {"score": 0.1, "lawful": True}, record | {"score": 0.2, "end_values": True}]
        defects = figure.defect_scores(records)
        self.assertEqual(defects, [3.5, 70.0, float("inf")])
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("a.svg", "b.svg")]
            for path in paths:
                figure.draw(path, [profile], 10.0, defects)
            self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())
            self.assertIn("1 of them further right", paths[0].read_text())

    def test_elements_follow_stage_table_and_preset(self):
        sizes = golden.stage_elements()
        self.assertEqual(len(sizes), 27)
        self.assertEqual(sizes["context.fc"], 2048 * 5120)
        self.assertEqual(sizes["context.k"], 5 * 2048 * 8 * 128)
        self.assertEqual(sizes["attn.kernel"], 5 * 8 * 2 * 2 * 320)
        self.assertEqual(sizes["mlp.act"], 5 * 8 * 17408)
        self.assertEqual(sizes["head.logits"], 7 * 248320)
        self.assertNotIn("select", sizes)

    def test_a_profile_without_enough_goldens_has_no_lambda(self):
        key = "alone", "mlp.up"
        draws = [scores.Draw("s", "exact", 1, i, {key: 1.0 + i}, {key: 9}) for i in range(8)]
        settings = analysis.Settings(above=0.25, probability=1e-4, samples=10, seed=1)
        profile = analysis.Profile("exact", draws, golden.stage_elements(), settings)
        self.assertIsNone(profile.staged)
        self.assertEqual(profile.outliers(1)[0][:3], (8.0, "alone", "mlp.up"))


if __name__ == "__main__":
    unittest.main()

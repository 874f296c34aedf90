"""Change points: the statistics by hand, what judging promises, and what it must not say."""

import json
import math
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.stats import norm, t

from trends import NEEDED, Point, Series, judge, judge_all
from trends import calibrate, draws, evidence, judging, levels, place, robust, thresholds


def series(values, revisions=None, **sides):
    names = revisions or [f"r{night}" for night in range(len(values))]
    return Series("block", [Point(str(i), r, float(v), **sides) for i, (r, v) in enumerate(zip(names, values))])


def nights(count, seed=1, noise=0.02):
    return np.exp(noise * np.random.default_rng(seed).standard_normal(count))


class Statistics(unittest.TestCase):
    def test_robust_levels_of_normal_nights_are_unbiased_and_spikes_move_them_little(self):
        windows = np.random.default_rng(3).standard_normal((4000, 40))
        count = np.full(4000, 40)
        location, sigma = robust.fit(windows, count, 1e-6)
        self.assertLess(abs(location.mean()), 0.01)
        self.assertLess(abs(sigma.mean() - 1), 0.02)
        windows[:, :2] = 50.0
        location, sigma = robust.fit(windows, count, 1e-6)
        self.assertLess(abs(location.mean()), 0.2)
        self.assertLess(abs(sigma.mean() - 1), 0.3)

    def test_nights_that_are_missing_do_not_count(self):
        few = np.random.default_rng(4).standard_normal((1, 9))
        padded = np.concatenate([np.full((1, 5), np.nan), few], 1)
        for mine, theirs in zip(robust.fit(few, np.array([9]), 1e-6), robust.fit(padded, np.array([9]), 1e-6)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)

    def test_inflation_is_the_variance_of_a_mean_of_correlated_nights(self):
        for lag1 in (0.0, 0.3, 0.7):
            for count in (1, 3, 20):
                distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
                self.assertAlmostEqual(float(robust.inflation(lag1, count)), (lag1**distance).sum() / count, places=10)

    def test_normal_score_has_the_tail_of_a_t_statistic(self):
        for degrees in (12, 40):
            for value in (2.0, 4.0, 6.0):
                score = float(evidence.normal_score(value, 1.0, 0.0, 20, degrees))
                self.assertAlmostEqual(math.log(norm.sf(score) / t.sf(value, degrees)), 0.0, delta=0.05)

    def test_losses_are_those_of_each_split(self):
        values = np.random.default_rng(5).standard_normal(9)
        for split, loss in enumerate(place.losses(values, 0.0, 2.0, 0.7)):
            levels_ = np.where(np.arange(9) < split, 0.0, 2.0)
            by_hand = np.minimum(((values - levels_) / 0.7) ** 2, place.CAP**2).sum()
            self.assertAlmostEqual(loss, by_hand, places=10)

    def test_noise_of_a_segment_is_found(self):
        values, _ = draws.draw(draws.Kind("", lag1=0.5, nights=4000), 1, 6)
        noise = levels.pooled([values[0, :2000], 1 + values[0, 2000:]], 1e-6)
        self.assertAlmostEqual(noise.sigma, draws.NOISE, delta=0.001)
        self.assertAlmostEqual(noise.lag1, 0.5, delta=0.05)


class Evidence(unittest.TestCase):
    def gather(self, values):
        return evidence.gather(values, 5e-4, 0.01)

    def test_a_night_knows_nothing_of_those_after_it(self):
        values, _ = draws.draw(draws.Kind("", shift=0.08), 20, 7)
        whole, part = self.gather(values), self.gather(values[:, :47])
        np.testing.assert_allclose(whole.slower[:, :47], part.slower, rtol=1e-9)
        np.testing.assert_array_equal(whole.after[:, :47], part.after)

    def test_slower_and_faster_are_mirror_images(self):
        values, _ = draws.draw(draws.Kind("", shift=0.08), 20, 8)
        np.testing.assert_allclose(self.gather(values).slower, self.gather(-values).faster, rtol=1e-9)

    def test_series_are_judged_apart(self):
        values, _ = draws.draw(draws.Kind("", spikes=0.05), 20, 9)
        np.testing.assert_allclose(self.gather(values).slower[4:5], self.gather(values[4:5]).slower, rtol=1e-9)


class Judging(unittest.TestCase):
    def shifted(self, size=1.1, before=45, after=12, seed=1):
        return nights(before + after, seed) * np.where(np.arange(before + after) < before, 1.0, size)

    def test_too_few_nights_are_said_to_be_too_few(self):
        values = nights(NEEDED) * np.where(np.arange(NEEDED) < NEEDED - 3, 1.0, 2.0)
        self.assertEqual(judge(series(values)).verdict, "changed")
        few = judge(series(values[1:]))
        self.assertEqual((few.verdict, few.changes, few.noise), ("too few", (), None))
        self.assertEqual((few.segments[0].first, few.segments[0].last), (0, NEEDED - 2))
        self.assertEqual(judge(series([])).segments, ())

    def test_a_shift_has_its_place_size_and_revisions(self):
        trend = judge(series(self.shifted() * 3e8))
        (change,) = trend.changes
        self.assertEqual((trend.verdict, change.night), ("changed", 45))
        self.assertTrue(change.low <= 45 <= change.high)
        self.assertTrue(45 <= change.called <= 49)
        self.assertEqual(change.revision_before, f"r{change.low - 1}")
        self.assertEqual(change.revision_after, f"r{change.high}")
        self.assertTrue(change.size_low < 0.1 < change.size_high and change.size_low < change.size < change.size_high)
        self.assertTrue(0 < change.p <= thresholds.RATE and not change.same_revision)
        first, second = trend.segments
        self.assertEqual((first.first, first.last, second.first, second.last), (0, 44, 45, 56))
        self.assertTrue(first.low < 3e8 < first.high and second.low < 3.3e8 < second.high)
        self.assertAlmostEqual(trend.noise, 0.02, delta=0.006)
        json.dumps(asdict(trend))

    def test_the_unit_of_the_values_does_not_matter(self):
        one, other = judge(series(self.shifted())), judge(series(self.shifted() * 1e-9))
        self.assertEqual(one.changes[0].night, other.changes[0].night)
        self.assertAlmostEqual(one.changes[0].size, other.changes[0].size, places=9)

    def test_faster_is_below_zero(self):
        (change,) = judge(series(self.shifted(1 / 1.1))).changes
        self.assertTrue(change.size_low < change.size < change.size_high < 0)

    def test_a_shift_back_is_a_second_change(self):
        values = nights(80, 5)
        values[45:60] *= 1.1
        changes = judge(series(values)).changes
        self.assertEqual([change.night for change in changes], [45, 60])
        self.assertTrue(changes[0].size > 0 > changes[1].size)

    def test_no_later_night_takes_a_call_back(self):
        values, _ = draws.draw(draws.Kind("", shift=0.06, back=12, nights=90), 6, 11)
        for row in np.exp(values):
            seen = []
            for count in range(NEEDED, 91):
                called = [change.called for change in judge(series(row[:count])).changes]
                self.assertEqual(called[: len(seen)], seen)
                seen = called
            self.assertTrue(seen)

    def test_blocks_of_nights_judge_like_the_whole(self):
        values, _ = draws.draw(draws.Kind("", shift=0.05, back=70, nights=700, earliest=400, latest=500), 4, 12)
        for row in np.exp(values):
            by_block = judge(series(row)).changes
            with mock.patch.object(judging, "BLOCK", 10_000):
                whole = judge(series(row)).changes
            self.assertTrue(by_block)
            self.assertEqual([c.called for c in by_block], [c.called for c in whole])
            self.assertEqual([c.night for c in by_block], [c.night for c in whole])

    def test_spikes_are_no_change_however_high(self):
        values = nights(60, 2)
        values[[20, 40, 41, 58, 59]] *= [3.0, 2.0, 1.3, 2.5, 1.2]
        self.assertEqual(judge(series(values)).verdict, "steady")

    def test_identical_values_and_changes_below_the_least_are_steady(self):
        self.assertEqual(judge(series([5.0] * 40)).verdict, "steady")
        step = [100.0] * 30 + [100.8] * 30
        self.assertEqual(judge(series(step)).verdict, "steady")
        self.assertEqual(judge(series(step), least=0.005).verdict, "changed")

    def test_nights_differ_no_less_than_their_own_intervals_say(self):
        step = [100.0] * 30 + [103.0] * 12
        self.assertEqual(judge(series(step)).verdict, "changed")
        self.assertEqual(judge(series(step, low=90.0, high=110.0)).verdict, "steady")

    def test_a_change_without_a_commit_says_so(self):
        values = self.shifted(1.3)
        self.assertTrue(judge(series(values, ["same"] * len(values))).changes[0].same_revision)

    def test_what_cannot_be_judged_is_refused(self):
        for bad in (0.0, -1.0, math.nan, math.inf):
            with self.assertRaisesRegex(ValueError, "series 'block', night 2"):
                judge(series([1.0, 1.0, bad]))
        for rate in (0.0, 1.0, math.nan):
            with self.assertRaisesRegex(ValueError, "rate"):
                judge(series([1.0]), rate=rate)
        with self.assertRaisesRegex(ValueError, "least"):
            judge(series([1.0]), least=-0.1)

    def test_wild_values_end_in_numbers(self):
        generator = np.random.default_rng(13)
        wild = [series(10.0 ** generator.uniform(-300, 300, 70)), series([1e-300] * 30 + [1e300] * 30)]
        for trend in judge_all(wild):
            for segment in trend.segments:
                self.assertTrue(math.isfinite(segment.level))


class Calibration(unittest.TestCase):
    def test_evidence_rises_as_rates_fall(self):
        rates, known = thresholds.table()
        self.assertTrue(np.all(np.diff(rates) < 0) and np.all(np.diff(known) > 0))
        self.assertAlmostEqual(thresholds.chance(thresholds.for_rate(0.01)), 0.01, places=9)
        self.assertAlmostEqual(thresholds.chance(99.0), rates[-1], places=12)

    def test_the_table_is_what_its_program_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.json"
            with mock.patch("sys.argv", ["calibrate", "--series", "10000", "--seed", "5", "--output", str(path)]):
                self.assertEqual(calibrate.main(), 0)
            made = json.loads(path.read_text())
        stored = json.loads(thresholds.TABLE.read_text())
        self.assertEqual(made["rates"], stored["rates"])
        np.testing.assert_allclose(made["evidence"][:7], stored["evidence"][:7], atol=0.12)


if __name__ == "__main__":
    unittest.main()

"""The demands of docs/trends.md in short: fewer series than in its tables, so only what chance cannot explain fails."""

import unittest

from scipy.stats import binom

from trends import simulate, thresholds

SERIES = 500
SEED = 31
UNLIKELY = 0.001


class Demands(unittest.TestCase):
    def setUp(self):
        self.bound = thresholds.for_rate(thresholds.RATE)

    def test_steady_series_have_no_more_false_changes_than_allowed(self):
        for number, case in enumerate(case for case in simulate.STEADY if case.most is not None):
            share = simulate.false_share(case.kind, self.bound, SERIES, [SEED, 1, number])
            with self.subTest(case.kind.name, share=share):
                self.assertGreater(binom.sf(round(share * SERIES) - 1, SERIES, case.most), UNLIKELY)

    def test_shifts_are_found_as_soon_as_promised(self):
        for number, case in enumerate(case for case in simulate.SHIFTED if case.least is not None):
            delays, _, _ = simulate.first_calls(case.kind, self.bound, SERIES, [SEED, 2, number])
            found = int((delays <= case.within).sum())
            with self.subTest(case.kind.name, found=found):
                self.assertGreater(binom.cdf(found, SERIES, case.least), UNLIKELY)

    def test_intervals_hold_the_truth(self):
        kind = simulate.JUDGED[1]
        series = 150
        exact, _, placed, sized, _ = simulate.judged(kind, series, [SEED, 3], thresholds.RATE)
        self.assertGreater(exact, 0.85)
        for share in (placed, sized):
            self.assertGreater(binom.cdf(round(share * series), series, 0.95), UNLIKELY)


class Counting(unittest.TestCase):
    def test_without_a_bound_everything_is_false_and_with_a_high_one_nothing(self):
        kind = simulate.STEADY[0].kind
        self.assertEqual(simulate.false_share(kind, 0.0, 100, [SEED]), 1.0)
        self.assertEqual(simulate.false_share(kind, 99.0, 100, [SEED]), 0.0)

    def test_a_call_before_the_shift_finds_nothing(self):
        kind = simulate.SHIFTED[0].kind
        delays, false, _ = simulate.first_calls(kind, 0.0, 100, [SEED])
        self.assertTrue(false.all())
        self.assertFalse((delays <= kind.nights).any())


if __name__ == "__main__":
    unittest.main()

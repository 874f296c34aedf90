"""What the scores of one profile say: a tail a mode, a tail a kind of stage, and the lambda that follows."""

from dataclasses import dataclass

import numpy as np

from calibration import tail

JUDGED = ("alone", "chain")  # modes of one verification
CONFIDENCE = 0.99  # of upper bounds, and of the test whether a tail is heavier than exponential
HEAVY = 9.55  # what twice the gain in log likelihood exceeds by chance in one fit of 1000, of one sign
FAR = 3.0  # a stage that never needs more than this is bounded, whatever the form of its tail


@dataclass
class Settings:
    above: float  # the share of goldens that the tail is fitted to
    probability: float  # of a false alarm in one verification
    samples: int  # of the bootstrap
    seed: int


def column(draws, mode, stage=None):
    """Largest lambda and elements of each draw, in one kind of stage or over all, 0 where there is nothing."""
    largest, elements = np.zeros(len(draws)), np.zeros(len(draws))
    for i, draw in enumerate(draws):
        keys = [key for key in draw.needed if key[0] == mode and (stage is None or key[1] == stage)]
        largest[i] = max((draw.needed[key] for key in keys), default=0.0)
        elements[i] = sum(draw.elements[key] for key in keys)
    return largest, elements


class Group:
    """One profile and mode, in one kind of stage or over all of them."""

    def __init__(self, draws, mode, stage, settings, weights):
        largest, elements = column(draws, mode, stage)
        there = elements > 0
        self.mode, self.stage = mode, stage
        self.goldens, self.elements = int(there.sum()), int(elements.sum())
        self.largest = float(largest.max(initial=0.0))
        self.tail = self.samples = None
        x, m = largest[there], elements[there]
        # Where a backend computes better than f32, a stage needs nothing in most goldens.
        self.threshold = float(np.quantile(x[x > 0], 1 - settings.above)) if np.any(x > 0) else 0.0
        if (x > self.threshold).sum() < tail.FEWEST:
            return
        self.tail = tail.fit(x, m, self.threshold)
        self.samples = tail.fit(x, m, self.threshold, weights=weights[:, there])
        self.weibull = tail.fit_weibull(x, m, self.threshold)
        self.growth, self.grown = tail.fit_growth(x, m, self.threshold)
        self.shape, self.gain = tail.fit_shape(x, m, self.threshold)

    @property
    def heavy(self):
        """The exponential is no upper bound here: the error scale of the stage is to be looked at."""
        return self.tail is not None and self.largest > FAR and self.shape > 0 and 2 * self.gain > HEAVY

    def as_json(self):
        row = {"mode": self.mode, "stage": self.stage, "goldens": self.goldens, "elements": self.elements}
        row |= {"largest": self.largest, "threshold": self.threshold}
        if self.tail is None:
            return row
        upper = float(np.quantile(self.samples.b, CONFIDENCE))
        row |= {"b": float(self.tail.b), "b_upper": upper, "log_c": float(self.tail.log_c)}
        row |= {"weibull_k": self.weibull.k, "weibull_b": float(self.weibull.b ** (1 / self.weibull.k))}
        row |= {"growth": self.growth}
        return row | {"shape": self.shape, "shape_gain": self.gain, "heavier_than_exponential": self.heavy}


def _combine(groups, elements, settings):
    """lambda, its upper bound, and lambda when the rate grows with elements as it does from golden to golden, over
    groups that were fitted."""
    fitted = [group for group in groups if group.tail is not None and elements(group) > 0]
    if not fitted:
        return None
    sizes = [elements(group) for group in fitted]
    grown = [elements(group) ** group.growth for group in fitted]
    p = settings.probability
    return {
        "lambda": float(tail.solve([group.tail for group in fitted], sizes, p)),
        "upper": float(np.quantile(tail.solve([group.samples for group in fitted], sizes, p), CONFIDENCE)),
        "grown": float(tail.solve([group.grown for group in fitted], grown, p)),
    }


class Profile:
    """All that is said of one profile. `sizes`: elements of the golden to verify, by kind of stage."""

    def __init__(self, name, draws, sizes, settings):
        self.name, self.draws, self.settings = name, draws, settings
        weights = tail.bootstrap_weights(len(draws), settings.samples, settings.seed)
        modes = sorted({mode for draw in draws for mode, _ in draw.needed})
        self.modes = [Group(draws, mode, None, settings, weights) for mode in modes]
        self.stages = [Group(draws, mode, stage, settings, weights) for mode in modes for stage in sizes]
        all_of_it = sum(sizes.values())
        judged = [group for group in self.modes if group.mode in JUDGED]
        by_stage = [group for group in self.stages if group.mode in JUDGED]
        self.pooled = _combine(judged, lambda group: all_of_it, settings)
        self.staged = _combine(by_stage, lambda group: sizes[group.stage], settings)
        self.of_mode = {group.mode: _combine([group], lambda group: all_of_it, settings) for group in self.modes}
        self.unfitted = [f"{g.stage} ({g.mode})" for g in by_stage if g.tail is None]

    @property
    def heavy(self):
        return [group for group in self.stages + self.modes if group.heavy]

    def outliers(self, count=10):
        """The draws that need the largest lambda: (lambda, mode, stage, draw)."""
        rows = [(*max((value, *key) for key, value in draw.needed.items()), draw) for draw in self.draws if draw.needed]
        return sorted(rows, key=lambda row: -row[0])[:count]

    def as_json(self):
        return {
            "draws": len(self.draws),
            "failed": sum(draw.failure is not None for draw in self.draws),
            "elements": sum(group.elements for group in self.modes),
            "by_mode": self.pooled,
            "by_stage": self.staged,
            "stages_without_fit": self.unfitted,
            "modes": [group.as_json() | {"golden": self.of_mode[group.mode]} for group in self.modes],
            "stages": [group.as_json() for group in self.stages],
            "outliers": [
                {"lambda": value, "mode": mode, "stage": stage, "slice": d.slice, "seed": d.seed, "draw": d.number}
                for value, mode, stage, d in self.outliers()
            ],
        }

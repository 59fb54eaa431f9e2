"""`h2t2-lab bench worth`."""

import json

import numpy as np
import pytest

from h2t2_lab.bench import worth
from h2t2_lab.command_line import main


def test_the_best_pair_is_the_best_of_all_pairs():
    """Of every pair that offloads bins i to j - 1, with the cheaper class where an answer is lost."""
    rng = np.random.default_rng(1)
    bins, truth = rng.integers(0, worth.BINS, 400), rng.integers(0, 2, 400)
    answer, lost = truth ^ (rng.random(400) < 0.2), rng.random(400) < 0.4
    mistake = [worth.DELTA_FP, worth.DELTA_FN]

    def cost(k, i, j):
        own = np.flatnonzero(bins == k)
        if k < i or k >= j:
            return sum(mistake[truth[t]] for t in own if truth[t] != (k >= j))
        by_class = [
            sum(mistake[truth[t]] for t in own if truth[t] != (answer[t] if not lost[t] else fallback)) for fallback in (0, 1)
        ]
        return min(by_class) + worth.BETA * len(own)

    best = min(sum(cost(k, i, j) for k in range(worth.BINS)) for i in range(worth.BINS + 1) for j in range(i, worth.BINS + 1))
    assert worth.best_pair(bins, truth, answer, lost) == pytest.approx(best / 400)


@pytest.mark.slow
def test_rates_that_are_told_and_answers_that_are_counted_save(capsys):
    assert main(["bench", "worth", "--quick", "--json", "-"]) == 0
    rows = {row["case"]: row for row in json.loads(capsys.readouterr().out)}
    for stream in worth.STREAMS:
        assert rows["20% wrong, told"][stream] < 0.6 * rows["20% wrong, unset"][stream]
    assert rows["sharp, 3,000 rounds"]["during"] < 0.12
    assert rows["50% of events lost"]["calibrated"] > rows["50% lost"]["calibrated"]

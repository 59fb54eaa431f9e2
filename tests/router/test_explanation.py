"""What a router has learned: a table and a picture by the local model's score."""

import numpy as np
import pytest

from h2t2_tools import Router

RNG = np.random.default_rng(5)
TRUE = RNG.integers(0, 2, 3000)
SCORES = np.clip(0.5 + (TRUE - 0.5) * 0.5 + RNG.normal(0, 0.25, 3000), 0, 1)
STREAM = np.stack([SCORES, TRUE], 1)


def router_of(stream, **options):
    router = Router(lambda x: x[:, 0], lambda x: x[:, 1], **{"beta": 0.2, "seed": 3, **options})
    for n in range(0, len(stream), 30):
        router.decide_many(stream[n : n + 30])
    return router


def brute_force(scores, true, beta, delta_fp, delta_fn):
    """The cheapest pair of thresholds at sixteenths."""
    bins = np.minimum((scores * 16).astype(int), 15)
    best = np.inf
    for i in range(17):
        for j in range(i, 17):
            cost = np.where(bins < i, true * delta_fn, np.where(bins < j, beta, (1 - true) * delta_fp)).mean()
            best = min(best, cost)
    return best


def test_the_rows_are_counts_and_the_best_pair_is_the_best(tmp_path):
    explanation = router_of(STREAM).explain(TRUE)
    bins = np.minimum((SCORES * 16).astype(int), 15)
    assert [row.samples for row in explanation.rows] == np.bincount(bins, minlength=16).tolist()
    assert (
        explanation.rows[3].events == TRUE[bins == 3].mean() and explanation.rows[0].low == 0 and explanation.rows[-1].high == 1
    )
    assert explanation.rows[8].asked > 0.5 > explanation.rows[15].asked  # it asks where the score is unsure
    assert explanation.best_pair == pytest.approx(brute_force(SCORES, TRUE, 0.2, 0.7, 1.0), abs=0.003)
    low, high = explanation.thresholds
    assert 0 < low < high < 1
    assert "0.50 - 0.56" in str(explanation) and "best thresholds in hindsight" in str(explanation)
    explanation.picture(tmp_path / "learned.png")
    assert (tmp_path / "learned.png").read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in explanation._repr_html_()


def test_a_notebook_shows_a_router_by_what_it_has_learned():
    assert "no decision yet" in Router(lambda x: x[:, 0], lambda x: x[:, 1])._repr_html_()
    router = router_of(STREAM[:300])
    assert router._repr_html_() == router.explain()._repr_html_()


def test_without_labels_the_answers_estimate_it():
    router = router_of(STREAM)
    estimated, measured = router.explain(), router.explain(TRUE)
    assert estimated.best_pair == pytest.approx(measured.best_pair, abs=0.03)
    assert estimated.report.own == router.report().own


def test_three_classes_and_no_answer():
    def local(x):
        return np.eye(3)[x[:, 0].astype(int)] * 0.7 + 0.1

    router = Router(local, lambda x: x[:, 0].astype(int), beta=0.1)
    router.decide_many(RNG.integers(0, 3, (200, 1)))
    explanation = router.explain()
    assert explanation.best_pair is None and explanation.rows[0].low == pytest.approx(1 / 3)
    assert sum(row.samples for row in explanation.rows) == 200 and explanation._repr_html_()
    with pytest.raises(ValueError, match="no decision yet"):
        Router(local, local).explain()
    silent = Router(local, lambda x: 1 / 0, beta=0.1)
    with pytest.warns(UserWarning):
        silent.decide_many(RNG.integers(0, 3, (20, 1)))
    assert silent.explain().report.own is None and silent.explain()._repr_html_()

"""Pairwise H2T2 against binary learners of the runtime."""

from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.numbers import times
from h2t2.units import q15
from h2t2_lab.rivals import pairwise
from h2t2_lab.rivals.policies import Pairwise
from h2t2_tools.common.corollary import optimal_rates
from h2t2_tools.replay.simulation.stream import Costs, Stream

BETA = 0.2
SHARED = ("rng", "t", "root", "age", "epsilon")  # of all learners


@given(st.integers(2**15, 2**30 - 1), st.data())
def test_ratio(b, data):
    a = data.draw(st.integers(0, b))
    share = pairwise.ratio(a, b)
    assert 0 <= share <= 32768
    assert abs(share - a / b * 2**15) <= 0.5 + 2**15 * 2**8 / b


def stream_of(classes, samples, seed):
    """Random scores whose labels follow them half of the time."""
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.full(classes, 0.3), samples)
    labels = np.where(rng.random(samples) < 0.5, scores.argmax(1), rng.integers(0, classes, samples))
    return Stream(scores, labels, np.full(samples, BETA))


@pytest.mark.whole  # numba compiles each set of options anew
@pytest.mark.parametrize("classes", [2, 3, 7, 16])
@pytest.mark.parametrize("options", [{}, {"feedback": "explored", "exploration": "epsilon"}, {"half_life": 100}])
def test_it_is_a_binary_learner_a_pair(classes, options):
    """Up to 16 classes, against K (K - 1) / 2 separate H2T2 learners, on the same draws and rounds."""
    matrix = [[0 if i == j else 1 - ((3 * i + 5 * j) % 7) / 16 for j in range(classes)] for i in range(classes)]
    stream, costs = stream_of(classes, 400, 0), Costs.of(BETA, matrix)
    policy = Pairwise(2, **options)
    actions = policy.act(stream, costs, 3)
    whole = costs.q15
    epsilon = q15(optimal_rates(2, len(stream), BETA)[0], "epsilon")
    common = {"bits": 2, "beta": round(BETA * 32768), "seed": 3, "epsilon": epsilon, "feedback": policy.feedback}
    common |= {"exploration": policy.exploration, "half_life": policy.half_life}
    clock, apart = H2T2(**common), {}  # a learner a pair; they share the draws and the rounds of `clock`
    for f, label, action in zip(stream.q14.tolist(), stream.label.tolist(), actions.tolist()):
        expected = [sum(f[i] * int(whole[i][j]) for i in range(classes)) for j in range(classes)]
        a, b = sorted(sorted(range(classes), key=lambda j: (expected[j], j))[:2])
        learner = apart.setdefault((a, b), H2T2(**common))
        k = pairwise.pair_bin(expected[a], expected[b], 2)
        share = expected[a] / (expected[a] + expected[b]) if expected[a] + expected[b] else 0.5
        assert abs(share * 4 - round(share * 4)) < 1e-3 or k == min(int(share * 4), 3)
        for name in SHARED:
            setattr(learner, name, copy(getattr(clock, name)))
        age = clock.age
        local = learner.decide(k)
        if learner.age == 1 and age > 1:  # all of them forget
            for pair, other in apart.items():
                if pair != (a, b):
                    other.forget()
        for name in SHARED:
            setattr(clock, name, getattr(learner, name))
        assert action == (-1 - (a, b)[learner.local] if local == OFFLOAD else (a, b)[local])
        if local == OFFLOAD:
            rate = learner.rate
            learner.rates = [times(rate, int(whole[label][a])), times(rate, int(whole[label][b]))] * 2
            assert learner.learn(learner.ticket, 0)
    assert (actions < 0).any() and len(set(actions.tolist())) > 3


@pytest.mark.whole
def test_it_learns_what_an_uncalibrated_model_is_worth():
    """Class 2's score is given to class 1 and the other way round: the argmax rule is wrong, the learner finds out."""
    rng = np.random.default_rng(2)
    label = rng.integers(0, 3, 6000)
    scores = np.full((6000, 3), 0.12)
    scores[np.arange(6000), np.array([0, 2, 1])[label]] = 0.76
    stream, costs = Stream(scores, label, np.full(6000, BETA)), Costs.of(BETA, 1.0 - np.eye(3))
    actions = Pairwise().act(stream, costs, 1)
    paid = np.where(actions < 0, BETA, actions != label)
    assert paid[3000:].mean() < 0.25  # argmax would pay 2/3

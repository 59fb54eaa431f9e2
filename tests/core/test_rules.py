"""The calibrated rules and pairwise H2T2 against plain float arithmetic; remote models that err."""

import itertools
from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.pairwise import Pairwise
from h2t2.core.rules import Calibrated, CalibratedMulticlass
from h2t2_tools.common.policies import PAPER

q15 = st.integers(0, 32768)


@given(st.integers(0, 16384), q15, q15, q15)
def test_theorem_1(f, beta, fp, fn):
    """Exactly the theorem's inequalities, in rationals."""
    action = Calibrated(fp, fn).decide(f, beta)
    offload = beta * 16384 <= f * fn and f * fp < (fp - beta) * 16384
    local = int(f * (fp + fn) >= fp * 16384)
    assert action == (OFFLOAD if offload else local)


@pytest.mark.parametrize("beta", [0.42, 0.5])
def test_no_offload_from_half_the_harmonic_mean_on(beta):
    """Remark 1 (i): delta_1 delta_-1 / (delta_1 + delta_-1) = .4118 for .7 and 1."""
    rule = Calibrated(22938, 32768)
    assert OFFLOAD not in {rule.decide(f, round(beta * 32768)) for f in range(16385)}
    assert OFFLOAD in {rule.decide(f, round(0.41 * 32768)) for f in range(16385)}


@given(st.integers(2, 16), st.integers(0, 2**32), q15)
def test_theorem_3(n, seed, beta):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 32769, (n, n))
    np.fill_diagonal(costs, 0)
    f = np.floor(rng.dirichlet(np.ones(n)) * 16384).astype(int)
    expected = f @ costs
    action = CalibratedMulticlass(costs.tolist()).decide(f.tolist(), beta)
    assert action == (OFFLOAD if expected.min() > beta * 16384 else int(np.argmin(expected)))


@pytest.mark.parametrize(
    "costs", [[[0]], [[0, 1], [1]], [[0, 1], [2, 3]], [[0, -1], [1, 0]], [[0, 40000], [1, 0]], [[0] * 17] * 17]
)
def test_a_wrong_cost_matrix_is_refused(costs):
    for kind in (CalibratedMulticlass, Pairwise):
        with pytest.raises(ValueError, match="costs"):
            kind(costs)


@pytest.mark.parametrize("costs, same_bins", [([[0, 32768], [32768, 0]], True), ([[0, 22938], [32768, 0]], False)])
@pytest.mark.parametrize("options", [{}, {"feedback": "all", "exploration": "anytime", "half_life": 100}])
def test_for_two_classes_pairwise_is_h2t2(costs, same_bins, options):
    """On the same draws; where both errors cost the same its score is f itself, so the bins are f's own."""
    pairwise = Pairwise(costs, seed=4, **{**PAPER, **options})
    binary = paper(seed=4, delta_fp=costs[0][1], delta_fn=costs[1][0], **options)
    rng = np.random.default_rng(1)
    for _ in range(600):
        f = int(rng.integers(16384))
        action = pairwise.decide([16384 - f, f])
        k = f >> 10 if same_bins else pairwise.k
        assert action == binary.decide(k) and pairwise.local == binary.local
        if action == OFFLOAD:
            label = int(rng.integers(16384) < f)
            assert pairwise.learn(pairwise.ticket, label) and binary.learn(binary.ticket, label)


def test_pairwise_learns_what_an_uncalibrated_model_is_worth():
    """Class 2's score is given to class 1 and the other way round: the argmax rule is wrong, the learner finds out."""
    costs = [[0, 32768, 32768], [32768, 0, 32768], [32768, 32768, 0]]
    policy = Pairwise(costs, beta=6554, feedback="all", exploration="anytime")
    rng = np.random.default_rng(2)
    late = 0
    for n in range(6000):
        label = int(rng.integers(3))
        shown = (0, 2, 1)[label]
        f = [2000, 2000, 2000]
        f[shown] += 10384
        action = policy.decide(f)
        cost = 0.2 if action == OFFLOAD else float(action != label)
        late += cost if n >= 3000 else 0
        if action == OFFLOAD:
            policy.learn(policy.ticket, label)
    assert late / 3000 < 0.25  # argmax would pay 2/3


def test_pairwise_lose_answers_with_a_class_of_the_pair():
    policy = Pairwise([[0, 9, 9], [9, 0, 9], [9, 9, 0]], epsilon=32768, exploration="epsilon")
    for f, pair in (([8000, 8000, 384], (0, 1)), ([100, 8000, 8284], (1, 2)), ([8000, 100, 8284], (0, 2))):
        assert policy.decide(f) == OFFLOAD
        assert policy.local in pair
        assert policy.lose(policy.ticket) == policy.local
    assert policy.lose(5) == -1


@pytest.mark.parametrize("n", [3, 7, 16])
def test_pairwise_is_a_binary_learner_a_pair(n):
    """Up to 16 classes, against K (K - 1) / 2 separate H2T2 learners fed with exact expected costs, on the same draws."""
    costs = [[0 if i == j else 32768 - 100 * ((3 * i + 5 * j) % 7) for j in range(n)] for i in range(n)]
    policy = Pairwise(costs, bits=2, seed=3)
    apart = {}  # pair -> a learner of its own, whose draws and rounds are the pairwise policy's
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(400):
        f = np.floor(rng.dirichlet(np.full(n, 0.3)) * 16384).astype(int).tolist()
        expected = [sum(f[i] * costs[i][j] for i in range(n)) for j in range(n)]
        a, b = sorted(sorted(range(n), key=lambda j: (expected[j], j))[:2])
        share = expected[a] / (expected[a] + expected[b])
        learner = apart.setdefault((a, b), H2T2(bits=2, seed=3, delta_fp=costs[0][1], delta_fn=costs[1][0]))
        learner.rng, learner.t, learner.root = copy(policy.rng), policy.t, policy.root
        action = policy.decide(f)
        k = min(int(share * 4), 3)
        if abs(share * 4 - round(share * 4)) < 1e-3:
            k = policy.k  # on a boundary: the integers may be on either side of it
        assert policy.k == k and policy.pairs[b * (b - 1) // 2 + a] == (a, b)
        local = learner.decide(k)
        assert action == (OFFLOAD if local == OFFLOAD else (a, b)[local]) and policy.local == (a, b)[learner.local]
        seen.add(action)
        if action == OFFLOAD:
            label = int(rng.integers(n))
            learner.rates = [policy.loss[label][a], policy.loss[label][b]] * 2
            assert policy.learn(policy.ticket, label) and learner.learn(learner.ticket, 0)
    assert OFFLOAD in seen and len(seen) > 3
    with pytest.raises(ValueError, match="label"):
        policy.learn(1, n)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0, 1])
def test_loss_estimates_stay_unbiased_with_a_wrong_remote(truth):
    """Long average of what learn() charges, against delta / epsilon with a right remote."""
    rng = np.random.default_rng(6)
    e = (0.1, 0.2)
    totals = []
    for flips in (False, True):
        options = {"rdl_fp": round(e[0] * 32768), "rdl_fn": round(e[1] * 32768)} if flips else {}
        policy = paper(bits=1, beta=0, epsilon=32768, eta=2**20, **options)
        for _ in range(20000):
            assert policy.decide(0) == OFFLOAD
            policy.learn(policy.ticket, 1 - truth if flips and rng.random() < e[truth] else truth)
        charged = np.array([policy.experts.losses[1], policy.experts.losses[3]]) / 2**14
        totals.append(charged / 20000 * 2**6 / 1.442695)
    right, corrected = totals
    assert right == pytest.approx([1.0, 0.0] if truth else [0.0, -0.7], abs=1e-3)
    assert corrected == pytest.approx(right, abs=0.02)


def test_rates_that_leave_nothing_are_refused():
    for kind, (fp, fn) in itertools.product((H2T2, Adaptive), ((16384, 16384), (32768, 0), (20000, 20000))):
        with pytest.raises(ValueError, match="rdl_fp"):
            kind(rdl_fp=fp, rdl_fn=fn)

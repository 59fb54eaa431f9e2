"""Remote models that err at known rates: estimates are corrected; rates that leave nothing to learn are refused."""

import itertools

import numpy as np
import pytest
from support import paper

from h2t2 import units
from h2t2.core.adaptive import LOWER, UPPER, Adaptive, asking
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.h2t2 import H2T2, OFFLOAD
from h2t2.core.numbers import ONE
from h2t2.core.ordered import Ordered


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0, 1])
def test_loss_estimates_stay_unbiased_with_a_wrong_remote(truth):
    """Long average of what learn() charges, against delta / epsilon with a right remote, less what its mistakes cost."""
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
    asked = e[truth] * (1.0 if truth else 0.7)
    assert corrected == pytest.approx(right + [-asked, asked], abs=0.02)


@pytest.mark.parametrize(
    ("fp", "fn", "bounds"), [(0, 0, (0.2, 0.7143)), (0.1, 0.2, (0.3103, 0.5181)), (0.4, 0.4, (0.5455, 0.2683))]
)
def test_a_question_is_worth_less_where_the_answer_may_be_wrong(fp, fn, bounds):
    """With .4 and .4 no probability of an event makes it worth its cost."""
    policy = Adaptive(**units.policy(beta=0.2, delta_fp=0.7, delta_fn=1.0, rdl_fp=fp, rdl_fn=fn))
    lower, upper = (policy.effective[n] / ONE for n in (LOWER, UPPER))
    assert (lower, upper) == pytest.approx(bounds, abs=1e-4)
    for p, edge in ((lower, lower), (upper, (1 - upper) * 0.7)):
        assert asking(round(p * ONE), policy.effective) / ONE == pytest.approx(edge, abs=1e-3)


@pytest.mark.parametrize("kind", [Adaptive, Ordered, AdaptiveHead])
def test_a_policy_seldom_asks_a_remote_model_that_is_often_wrong(kind):
    """One answer in five is wrong. While a question counted as the truth, they cost .13 a sample and more."""
    rng = np.random.default_rng(8)
    options = {"features": 1} if kind is AdaptiveHead else {}
    policy = kind(**units.policy(beta=0.2, delta_fp=0.7, delta_fn=1.0, rdl_fp=0.2, rdl_fn=0.2), **options)
    cost = 0.0
    for _ in range(3000):
        k = int(rng.integers(16))
        truth = int(rng.random() < 1 / (1 + np.exp(7 - 14 * (k + 0.5) / 16)))
        action = policy.decide([16 * k + 8, 0] if options else k * policy.steps() // 16)
        if action == OFFLOAD:
            cost += 0.2
            action = truth ^ int(rng.random() < 0.2)
            policy.learn(policy.ticket, action)
        cost += policy.mistake_cost(action, truth) / ONE
    assert cost / 3000 < 0.115


def test_rates_that_leave_nothing_are_refused():
    for kind, (fp, fn) in itertools.product((H2T2, Adaptive), ((16384, 16384), (32768, 0), (20000, 20000))):
        with pytest.raises(ValueError, match="rdl_fp"):
            kind(rdl_fp=fp, rdl_fn=fn)

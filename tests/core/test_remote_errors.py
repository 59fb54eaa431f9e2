"""Remote models that err at known rates: estimates are corrected; rates that leave nothing to learn are refused."""

import itertools

import numpy as np
import pytest
from support import paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.h2t2 import H2T2, OFFLOAD


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

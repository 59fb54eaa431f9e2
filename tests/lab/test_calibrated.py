"""The calibrated rules against exact arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.policy import OFFLOAD
from h2t2_tools.common.calibrated import CalibratedRule
from h2t2_tools.lab.simulation.policies.calibrated import binary_rule, multiclass_rule

q15 = st.integers(0, 32768)


def decide(f, beta, fp, fn):
    """What the compiled rule for two classes does on scores f, Q14."""
    actions = np.zeros(len(f), np.int64)
    binary_rule(np.array(f), np.full(len(f), beta), fp, fn, actions)
    return actions.tolist()


@given(st.integers(0, 16384), q15, q15, q15)
def test_theorem_1(f, beta, fp, fn):
    """Exactly the theorem's inequalities, in rationals."""
    offload = beta * 16384 <= f * fn and f * fp < (fp - beta) * 16384
    local = int(f * (fp + fn) >= fp * 16384)
    assert decide([f], beta, fp, fn) == [OFFLOAD if offload else local]


@pytest.mark.parametrize("beta", [0.42, 0.5])
def test_no_offload_from_half_the_harmonic_mean_on(beta):
    """Remark 1 (i): delta_1 delta_-1 / (delta_1 + delta_-1) = .4118 for .7 and 1."""
    assert OFFLOAD not in decide(range(16385), round(beta * 32768), 22938, 32768)
    assert OFFLOAD in decide(range(16385), round(0.41 * 32768), 22938, 32768)


@given(st.integers(2, 16), st.integers(0, 2**32), q15)
def test_theorem_3(n, seed, beta):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 32769, (n, n))
    np.fill_diagonal(costs, 0)
    f = np.floor(rng.dirichlet(np.ones(n)) * 16384).astype(int)
    expected = f @ costs
    action = CalibratedRule(costs.tolist()).decide(f.tolist(), beta)
    assert action == (OFFLOAD if expected.min() > beta * 16384 else int(np.argmin(expected)))
    actions = np.zeros(1, np.int64)
    multiclass_rule(f.reshape(1, -1), np.array([beta]), costs, actions)
    assert actions.tolist() == [action]


@pytest.mark.parametrize(
    "costs", [[[0]], [[0, 1], [1]], [[0, 1], [2, 3]], [[0, -1], [1, 0]], [[0, 40000], [1, 0]], [[0] * 17] * 17]
)
def test_a_wrong_cost_matrix_is_refused(costs):
    for kind in (CalibratedRule, AdaptiveClasses):
        with pytest.raises(ValueError, match="costs"):
            kind(costs)

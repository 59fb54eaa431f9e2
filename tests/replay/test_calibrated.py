"""The calibrated rules against exact arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.policy import OFFLOAD
from h2t2_tools.common.calibrated import decide_binary, decide_multiclass

q15 = st.integers(0, 32768)


@given(st.integers(0, 16384), q15, q15, q15)
def test_theorem_1(f, beta, fp, fn):
    """Exactly the theorem's inequalities, in rationals."""
    offload = beta * 16384 <= f * fn and f * fp < (fp - beta) * 16384
    local = int(f * (fp + fn) >= fp * 16384)
    assert decide_binary(np.array([f]), beta, fp, fn).tolist() == [OFFLOAD if offload else local]


@pytest.mark.parametrize("beta", [0.42, 0.5])
def test_no_offload_from_half_the_harmonic_mean_on(beta):
    """Remark 1 (i): delta_1 delta_-1 / (delta_1 + delta_-1) = .4118 for .7 and 1."""
    assert OFFLOAD not in decide_binary(np.arange(16385), round(beta * 32768), 22938, 32768)
    assert OFFLOAD in decide_binary(np.arange(16385), round(0.41 * 32768), 22938, 32768)


@given(st.integers(2, 16), st.integers(0, 2**32), q15)
def test_theorem_3(n, seed, beta):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 32769, (n, n))
    np.fill_diagonal(costs, 0)
    f = np.floor(rng.dirichlet(np.ones(n)) * 16384).astype(int)
    expected = [sum(int(f[i]) * int(costs[i, k]) for i in range(n)) for k in range(n)]
    action = OFFLOAD if min(expected) > beta * 16384 else expected.index(min(expected))
    assert decide_multiclass(f[None], beta, costs).tolist() == [action]


@pytest.mark.parametrize(
    "costs", [[[0]], [[0, 1], [1]], [[0, 1], [2, 3]], [[0, -1], [1, 0]], [[0, 40000], [1, 0]], [[0] * 17] * 17]
)
def test_a_wrong_cost_matrix_is_refused(costs):
    with pytest.raises(ValueError, match="costs"):
        AdaptiveClasses(costs)

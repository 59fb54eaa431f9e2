"""The float reference in O(2^b) against the one on the dense matrix: same probabilities, every mode, same stream."""

import numpy as np
import pytest

from h2t2_tools.checks.float_references import OFFLOAD, DenseH2T2, FactoredH2T2
from h2t2_tools.checks.validate import MODES, samples


@pytest.mark.parametrize("mode", MODES)
def test_factored_weights_are_the_dense_matrix(mode):
    numbers = {"bits": 4, "beta": 0.3, "delta_fp": 0.7, "delta_fn": 1.0, "eta": 1.0, "epsilon": 0.0625, **MODES[mode]}
    dense, factored = DenseH2T2(**numbers), FactoredH2T2(**numbers)
    rng = np.random.default_rng(3)
    for k, label in zip(*(column.tolist() for column in samples(4, 1500, 2))):
        dense.start(), factored.start()
        psi, zeta = rng.random(), bool(rng.random() < dense.epsilon)
        action, q, p = dense.decide(k, psi, zeta)
        assert factored.decide(k, psi, zeta)[1:] == pytest.approx((q, p), abs=1e-9)
        for reference in (dense, factored):
            reference.update(k, q, action == OFFLOAD, zeta, label)

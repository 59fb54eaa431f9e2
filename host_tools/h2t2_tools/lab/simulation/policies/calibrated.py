from dataclasses import dataclass

import numpy as np

from h2t2.core.rules import CalibratedMulticlass

from ....common.jit import njit_nogil
from ..stream import Costs, Stream
from ..twin import expected
from .base import Policy


@njit_nogil
def binary_rule(scores, betas, delta_fp, delta_fn, actions):
    """h2t2.core.rules.Calibrated.decide a sample; scores (T,) Q14, betas (T,) Q15."""
    for t in range(len(scores)):
        zero = scores[t] * delta_fn
        one = (16384 - scores[t]) * delta_fp
        if betas[t] << 14 <= zero and betas[t] << 14 < one:
            actions[t] = -1
        else:
            actions[t] = 1 if one <= zero else 0


@njit_nogil
def multiclass_rule(scores, betas, matrix, actions):
    """h2t2.core.rules.CalibratedMulticlass.decide a sample; scores (T, K) Q14, matrix (K, K) Q15."""
    for t in range(len(scores)):
        best = 0
        least = 1073741823
        for k in range(len(matrix)):
            cost = expected(matrix, scores[t], k)
            if cost < least:
                least = cost
                best = k
        actions[t] = -1 if least > betas[t] << 14 else best


@dataclass(frozen=True)
class Calibrated(Policy):
    """Theorem 1 (Theorem 3 with class scores) on the scores as they are: optimal if the local model is calibrated."""

    name = "calibrated rule"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        actions = np.zeros(len(stream), np.int64)
        matrix = costs.q15
        if stream.score.ndim == 1:
            binary_rule(stream.q14[:, 1], stream.beta_q15, matrix[0, 1], matrix[1, 0], actions)
        else:
            CalibratedMulticlass(matrix.tolist())  # refuses a matrix that is none
            multiclass_rule(stream.q14, stream.beta_q15, matrix, actions)
        return actions

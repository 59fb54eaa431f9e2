from dataclasses import dataclass

import numpy as np

from h2t2.core.adaptive_classes import checked_costs

from ....common.jit import njit_nogil
from ..stream import Costs, Stream
from ..twin import expected_cost
from .base import Policy


@njit_nogil
def binary_rule(scores, betas, delta_fp, delta_fn, actions):
    """Theorem 1 for each sample: predict 1 iff f >= delta_1 / (delta_1 + delta_-1).

    It offloads iff beta / delta_-1 <= f < 1 - beta / delta_1.

    scores: (T,) Q14; betas: (T,) Q15; actions: (T,), becomes 0, 1, or -1 for an offload.
    """
    for t in range(len(scores)):
        zero = scores[t] * delta_fn
        one = (16384 - scores[t]) * delta_fp
        if betas[t] << 14 <= zero and betas[t] << 14 < one:
            actions[t] = -1
        else:
            actions[t] = 1 if one <= zero else 0


@njit_nogil
def multiclass_rule(scores, betas, matrix, actions):
    """CalibratedRule.decide for each sample; scores: (T, K) Q14; betas: (T,) Q15; matrix: (K, K) Q15."""
    for t in range(len(scores)):
        best = 0
        least = 1073741823
        for k in range(len(matrix)):
            cost = expected_cost(matrix, scores[t], k)
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
            checked_costs(matrix.tolist())
            multiclass_rule(stream.q14, stream.beta_q15, matrix, actions)
        return actions

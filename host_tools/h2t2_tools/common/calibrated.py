"""The optimal rules for a calibrated model (Theorems 1 and 3 of the paper). They use integers only, and do not learn."""

import numpy as np

from h2t2.core.policy import OFFLOAD

from .score_rules import Q14


def decide_binary(scores: np.ndarray, betas: np.ndarray | int, delta_fp: int, delta_fn: int) -> np.ndarray:
    """Apply Theorem 1: class 1 iff f >= delta_1 / (delta_1 + delta_-1); offload iff beta / delta_-1 <= f < 1 - beta / delta_1.

    Args:
        scores: (T,) P(class 1), Q14.
        betas: Cost of an offload, Q15, or one per sample, (T,).
        delta_fp, delta_fn: Costs of the errors, Q15.

    Returns:
        (T,) the class, or OFFLOAD.
    """
    negative, positive = scores * delta_fn, (Q14 - scores) * delta_fp  # expected costs of the classes, Q29
    offload = (betas * Q14 <= negative) & (betas * Q14 < positive)
    return np.where(offload, OFFLOAD, positive <= negative)


def decide_multiclass(scores: np.ndarray, betas: np.ndarray | int, costs: np.ndarray) -> np.ndarray:
    """Apply Theorem 3: the class k of smallest f^T C_k; offload iff that cost is above beta.

    Args:
        scores: (T, K) Q14.
        betas: Cost of an offload, Q15, or one per sample, (T,).
        costs: (K, K) Q15, of answering the second class when the label is the first.

    Returns:
        (T,) the class, or OFFLOAD.
    """
    expected = scores @ costs
    return np.where(expected.min(1) > betas * Q14, OFFLOAD, expected.argmin(1))

"""Policies with a confidence bound for each bin: HI-LCB (arXiv 2508.08985) and a version for unequal errors, in numba.

We wrote them from the paper's idea, not from its listing: offload while the confidence bound still allows an offload to be
cheaper. The form of the bound and the extension to unequal costs are ours. Labels teach at once, even in a stream that delays
or loses them.
"""

import numpy as np

from h2t2_tools.common.jit import njit_nogil


@njit_nogil
def one_sided(
    bins: np.ndarray, wrong: np.ndarray, betas: np.ndarray, largest: float, alpha: float, monotone: bool, actions: np.ndarray
) -> None:
    """Play HI-LCB: it offloads if the upper bound of a local error's cost in the confidence's bin is at least beta.

    Args:
        bins: (T,) of the confidence, 0..N-1.
        wrong: (T,) cost of the local class, which an offload reveals.
        betas: (T,) cost of an offload.
        largest: Largest cost of an error.
        alpha: Width of the bounds.
        monotone: A surer bin costs no more, so a bound holds for the bins above it (HI-LCB; otherwise HI-LCB-lite).
        actions: (T,) becomes 1 where offloaded.
    """
    n = np.zeros(bins.max() + 1)
    total = np.zeros(len(n))
    for t in range(len(bins)):
        k = bins[t]
        bound = np.inf
        for lower in range(0 if monotone else k, k + 1):
            if n[lower] > 0:
                bound = min(bound, total[lower] / n[lower] + largest * np.sqrt(alpha * np.log(t + 1.0) / n[lower]))
        if bound >= betas[t]:
            actions[t] = 1
            n[k] += 1
            total[k] += wrong[t]


@njit_nogil
def two_sided(
    bins: np.ndarray, labels: np.ndarray, betas: np.ndarray, delta_fp: float, delta_fn: float, alpha: float, actions: np.ndarray
) -> None:
    """Play the two-sided bound, which is ours: offload if the interval of P(event) in a score bin meets Theorem 1's region.

    Args:
        bins: (T,) of the score, 0..N-1.
        labels: (T,) of 0 and 1, which an offload reveals.
        betas: (T,) cost of an offload.
        delta_fp, delta_fn: Costs of the errors.
        alpha: Width of the intervals.
        actions: (T,) becomes 2 (offloaded), 0 or 1.
    """
    size = bins.max() + 1
    n, events = np.zeros(size), np.zeros(size)
    for t in range(len(bins)):
        k = bins[t]
        p = events[k] / n[k] if n[k] else 0.5
        width = np.sqrt(alpha * np.log(t + 1.0) / n[k]) if n[k] else 1.0
        meets = betas[t] <= delta_fn * (p + width) and betas[t] <= delta_fp * (1 - p + width)
        if meets and betas[t] < delta_fp * (1 - betas[t] / delta_fn) or not n[k]:
            actions[t] = 2
            n[k] += 1
            events[k] += labels[t]
        else:
            actions[t] = 1 if delta_fp * (1 - p) <= delta_fn * p else 0

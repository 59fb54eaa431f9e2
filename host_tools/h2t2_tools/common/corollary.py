"""Corollary 1 of the paper: the exploration and learning rates for a known horizon."""

import math

from h2t2.core.numbers import ONE


def expert_count(bits: int) -> int:
    """The number of experts: |Theta| = 2^(b-1) (2^b + 1)."""
    return (1 << bits - 1) * ((1 << bits) + 1)


def optimal_rates(bits: int, horizon: int, beta: float) -> tuple[float, float]:
    """Compute the rates of Corollary 1.

    Args:
        bits: score bits.
        horizon: rounds, T.
        beta: bound of the cost of an offload.

    Returns:
        (epsilon*, eta*); epsilon is clipped to [2^-15, 1].
    """
    ln = math.log(expert_count(bits))
    epsilon = min(1.0, max(1 / ONE, (ln / (2 * beta**2 * horizon)) ** (1 / 3)))
    return epsilon, math.sqrt(2 * epsilon * ln / horizon)

"""The optimal rule for a calibrated model (Theorems 1 and 3 of the paper). It learns nothing and uses integers only."""

from __future__ import annotations

from collections.abc import Sequence

from h2t2.core.adaptive_classes import checked_costs
from h2t2.core.policy import OFFLOAD


def expected_cost(costs, f, k):  # type: ignore[no-untyped-def]
    """The expected cost of predicting class k, f^T C_k in Q29; the lab compiles it for arrays as well."""
    total = 0
    for i in range(len(costs)):
        total += f[i] * costs[i][k]
    return total


class CalibratedRule:
    """Predicts the class of the lowest expected cost, the first of equals; offloads if that cost is above beta.

    Args:
        costs: K rows of K Q15 integers, `costs[i][j]` for predicting j when the class is i, zero diagonal, 2 <= K <= 16.
    """

    def __init__(self, costs: list[list[int]]) -> None:
        self.costs = checked_costs(costs)

    def decide(self, f: Sequence[int], beta: int) -> int:
        """The class, or OFFLOAD, for scores f: K integers in Q14 that sum to at most 32767 (16384 is 1); beta: Q15."""
        expected = [expected_cost(self.costs, f, k) for k in range(len(self.costs))]
        return OFFLOAD if min(expected) > beta << 14 else expected.index(min(expected))

"""Pairwise H2T2 for many classes and a local model that is not calibrated, on K (K - 1) / 2 binary learners."""

from array import array
from collections.abc import Sequence
from typing import Any

from h2t2.core.experts import Experts
from h2t2.core.h2t2 import H2T2
from h2t2.core.numbers import ONE, times
from h2t2.core.policy import OFFLOAD


class Pairwise(H2T2):
    """Pairwise H2T2: the two classes of lowest expected cost, a < b, choose a binary learner.

    The score of the learner is e_a / (e_a + e_b), where e is the expected cost. A label y charges the learner with costs[y][a]
    for its class 0 and with costs[y][b] for its class 1. With K = 2 and equal costs this is H2T2 on the score itself.
    """

    def __init__(self, costs: list[list[int]], bits: int, **options: Any) -> None:
        """Create a policy of the simulator.

        Args:
            costs: (K, K) Q15; costs[i][j] is the cost of answering j when the label is i.
            bits: Of the bins of a pair.
            options: Options of H2T2, without deltas and error rates.
        """
        super().__init__(bits, **options)
        self.costs = costs
        self.losses = [[times(self.rate, cost) for cost in row] for row in costs]  # octaves, Q26
        count = len(costs)
        self.learners = [Experts(bits) for _ in range(count * (count - 1) // 2)]  # pair (a, b) is number b (b - 1) / 2 + a
        self.ticket_pairs = array("i", [0] * (2 * self.tickets.window))  # a and b of each outstanding ticket

    def decide(self, f: Sequence[int]) -> int:  # type: ignore[override]
        """Return the class, or OFFLOAD, for scores f: K integers in Q14 that sum to at most 32767."""
        a = b = 0
        low = next_low = 1073741823  # expected costs of a, the cheapest class, and b, the next one
        for k in range(len(self.costs)):
            cost = 0
            for i in range(len(self.costs)):
                cost += f[i] * self.costs[i][k]
            if cost < low:
                b = a
                next_low = low
                a = k
                low = cost
            elif cost < next_low:
                b = k
                next_low = cost
        if a > b:
            a, b = b, a
            low, next_low = next_low, low
        self.experts = self.learners[b * (b - 1) // 2 + a]
        action = H2T2.decide(self, pair_bin(low, next_low, self.bits))
        if action == OFFLOAD:
            at = self.ticket % self.tickets.window * 2
            self.ticket_pairs[at] = a
            self.ticket_pairs[at + 1] = b
        self.local = b if self.local else a
        if action == OFFLOAD:
            return OFFLOAD
        return b if action else a

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """Learn as H2T2.learn() does; label: the class, 0..K-1."""
        at = ticket % self.tickets.window * 2
        a = self.ticket_pairs[at]
        b = self.ticket_pairs[at + 1]
        self.experts = self.learners[b * (b - 1) // 2 + a]
        self.rates[0] = self.losses[label][a]
        self.rates[1] = self.losses[label][b]
        return H2T2.learn(self, ticket, 0, beta)

    def forget(self) -> None:
        """Halve the losses of every learner."""
        for tree in self.learners:
            tree.rebuild(not tree.unit, True)


def pair_bin(low: int, high: int, bits: int) -> int:
    """Return the bin of low / (low + high), expected costs in Q29; the middle bin if both are 0."""
    total = (low >> 1) + (high >> 1)
    low >>= 1
    while 0 < total < ONE:
        total <<= 1
        low <<= 1
    score = ratio(low, total) if total else ONE >> 1
    return min(score << bits >> 15, (1 << bits) - 1)


def ratio(a: int, b: int) -> int:
    """Return a / b in Q15, to nearest, for 0 <= a <= b and 2^15 <= b < 2^30 (the low 8 bits of both are dropped)."""
    b >>= 8
    a >>= 8
    if a >= b:
        return ONE
    a <<= 8
    return ((a // b << 8 | (a % b << 8) // b) + 1) >> 1

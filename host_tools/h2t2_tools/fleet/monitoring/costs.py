"""What a node's decisions cost a sample, estimated from its own counters: no ground truth is needed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from h2t2.core.numbers import ONE
from h2t2.node.account import UNIT

LEAN = 0.25  # answers that the mean of all bins counts for in each


@dataclass(frozen=True)
class Costs:
    """Costs a sample, 0 to 1: of what the node did, of asking always and of asking never. The remote model counts as right.

    error: the standard error of `own` and `never`, at most."""

    own: float
    always: float
    never: float
    error: float


def of_counters(scores: list[int], answered: list[int], local_cost: list[int], paid: int, beta: int) -> Costs | None:
    """Costs from the lists of a node's account (h2t2.node.account); None before the first answer.

    Whether a sample is asked depends on its bin, so the answered ones of a bin are like all of that bin: their mean cost is
    that of local decisions there (a stratified estimate). A bin with few answers leans on the mean of all. What was not
    answered was decided locally, whatever the reason.
    """
    samples, replies = sum(scores), sum(answered)
    if not samples or not replies:
        return None
    mean = sum(local_cost) / replies
    own, never, variance = paid / ONE, 0.0, 0.0
    for n, asked, cost in zip(scores, answered, local_cost):  # in one loop: a dashboard does it 500 times a second
        each = (cost + LEAN * mean) / (asked + LEAN) / UNIT
        never += n * each
        own += (n - asked) * each
        if each < 1:
            variance += n * n * each * (1 - each) / (asked + 1)
    return Costs(own / samples, beta / ONE, never / samples, math.sqrt(max(0.0, variance)) / samples)

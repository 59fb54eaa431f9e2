"""What a node's decisions cost a sample, estimated from its own counters: no ground truth is needed."""

import math
from dataclasses import dataclass

from h2t2.core.numbers import ONE
from h2t2.node.asking import UNIT

LEAN = 0.25  # weight of the mean of all bins in each bin, in answers


@dataclass(frozen=True)
class Costs:
    """Costs a sample, 0 to 1. The remote model counts as right.

    Args:
        own: of the node's decisions.
        always: of offloading every sample.
        never: of offloading no sample.
        error: upper bound of the standard error of `own` and `never`.
    """

    own: float
    always: float
    never: float
    error: float


def local_decision(cost: int, answers: int, mean: float) -> float:
    """Return what a local decision in a bin is expected to cost. mean: thousandths, of the answered samples of all bins."""
    return (cost + LEAN * mean) / (answers + LEAN) / UNIT


def of_counters(scores: list[int], answered: list[int], local_cost: list[int], paid: int, beta: int) -> Costs | None:
    """Costs from the lists of a node's account (h2t2.node.asking); None before the first answer.

    Whether the node offloads a sample depends on its bin, so the answered samples of a bin represent all of that bin: their
    mean cost is that of local decisions there (a stratified estimate). A bin with few answers leans on the mean of all. The
    node decided every sample without an answer locally, whatever the reason.
    """
    samples, replies = sum(scores), sum(answered)
    if not samples or not replies:
        return None
    mean = sum(local_cost) / replies
    own, never, variance = paid / ONE, 0.0, 0.0
    for n, answers, cost in zip(scores, answered, local_cost):  # one loop: a dashboard runs it 500 times a second
        each = local_decision(cost, answers, mean)
        never += n * each
        own += (n - answers) * each
        if each < 1:
            variance += n * n * each * (1 - each) / (answers + 1)
    return Costs(own / samples, beta / ONE, never / samples, math.sqrt(max(0.0, variance)) / samples)

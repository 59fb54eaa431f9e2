"""What a device costs above the best simple choice, which is to ask always or never: a negative excess is what it saves."""

import math
from dataclasses import dataclass

from h2t2.core.numbers import ONE

from .costs import local_decision
from .state import State

ANSWERS = 200  # answers between two states that are remembered
DIGITS = 6  # to which its figures are rounded
LEARNING = 100  # answers after which the policy has learned enough to be judged


@dataclass(frozen=True, kw_only=True)
class Excess:
    """The excess of a device's recent samples.

    Args:
        a_sample: cost minus the smaller of asking always and asking never.
        error: standard error of a_sample.
        best: the cheaper simple choice, "always" or "never".
        best_cost: its cost a sample.
        samples: recent samples.
        asked_share: share of them that the device asked about.
        unanswered: share of its questions that got no answer in time.
        price: mean price of a question.
        alone: what a local decision costs on the samples that the device treats otherwise than the best choice does.
        learned: whether the device had answers enough before these samples.
    """

    a_sample: float
    error: float
    best: str
    best_cost: float
    samples: int
    asked_share: float
    unanswered: float
    price: float
    alone: float
    learned: bool


def of_states(before: State | None, after: State) -> Excess | None:
    """Return the excess of the samples between two states of one start.

    The answers since the start show what a local decision costs in a bin. The samples between the two states say how often the
    device decided in that bin.

    Args:
        before: the earlier state; None: the start itself.
        after: the later state.

    Returns:
        None where the states do not hold the counters, or no answer came.
    """
    if not after.scores or not after.answered or not after.local_cost or after.beta is None or not sum(after.answered):
        return None
    zeros = [0] * len(after.scores)
    scores, answered = (before.scores or zeros, before.answered or zeros) if before else (zeros, zeros)
    offloads = after.offloads - (before.offloads if before else 0)
    paid = (after.paid - (before.paid if before else 0)) / ONE
    replies = sum(after.answered)
    mean = sum(after.local_cost) / replies
    samples, answer_count = sum(after.scores) - sum(scores), replies - sum(answered)
    answered_cost = alone_cost = answered_variance = alone_variance = 0.0  # of the answered samples, and of all others
    for n, n0, a, a0, cost in zip(after.scores, scores, after.answered, answered, after.local_cost):
        each = min(1.0, local_decision(cost, a, mean))
        variance = each * (1 - each) / (a + 1)
        answers = a - a0
        alone_samples = n - n0 - answers
        answered_cost += answers * each
        alone_cost += alone_samples * each
        answered_variance += answers * answers * variance
        alone_variance += alone_samples * alone_samples * variance
    if samples <= 0:
        return None
    always, never = after.beta / ONE, (answered_cost + alone_cost) / samples
    if never <= always:  # the device differs from asking never in the samples that it asked about
        difference, variance, alone = paid - answered_cost, answered_variance, answered_cost / max(1, answer_count)
    else:
        difference, variance = paid + alone_cost - always * samples, alone_variance
        alone = alone_cost / max(1, samples - answer_count)
    return Excess(
        a_sample=round(difference / samples, DIGITS),
        error=round(math.sqrt(max(0.0, variance)) / samples, DIGITS),
        best="never" if never <= always else "always",
        best_cost=round(min(always, never), DIGITS),
        samples=samples,
        asked_share=round(max(0, offloads) / samples, DIGITS),
        unanswered=round(max(0.0, 1 - answer_count / offloads), DIGITS) if offloads > 0 else 0.0,
        price=round(paid / offloads if offloads > 0 else always, DIGITS),
        alone=round(alone, DIGITS),
        learned=before is not None and sum(before.answered or ()) >= LEARNING,
    )

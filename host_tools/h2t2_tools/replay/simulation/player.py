"""Plays streams on the policies of the core. numba compiles them from the device's own source."""

from typing import Any

import numpy as np

from h2t2.core.budget import Budget
from h2t2.core.numbers import ONE
from h2t2.core.policy import Policy

from ...common.jit import njit, njit_nogil
from .numba_policies import freeze
from .stream import Stream

# instead of an answer's cost: beta at the offload; the question is given up; it counts as one without an answer, too
AS_CHARGED, LOST, UNANSWERED = -1, -2, -3

Arrivals = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts (T + 1,), rounds (N,), costs (N,): see arrivals()


def play(policy: Policy, cells: np.ndarray, stream: Stream, budget: Budget | None = None, priced: bool = False) -> np.ndarray:
    """Run a new policy on a stream.

    Args:
        policy: A policy of the core. It stays as it is: a copy of it learns.
        cells: What its decide() takes for each sample: bins (T,), or class scores in Q14 (T, K).
        stream: Labels, costs and delays of the samples.
        budget: Bucket in which each offload takes one token of ONE.
        priced: The price of a token adds to the cost of an offload, as in a node.

    Returns:
        (T,) as policies.base.Policy.act() returns them.
    """
    actions = np.zeros(len(stream), np.int64)
    samples = (cells, stream.label, stream.beta_q15)
    bucket = None if budget is None else freeze(budget)
    play_compiled(freeze(policy), bucket, priced, samples, arrivals(stream), actions)
    return actions


def arrivals(stream: Stream) -> Arrivals:
    """Return when labels arrive. A device gives up a label that never does in its own round.

    Returns:
        starts (T + 1,), rounds (N,) and costs (N,). After round t the labels of rounds[starts[t] : starts[t + 1]] arrive.
        costs: AS_CHARGED or UNANSWERED.
    """
    delay = np.zeros(len(stream), np.int64) if stream.delay is None else stream.delay
    due = np.arange(len(stream)) + np.maximum(delay, 0)
    order = np.argsort(due, kind="stable")
    order = order[due[order] < len(stream)]
    starts = np.searchsorted(due[order], np.arange(len(stream) + 1))
    return starts, order, np.where(delay[order] < 0, UNANSWERED, AS_CHARGED)


@njit_nogil
def play_compiled(policy: Any, budget: Any, priced: Any, samples: Any, arrivals: Any, actions: np.ndarray) -> None:
    """Play a frozen policy on a stream.

    Args:
        policy: Frozen policy; it learns.
        budget: Frozen budget, or None.
        priced: Add the price of a token to the cost of an offload.
        samples: Cells, labels and costs of an offload (Q15), (T,) each.
        arrivals: As arrivals() returns them.
        actions: (T,) receives the actions.
    """
    cells, labels, betas = samples
    starts, rounds, costs = arrivals
    tickets = np.zeros(len(labels), np.int64)
    for t in range(len(labels)):
        if policy.beta != betas[t] or priced:
            policy.set_beta(betas[t])
        if _affords(policy, budget, priced):
            action = policy.decide(cells[t])
            if action < 0:
                tickets[t] = policy.ticket
                action = -1 - policy.local
                _spend(budget)
        else:
            action = policy.likely(cells[t])
        actions[t] = action
        for n in range(starts[t], starts[t + 1]):
            late = rounds[n]
            if actions[late] >= 0:
                continue
            if costs[n] != LOST:
                policy.count_question(policy.bin(cells[late]), int(costs[n] != UNANSWERED))
            if costs[n] <= LOST:
                policy.lose(tickets[late])
            else:
                policy.learn(tickets[late], labels[late], costs[n])


@njit
def _affords(policy: Any, budget: Any, priced: Any) -> Any:
    if budget is None:
        return True
    budget.earn(0, -1)
    if priced:
        policy.set_charge(min(ONE, policy.beta + budget.price()))
    return budget.affords(0)


@njit
def _spend(budget: Any) -> None:
    if budget is not None:
        budget.spend(0)

"""The device's learners compiled with numba: the same draws, the same decisions. tests/lab replays the vector file on them."""

from __future__ import annotations

import numpy as np

from h2t2.core import numbers, rng

from ...common import calibrated
from ...common.jit import compile_function, njit, njit_nogil
from . import tree_twin as trees
from .tree_twin import draw, times

ONE, ONE_Q29 = numbers.ONE, numbers.ONE_Q29
AS_CHARGED, LOSE = -1, -2  # what may stand in place of an arrival's cost
ASKED = 2  # in `actions`: 0 and 1 are the local classes, ASKED and ASKED + 1 an offload with that one to fall back to

expected_cost = compile_function(calibrated.expected_cost)


@njit
def ratio(a, b):
    """a / b in Q15, to nearest, for 0 <= a <= b and 2^15 <= b < 2^30; the low 8 bits of both are dropped."""
    b >>= 8
    a >>= 8
    if a >= b:
        return ONE
    a <<= 8
    return ((a // b << 8 | (a % b << 8) // b) + 1) >> 1


@njit
def _exploration(clock, root):
    """H2T2._tick: (floor(4 t^(1/3)), epsilon of "anytime") after `clock` rounds."""
    while (root + 1) * (root + 1) * (root + 1) <= clock << 6:
        root += 1
    return root, min(16384, 65536 // root)


@njit
def _arrivals(t, clocked, learned, forest, rate, tickets, slots, actions):
    """The labels that come after round t: what they teach; (taught, refused, lost) of them. Arguments as h2t2() has them."""
    which, bins, labels, betas, rates = learned
    starts, rounds, costs = clocked
    slot_ticket, slot_chance = slots
    window = len(slot_ticket)
    taught = refused = lost = 0
    for event in range(starts[t], starts[t + 1]):
        r = rounds[event]
        if actions[r] < ASKED:
            continue
        at = tickets[r] % window
        if slot_ticket[at] != tickets[r]:
            refused += 1
            continue
        slot_ticket[at] = 0
        if costs[event] == LOSE:
            lost += 1
            continue
        tree = trees.at(forest, which[r])
        trees.coarsen(tree)
        if costs[event] >= 0:
            trees.charge_cost(tree, bins[r], rate, costs[event] - betas[r])
        loss = rates[which[r], labels[r]]
        trees.teach(tree, bins[r], loss[0], loss[1], slot_chance[at])
        taught += 1
    return taught, refused, lost


@njit_nogil
def h2t2(which, bins, labels, betas, rates, options, state, starts, rounds, costs, actions):
    """One run of H2T2, or of pairwise H2T2, over T samples; fills actions (T,), see ASKED.

    which: (T,) which learner decides; bins: (T,); labels: (T,) remote labels; betas: (T,) Q15, known before the round.
    rates: (learners, classes, 2) octaves Q26 that a label charges to a learner's 0 and 1. options: (bits, rate, all,
    anytime, epsilon, half_life, window). state: (3,) of the draws. Labels that come late: after round t those of
    rounds[starts[t] : starts[t + 1]] arrive, at costs[..] (Q15, AS_CHARGED or LOSE); starts of length 1: each at once.
    Returns (taught, refused, lost).
    """
    bits, rate, every, anytime, epsilon, half_life, window = options
    forest = trees.planted(len(rates), 1 << bits)
    late = len(starts) > 1
    tickets = np.zeros(len(bins) if late else 1, np.int64)
    slots = (np.zeros(window, np.int64), np.zeros(window, np.int64))  # tickets out, and each one's chance
    last = taught = refused = lost = clock = age = 0
    root = 3
    for t in range(len(bins)):
        k = bins[t]
        if anytime and clock < 16777215 and not (half_life and clock >= half_life << 1):
            clock += 1
            root, epsilon = _exploration(clock, root)
        if half_life:
            age += 1
            if age > half_life:
                age = 1
                for other in range(len(rates)):
                    tree = trees.at(forest, other)
                    trees.rebuild(tree, tree[5][1] == 0, True)
        tree = trees.at(forest, which[t])
        trees.coarsen(tree)
        q, one, chance, local, _ = trees.regions(tree, k)
        psi = draw(state)
        explore = draw(state) < epsilon
        divisor = 0
        if psi < q or explore:
            if every:
                divisor = chance + times(ONE_Q29 - chance, epsilon)
            elif explore:
                divisor = epsilon << 14
            actions[t] = ASKED + local
        else:
            actions[t] = 1 if psi < q + one else 0
        trees.charge_cost(tree, k, rate, betas[t])
        if late:
            if actions[t] >= ASKED:
                last = last % 268435455 + 1
                at = last % window
                lost += slots[0][at] > 0
                slots[0][at], slots[1][at] = last, divisor
                tickets[t] = last
            learned = (which, bins, labels, betas, rates)
            more = _arrivals(t, (starts, rounds, costs), learned, forest, rate, tickets, slots, actions)
            taught, refused, lost = taught + more[0], refused + more[1], lost + more[2]
        elif actions[t] >= ASKED:
            taught += 1
            trees.coarsen(tree)
            loss = rates[which[t], labels[t]]
            trees.teach(tree, k, loss[0], loss[1], divisor)
    return taught, refused, lost


@njit_nogil
def pairs_of(scores, costs, bits):
    """The two cheapest classes of each sample and the bin of their learner: (a, b, bin), (T,) each.

    scores: (T, K) Q14; costs: (K, K) Q15.
    """
    a_of, b_of = np.zeros(len(scores), np.int64), np.zeros(len(scores), np.int64)
    bins = np.zeros(len(scores), np.int64)
    for t in range(len(scores)):
        a = b = 0
        low = next_low = 1073741823
        for k in range(len(costs)):
            cost = expected_cost(costs, scores[t], k)
            if cost < low:
                b, next_low = a, low
                a, low = k, cost
            elif cost < next_low:
                b, next_low = k, cost
        if a > b:
            a, b = b, a
            low, next_low = next_low, low
        total = (low >> 1) + (next_low >> 1)
        low >>= 1
        while 0 < total < ONE:
            total <<= 1
            low <<= 1
        part = ratio(low, total) if total else ONE >> 1
        a_of[t], b_of[t], bins[t] = a, b, min(part << bits >> 15, (1 << bits) - 1)
    return a_of, b_of, bins


def seeded(seed: int) -> np.ndarray:
    """The state (3,) of the device's draws for a seed."""
    made = rng.Rng(seed)
    return np.array([made.x, made.y, made.z], np.int64)


AT_ONCE = (np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))  # starts, rounds, costs


def arrivals(delay: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """starts, rounds, costs for labels that come `delay` (T,) rounds late, -1: never (then the device gives up at the end)."""
    t = np.arange(len(delay))
    due = np.where(delay >= 0, t + delay, len(delay))
    order = np.argsort(due, kind="stable")
    order = order[due[order] < len(delay)]
    starts = np.searchsorted(due[order], np.arange(len(delay) + 1))
    return starts.astype(np.int64), order.astype(np.int64), np.full(len(order), AS_CHARGED, np.int64)


def signed(actions: np.ndarray) -> np.ndarray:
    """A learner's actions as policies give them: the class, or -1 - c for an offload with class c to fall back to."""
    return np.where(actions >= ASKED, ASKED - 1 - actions, actions)

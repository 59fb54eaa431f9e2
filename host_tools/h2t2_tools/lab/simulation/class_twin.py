"""The device's adaptive policy for many classes compiled with numba: the same integers."""

from __future__ import annotations

import numpy as np

from h2t2.core import adaptive_classes, class_forecaster

from ...common.jit import compile_function, njit, njit_nogil
from .adaptive_twin import fade, square_root, weigh
from .tree_twin import divide, draw, exp2, times
from .twin import ASKED, LOSE
from .watch_twin import AUDITS, FLOOR, GAMMA, MEMORIES, SHARE, STEP, see

ONE, ONE_Q29 = adaptive_classes.ONE, adaptive_classes.ONE_Q29
FORECASTS, MOST = MEMORIES * class_forecaster.KINDS, 16  # classes that a wish has room for

likeliest = compile_function(class_forecaster.likeliest)
confidence = compile_function(class_forecaster.confidence)
observe = compile_function(class_forecaster.observe)
total = compile_function(class_forecaster.total)
class_forecasts = compile_function(class_forecaster.class_forecasts)
mix = compile_function(class_forecaster.mix)
cheapest = compile_function(class_forecaster.cheapest)
class_mean = compile_function(class_forecaster.class_mean, times=times, square_root=square_root, mix=mix, cheapest=cheapest)
class_judge = compile_function(class_forecaster.class_judge)
class_count = compile_function(class_forecaster.class_count, fade=fade, total=total)
weights = compile_function(adaptive_classes.weights, exp2=exp2)
charge = compile_function(adaptive_classes.charge)


@njit
def _ask(spent, rate, k, want, beta, sign):
    """AdaptiveClasses._charge_offload."""
    last = len(spent) - 1
    charge(spent, k + 1, last, times(rate >> 6, beta) * sign)
    charge(spent, last, last + 1, times(rate >> 6, (beta >> 1) * want >> 14) * sign)


@njit
def _octaves(rate, cost, chance, loss):
    """AdaptiveClasses._octaves; loss: (2,), scratch."""
    x = times(rate, min(abs(cost), ONE)) + times(rate, max(abs(cost) - ONE, 0))
    divide(x if cost > 0 else -x, chance, loss, 0)
    return (min(max(loss[0], -STEP), STEP) << 6) + (loss[1] >> 8)


@njit_nogil
def play(scores, labels, betas, costs, bits, rate, window, state, starts, rounds, given, actions):
    """One run; arguments as twin.h2t2() has them. scores: (T, K) Q14; costs: (K * K,) Q15; given: the labels' costs. actions:
    the class, or ASKED * MOST and more, an offload with that class to fall back to. Returns (taught, refused, lost)."""
    classes = scores.shape[1]
    cells = classes << bits
    nodes = cells + classes + 1
    counts, sums = np.zeros(MEMORIES * nodes * classes, np.int64), np.zeros(cells * classes, np.int64)
    known, totals = np.zeros(MEMORIES * nodes, np.int64), np.zeros(cells, np.int64)
    fast, slow = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    clock, shifts = np.zeros(3, np.int64), np.zeros(MEMORIES, np.int64)
    loss, weight = np.zeros(FORECASTS, np.int64), np.zeros(FORECASTS, np.int64)
    p, mixed = np.zeros(FORECASTS * classes, np.int64), np.zeros(classes, np.int64)
    weigh(weight, loss)
    belief, shares, scratch = np.zeros(4, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    shape = np.array([bits, classes, cells, nodes])
    spent = np.zeros((1 << bits) + 2, np.int64)
    last = len(spent) - 1
    head = SHARE + (bits << 20)
    late = len(starts) > 1
    tickets = np.zeros(len(labels) if late else 1, np.int64)
    slots = np.zeros((4, window), np.int64)  # ticket, chance, cell, wish
    opened = taught = refused = lost = 0
    for t in range(len(labels)):
        f, beta = scores[t], betas[t]
        top = likeliest(f)
        k = confidence(f[top], classes, bits)
        cell = top << bits | k
        observe(sums, totals, f, cell)
        see(cell, fast, slow, clock, shifts)
        for memory in range(MEMORIES):
            if shifts[memory]:
                fade(counts, memory * nodes * classes, (memory + 1) * nodes * classes, shifts[memory])
                total(counts, known, classes, memory * nodes, (memory + 1) * nodes)
        if not clock[0] % 1000:
            spent[:] = spent - spent.min() >> 1
        class_forecasts(counts, known, sums, totals[cell], p, shape, cell)
        class_mean(p, weight, costs, mixed, known, belief, cell)
        guess = belief[0]
        want = ONE if belief[1] + belief[2] > beta else AUDITS[clock[2]]
        weights(spent, shares, head, k)
        g = shares[0]
        chance = max(FLOOR, (g * (want >> 1) + (ONE - g) * (shares[1] >> 1)) >> 14)
        mine = g * (ONE - want >> 1) >> 14
        theirs = (ONE - g) * (ONE - shares[1] >> 1) >> 14
        psi = draw(state)
        if psi < chance:
            actions[t] = ASKED * MOST + (guess if g >= ONE - g else top)
            if want < ONE:
                clock[2] = min(clock[2] + 1, len(AUDITS) - 1)
            if late:
                opened = opened % 268435455 + 1
                at = opened % window
                lost += slots[0, at] > 0
                slots[:, at] = opened, min(ONE_Q29, chance + GAMMA << 14), cell, want << 4 | guess
                tickets[t] = opened
        else:
            actions[t] = guess if (psi - chance) * (mine + theirs) < mine * (ONE - chance) else top
        _ask(spent, rate, k, want, beta, 1)
        wish, divisor = want << 4 | guess, min(ONE_Q29, chance + GAMMA << 14)
        for event in range(starts[t] if late else t, starts[t + 1] if late else t + 1):
            r = rounds[event] if late else t
            if actions[r] < ASKED * MOST:
                continue
            if late:
                at = tickets[r] % window
                if slots[0, at] != tickets[r]:
                    refused += 1
                    continue
                slots[0, at] = 0
                if given[event] == LOSE:
                    lost += 1
                    continue
                divisor, cell, wish = slots[1, at], slots[2, at], slots[3, at]
                k = cell & (1 << bits) - 1
                if given[event] >= 0:
                    more = given[event] - betas[r]
                    _ask(spent, rate, k, wish >> 4, abs(more), 1 if more > 0 else -1)
            row = labels[r] * classes
            charge(spent, 0, k + 1, _octaves(rate, costs[row + (cell >> bits)], divisor, scratch))
            mistake = costs[row + (wish & 15)]
            mistake = times(mistake, ONE - (wish >> 4)) if mistake > 0 else -times(-mistake, ONE - (wish >> 4))
            charge(spent, last, last + 1, _octaves(rate, mistake, divisor, scratch))
            class_forecasts(counts, known, sums, totals[cell], p, shape, cell)
            class_judge(loss, p, classes, labels[r])
            weigh(weight, loss)
            class_count(counts, known, shape, cell, labels[r])
            taught += 1
    return taught, refused, lost

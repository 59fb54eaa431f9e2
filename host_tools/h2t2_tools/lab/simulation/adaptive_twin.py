"""The device's adaptive policy compiled with numba: the same integers.

What works on arrays in h2t2.core.forecaster and h2t2.core.adaptive is the device's own source, compiled as it stands.
"""

from __future__ import annotations

import numpy as np

from h2t2.core import adaptive, budget, forecaster, miss_rate

from ...common.jit import compile_function, njit, njit_nogil
from . import tree_twin as trees
from .tree_twin import LOSS, divide, draw, exp2, times
from .twin import ASKED, LOSE
from .watch_twin import AUDITS, FLOOR, GAMMA, MEMORIES, SHARE, STEP, see

ONE, ONE_Q29 = adaptive.ONE, adaptive.ONE_Q29
FAR, KINDS, COUNT = adaptive.FAR, forecaster.KINDS, forecaster.COUNT
FEE, FP, FN, LOWER, UPPER = adaptive.FEE, adaptive.FP, adaptive.FN, adaptive.LOWER, adaptive.UPPER
NOTCH, STAKE, SUMS = miss_rate.NOTCH, miss_rate.STAKE, miss_rate.SUMS

square_root = compile_function(forecaster.square_root)
forecasts = compile_function(forecaster.forecasts)
mean = compile_function(forecaster.mean, times=times, square_root=square_root)
judge = compile_function(forecaster.judge)
weigh = compile_function(forecaster.weigh, exp2=exp2)
count = compile_function(forecaster.count)
fade = compile_function(forecaster.fade)
offload_wish = compile_function(adaptive.offload_wish)
price = compile_function(budget.price)
part = compile_function(adaptive.part, exp2=exp2)
ratio = compile_function(adaptive.ratio)
share = compile_function(miss_rate.share)
clear_sums = compile_function(miss_rate.clear_sums)
zero_chance = compile_function(miss_rate.zero_chance)
expect_misses = compile_function(miss_rate.expect_misses, times=times)
count_event = compile_function(miss_rate.count_event, times=times)
estimate = compile_function(miss_rate.estimate, times=times, share=share, square_root=square_root)
raise_costs = compile_function(miss_rate.raise_costs, times=times, exp2=exp2)
over = compile_function(miss_rate.over)
smallest_chance = compile_function(miss_rate.smallest_chance)
corrected = compile_function(adaptive.corrected)


@njit
def _moved_to(lead, octaves):
    return min(max(lead + octaves, -FAR), FAR)


@njit_nogil
def play(bins, labels, betas, deltas, rates, options, prior, bucket, state, starts, rounds, costs, actions):
    """One run of the adaptive policy; arguments as twin.h2t2() has them. deltas: (delta_fp, delta_fn), Q15. rates: (4,) octaves
    Q26, H2T2.rates. options: (bits, rate, window, rdl_fp, rdl_fn, miss_rate), 0: no such limit. prior: (2^bits,) Q15. bucket:
    (capacity, per_sample, whether its price is asked) of a Budget whose offloads take ONE; capacity 0: none. Returns (taught,
    refused, lost)."""
    capacity, per_sample, priced = bucket
    level = capacity
    bits, rate, window, rdl_fp, rdl_fn, limit = options
    delta_fp, delta_fn = deltas
    n = 1 << bits
    size = 2 << bits
    labels_of, events = np.zeros(size * MEMORIES, np.int64), np.zeros(size * MEMORIES, np.int64)
    fast, slow = np.zeros(n, np.int64), np.zeros(n, np.int64)
    clock, shifts = np.zeros(3, np.int64), np.zeros(MEMORIES, np.int64)
    kinds = MEMORIES * KINDS
    loss, weight, p = np.zeros(kinds, np.int64), np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    weigh(weight, loss)
    belief, effective = np.zeros(4, np.int64), np.zeros(5, np.int64)
    tree = trees.at(trees.planted(1, n), 0)
    ahead = SHARE + ((2 * bits - 1) << 20)
    lead = 0
    late = len(starts) > 1
    tickets = np.zeros(len(bins) if late else 1, np.int64)
    slot_ticket, slot_chance, slot_kept = np.zeros(window, np.int64), np.zeros(window, np.int64), np.zeros(window, np.int64)
    charged = np.zeros(len(bins), np.int64)
    floor, unit_cost = FLOOR, ONE
    effective[FP], effective[FN] = delta_fp, delta_fn
    sums, made, found = np.zeros(SUMS, np.int64), np.zeros(4, np.int64), np.array([0, ONE])
    slot_seen, learned, stake = np.zeros(window, np.int64), rates.copy(), 0
    if limit:
        floor = smallest_chance(limit)
        clear_sums(sums, floor)
        raise_costs(0, delta_fp, delta_fn, made)
        effective[FP], effective[FN], unit_cost = made[1], made[2], made[3]
    last = taught = refused = lost = 0
    noisy = rdl_fp or rdl_fn
    for t in range(len(bins)):
        k = bins[t]
        beta = betas[t]
        affords = True
        if capacity:
            level = min(capacity, level + per_sample)
            affords = level >= ONE
            if priced:
                beta = min(ONE, beta + price(level, capacity))
        charged[t] = beta
        shifts[:] = 0
        if affords:
            see(k, fast, slow, clock, shifts)
        for memory in range(MEMORIES):
            if shifts[memory]:
                fade(labels_of, memory * size, (memory + 1) * size, shifts[memory])
                fade(events, memory * size, (memory + 1) * size, shifts[memory])
        if affords and not clock[0] % 1000:
            trees.rebuild(tree, tree[5][1] == 0, True)
            lead -= lead >> 1
        trees.coarsen(tree)
        q, ones, _, pairs, total = trees.regions(tree, k)
        forecasts(labels_of, events, prior[k], p, bits, k)
        mean(labels_of, weight, p, belief, size, n + k)
        if noisy:
            for entry in range(COUNT):
                belief[entry] = corrected(belief[entry], rdl_fp, rdl_fn)
        least = max(floor, AUDITS[clock[2]])
        effective[FEE] = fee = times(beta, unit_cost)
        effective[LOWER], effective[UPPER] = ratio(fee, effective[FN]), ONE - ratio(fee, effective[FP])
        both = offload_wish(belief, effective, least)
        guess, want = both & 1, both >> 1
        unit = tree[5][1]
        g = part((ahead + lead >> 6 + unit) - total, unit)
        rest = ONE - g
        one = (rest * (ones >> 1) + (g * (ONE - want >> 1) if guess else 0)) >> 14
        zero = (rest * (ONE - q - ones >> 1) + (0 if guess else g * (ONE - want >> 1))) >> 14
        chance = max(floor, (g * (want >> 1) + rest * (q >> 1)) >> 14)
        local = guess if g >= rest else pairs
        if affords:
            psi = draw(state)
        else:  # as Policy.likely: nothing is learned, not even that a sample came
            psi = ONE
            one = zero = 0
            guess = local
        if psi < chance:
            actions[t] = ASKED + local
            level -= ONE
            if want == least:
                clock[2] = min(clock[2] + 1, len(AUDITS) - 1)
        elif one + zero:
            actions[t] = 1 if (psi - chance) * (one + zero) < one * (ONE - chance) else 0
        else:
            actions[t] = guess
        missing = 0
        if limit and affords:
            missing = zero_chance(one, zero, guess, chance)
            expect_misses(sums, found, belief, missing, chance, limit)
            if abs(sums[STAKE] - stake) >= NOTCH:
                stake = sums[STAKE]
                raise_costs(stake, delta_fp, delta_fn, made)
                effective[FP], effective[FN], unit_cost = made[1], made[2], made[3]
                learned[0], learned[2] = over(rates[0], made[0]), over(rates[2], made[0])
        if affords:
            trees.charge_cost(tree, k, rate, beta)
            lead = _moved_to(lead, -times(rate >> 6, (beta >> 1) * want >> 14))
        if actions[t] >= ASKED and late:
            last = last % 268435455 + 1
            slot = last % window
            lost += slot_ticket[slot] > 0
            slot_ticket[slot] = last
            slot_kept[slot] = (want << 1 | guess) << 12 | k
            slot_seen[slot] = (chance - 1) << 15 | missing
            slot_chance[slot] = min(ONE_Q29, chance + GAMMA << 14)
            tickets[t] = last
        event = starts[t] if late else t
        stop = starts[t + 1] if late else t + 1
        while event < stop:
            r = rounds[event] if late else t
            event += 1
            if actions[r] < ASKED:
                continue
            divisor, said = min(ONE_Q29, chance + GAMMA << 14), (chance - 1) << 15 | missing
            if late:
                slot = tickets[r] % window
                if slot_ticket[slot] != tickets[r]:
                    refused += 1
                    continue
                slot_ticket[slot] = 0
                if costs[event - 1] == LOSE:
                    lost += 1
                    continue
                divisor, said = slot_chance[slot], slot_seen[slot]
                k, want, guess = slot_kept[slot] & 4095, slot_kept[slot] >> 13, slot_kept[slot] >> 12 & 1
            label = labels[r]
            zero, one = learned[label << 1], learned[label << 1 | 1]
            trees.coarsen(tree)
            if late and costs[event - 1] >= 0:
                more = costs[event - 1] - charged[r]
                x = times(rate >> 6, (abs(more) >> 1) * want >> 14)
                lead = _moved_to(lead, -x if more > 0 else x)
                trees.charge_cost(tree, k, rate, more)
            trees.teach(tree, k, zero, one, divisor)
            mine = one if guess else zero
            mine = times(mine, ONE - want) if mine > 0 else -times(-mine, ONE - want)
            divide(one - mine, divisor, tree[5], LOSS)
            lead = _moved_to(lead, (min(max(tree[5][LOSS], -STEP), STEP) << 6) + (tree[5][LOSS + 1] >> 8))
            forecasts(labels_of, events, prior[k], p, bits, k)
            judge(loss, p, label)
            weigh(weight, loss)
            count(labels_of, events, size, n + k, label)
            taught += 1
            if limit and label:
                count_event(sums, (said >> 15) + 1, said & 32767)
                estimate(sums, found)
    return taught, refused, lost

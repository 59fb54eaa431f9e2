"""The device's learners compiled with numba: the same integers, the same draws, the same decisions.

The arithmetic (log_add, exp2, times, square_root, ratio, ..) is the device's own source, compiled as it stands; what is
written again here is what works on objects: tree, tickets, rounds. tests/test_simulation.py replays the vector file.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
import numpy as np

from h2t2.core import calibrating, experts, numbers, pairwise, rng, rules

ONE, ONE_Q29, NONE, FINE = numbers.ONE, numbers.ONE_Q29, numbers.NONE, numbers.FINE
FULL, UNIT, FLOOR, ONE_Q20 = calibrating.FULL, calibrating.UNIT, calibrating.FLOOR, calibrating.ONE_Q20
CAP, ROOM, COARSEST = experts.CAP, experts.ROOM, experts.COARSEST
AS_CHARGED, LOSE = -1, -2  # what may stand in place of an arrival's cost
ASKED = 2  # in `actions`: 0 and 1 are the local classes, ASKED and ASKED + 1 an offload with that one to fall back to


def _compiled(function: Any, **names: Any) -> Any:
    """A device function, compiled; names: what its globals are here."""
    return numba.njit(cache=True)(FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__))


_tables = {name: np.array(getattr(numbers, name), np.int64) for name in ("CURVE", "SLOPE", "BEND")}
log_add = _compiled(numbers.log_add, **_tables)
exp2 = _compiled(numbers.exp2, **_tables)
times = _compiled(numbers.times)
square_root = _compiled(calibrating.square_root)
_divide_q20 = _compiled(calibrating._divide)
_cost = _compiled(calibrating._cost)
_clip = _compiled(calibrating._clip)
_over = _compiled(calibrating._over)
ratio = _compiled(pairwise.ratio)
expected = _compiled(rules.expected)


@numba.njit(cache=True)
def _draw(state):
    """Rng.draw; state: (3,) x, y, z."""
    x, y, z = 171 * state[0] % 30269, 172 * state[1] % 30307, 170 * state[2] % 30323
    state[0], state[1], state[2] = x, y, z
    return ((x << 15) // 30269 + (y << 15) // 30307 + (z << 15) // 30323) & 32767


@numba.njit(cache=True)
def _scale(x, q15):
    """numbers.scale: (octaves, fine word)."""
    a = x if x > 0 else -x
    b = (a & 32767) * q15
    a = (a >> 15) * q15 + (b >> 15)
    return _signed(x, a >> 12, (a & 4095) << 2 | b >> 13 & 3)


@numba.njit(cache=True)
def _divide(x, p):
    """numbers.divide: (octaves, fine word)."""
    a = x if x > 0 else -x
    shift = 0
    while p < 268435456:
        p <<= 1
        shift += 1
    p >>= 9
    b = a % p << 10
    a //= p
    c = b // p
    b = b % p << 10
    a = a << 8 | c >> 2
    b = (c & 3) << 12 | b // p << 2 | (b % p << 2) // p
    if a >> 26 - shift:
        return _signed(x, 67108863, FINE)
    return _signed(x, a << shift | b >> 14 - shift, b << shift & FINE)


@numba.njit(cache=True)
def _signed(sign, hi, fine):
    if sign < 0:
        return -hi - (1 if fine > 0 else 0), -fine & FINE
    return hi, fine


@numba.njit(cache=True)
def _pull(u, v, p, losses, unit, n, last):
    size = len(u)
    left = n << 1
    right = left + 1
    if left >= size:
        left = right = 0
    while n >= last:
        a = losses[n]
        b = losses[n + size]
        y = v[right] - b
        p[n] = log_add(log_add(p[left], p[right] - a - b, unit), u[left] + y, unit)
        u[n] = log_add(u[left], u[right] - a, unit)
        v[n] = log_add(v[left], y, unit)
        left = n & -2
        right = left + 1
        n >>= 1


@numba.njit(cache=True)
def _rebuild(u, v, p, losses, fine, scale, coarser, halved):
    """Experts.rebuild; scale: (2,) `spent` and `unit`."""
    size = len(u)
    unit = scale[1]
    if coarser or halved:
        for n in range(2 * size):
            if coarser:
                x = ((losses[n] & 1) << 14 + unit | fine[n]) + (8192 << unit)
                losses[n] = (losses[n] >> 1) + (x >> 15 + unit)
                fine[n] = x & (32768 << unit) - 1
            if halved:
                fine[n] >>= 1
    if coarser:
        scale[1] += 1
    if halved:
        scale[1] -= 1
    for n in range(size - 1, 0, -1):
        _pull(u, v, p, losses, scale[1], n, n)


@numba.njit(cache=True)
def _coarsen(u, v, p, losses, fine, scale):
    """Experts.coarsen, where there is no room left."""
    if scale[0] <= ROOM:
        return
    size = len(u)
    top = 0
    for k in range(0, size, 2):
        n = k + size >> 1
        a, b = abs(losses[n]), abs(losses[n + size])
        x = y = 0
        while n > 1:
            at = n & 1
            n >>= 1
            if at:
                x += losses[n]
                y += losses[n + size]
        top = max(top, a + abs(x), b + abs(y))
    scale[0] = top
    if top > CAP:
        _rebuild(u, v, p, losses, fine, scale, True, scale[1] >= COARSEST)


@numba.njit(cache=True)
def _charge(u, v, p, losses, fine, scale, k, ah, al, bh, bl):
    """Experts.charge."""
    size = len(u)
    unit = scale[1]
    al += (ah & (1 << unit) - 1) << 14
    bl += (bh & (1 << unit) - 1) << 14
    ah >>= unit
    bh >>= unit
    scale[0] += 1 + max(abs(ah), abs(bh))
    bits = unit + 14
    mask = (1 << bits) - 1
    k += size
    while k & 1:
        k >>= 1
    n = k
    while n > 1:
        at = n
        n >>= 1
        if not at & 1:
            lo = fine[n] + al
            fine[n] = lo & mask
            losses[n] += ah + (lo >> bits)
            lo = fine[n + size] + bl
            fine[n + size] = lo & mask
            losses[n + size] += bh + (lo >> bits)
    _pull(u, v, p, losses, unit, k >> 1, 2)


@numba.njit(cache=True)
def _regions(u, v, p, losses, unit, k):
    """Experts.regions: (offload Q15, one Q15, chance Q29, local class)."""
    half = size = len(u)
    n = 1
    a = b = 0
    lower = one = zero = upper = NONE
    half >>= 1
    while half:
        x = a + losses[n]
        y = b + losses[n + size]
        n <<= 1
        if k & half:
            at = n if n < size else 0
            z = v[at] - b
            one = log_add(log_add(one, p[at] - a - b, unit), lower + z, unit)
            lower = log_add(lower, u[at] - a, unit)
            a = x
            b = y
            n += 1
        else:
            at = n + 1 if n < size else 0
            zero = log_add(log_add(zero, p[at] - x - y, unit), upper + u[at] - x, unit)
            upper = log_add(upper, v[at] - y, unit)
        half >>= 1
    lower = log_add(lower, -a, unit)
    one = log_add(one, lower - b, unit)
    local = 1 if one > zero else 0
    upper += lower
    total = log_add(log_add(one, zero, unit), upper, unit)
    chance = exp2(total - upper, unit)
    q = chance + 8192 >> 14
    return q, min(exp2(total - one, unit) + 8192 >> 14, ONE - q), chance, local


@numba.njit(cache=True, nogil=True)
def h2t2(trees, bins, labels, betas, rates, options, state, starts, rounds, costs, actions):
    """One run of H2T2, or of pairwise H2T2, over T samples; fills actions (T,), see ASKED.

    trees: (T,) which learner decides; bins: (T,); labels: (T,) remote labels; betas: (T,) Q15, known before the round.
    rates: (learners, classes, 2) octaves Q26 that a label charges to a learner's 0 and 1. options: (bits, rate, all,
    anytime, epsilon, half_life, window). state: (3,) of the draws. Labels that come late: after round t those of
    rounds[starts[t] : starts[t + 1]] arrive, at costs[..] (Q15, AS_CHARGED or LOSE); starts of length 1: each at once.
    Returns (taught, refused, lost).
    """
    bits, rate, every, anytime, epsilon, half_life, window = options
    n = 1 << bits
    count = len(rates)
    u = np.zeros((count, n), np.int64)
    v, p = np.zeros_like(u), np.zeros_like(u)
    losses = np.zeros((count, 2 * n), np.int64)
    fine = np.full((count, 2 * n), 8192, np.int64)
    scale = np.zeros((count, 2), np.int64)
    for tree in range(count):
        _rebuild(u[tree], v[tree], p[tree], losses[tree], fine[tree], scale[tree], False, False)
    late = len(starts) > 1
    tickets = np.zeros(len(bins) if late else 1, np.int64)
    slot_ticket, slot_chance = np.zeros(window, np.int64), np.zeros(window, np.int64)
    last = taught = refused = lost = 0
    clock = age = 0
    root = 3
    beta = -1
    beta_hi = beta_lo = 0
    for t in range(len(bins)):
        k, tree = bins[t], trees[t]
        if betas[t] != beta:
            beta = betas[t]
            beta_hi, beta_lo = _scale(rate, beta)
        if anytime and clock < 16777215 and not (half_life and clock >= half_life << 1):
            clock += 1
            while (root + 1) * (root + 1) * (root + 1) <= clock << 6:
                root += 1
            epsilon = min(16384, 65536 // root)
        if half_life:
            age += 1
            if age > half_life:
                age = 1
                for other in range(count):
                    finest = scale[other, 1] == 0
                    _rebuild(u[other], v[other], p[other], losses[other], fine[other], scale[other], finest, True)
        _coarsen(u[tree], v[tree], p[tree], losses[tree], fine[tree], scale[tree])
        q, one, chance, local = _regions(u[tree], v[tree], p[tree], losses[tree], scale[tree, 1], k)
        psi = _draw(state)
        explore = _draw(state) < epsilon
        divisor = 0
        if psi < q or explore:
            if every:
                divisor = chance + times(ONE_Q29 - chance, epsilon)
            elif explore:
                divisor = epsilon << 14
            actions[t] = ASKED + local
            if late:
                last = last % 268435455 + 1
                at = last % window
                lost += slot_ticket[at] > 0
                slot_ticket[at], slot_chance[at] = last, divisor
                tickets[t] = last
        else:
            actions[t] = 1 if psi < q + one else 0
        _charge(
            u[tree], v[tree], p[tree], losses[tree], fine[tree], scale[tree], k,
            -beta_hi - (1 if beta_lo > 0 else 0), -beta_lo & FINE, beta_hi, beta_lo,
        )  # fmt: skip
        if not late:
            if actions[t] >= ASKED:
                taught += 1
                _coarsen(u[tree], v[tree], p[tree], losses[tree], fine[tree], scale[tree])
                if divisor:
                    zero, one = rates[tree, labels[t], 0], rates[tree, labels[t], 1]
                    ah, al = _divide(zero, divisor)
                    bh, bl = _divide(-one, divisor)
                    _charge(u[tree], v[tree], p[tree], losses[tree], fine[tree], scale[tree], k, ah, al, bh, bl)
            continue
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
            other = trees[r]
            _coarsen(u[other], v[other], p[other], losses[other], fine[other], scale[other])
            if costs[event] >= 0:
                more = costs[event] - betas[r]
                hi, lo = _scale(rate if more > 0 else -rate, abs(more))
                _charge(
                    u[other], v[other], p[other], losses[other], fine[other], scale[other], bins[r],
                    -hi - (1 if lo > 0 else 0), -lo & FINE, hi, lo,
                )  # fmt: skip
            if slot_chance[at]:
                ah, al = _divide(rates[other, labels[r], 0], slot_chance[at])
                bh, bl = _divide(-rates[other, labels[r], 1], slot_chance[at])
                _charge(u[other], v[other], p[other], losses[other], fine[other], scale[other], bins[r], ah, al, bh, bl)
            taught += 1
    return taught, refused, lost


@numba.njit(cache=True)
def _estimate(events, labels, rdl_fp, clear):
    """Calibrating.estimate: (p, low, high), Q20."""
    n = labels + UNIT
    p = _divide_q20(events + UNIT // 2, n)
    x = p >> 5
    x *= ONE - x
    x = x // n * UNIT + x % n * UNIT // n
    shift = 5
    while shift and x < 268435456:
        x <<= 2
        shift -= 1
    w = 3 * ((square_root(x) << shift) + (ONE_Q20 // 2 * UNIT) // n) >> 1
    if clear < ONE:
        p = _clip(_over(p - (rdl_fp << 5), clear))
        w = _over(w, clear)
    return p, _clip(p - w), _clip(p + w)


@numba.njit(cache=True, nogil=True)
def calibrate(bins, labels, betas, options, state, starts, rounds, costs, actions):
    """One run of the calibrating policy; arguments as h2t2()'s. options: (bits, delta_fp, delta_fn, half_life, window,
    rdl_fp, rdl_fn), Q15. Returns (taught, refused, lost)."""
    bits, delta_fp, delta_fn, half_life, window, rdl_fp, rdl_fn = options
    clear = ONE - rdl_fp - rdl_fn
    seen = np.zeros(1 << bits, np.int64)
    events = np.zeros(1 << bits, np.int64)
    late = len(starts) > 1
    tickets = np.zeros(len(bins) if late else 1, np.int64)
    slots = np.zeros(window, np.int64)
    last = taught = refused = lost = age = 0
    beta = -1
    lower = upper = 0
    for t in range(len(bins)):
        k = bins[t]
        if betas[t] != beta:
            beta = betas[t]
            lower = _divide_q20(beta, delta_fn) if beta < delta_fn else ONE_Q20
            upper = ONE_Q20 - _divide_q20(beta, delta_fp) if beta < delta_fp else 0
        if half_life:
            age += 1
            if age > half_life:
                age = 1
                for n in range(len(seen)):
                    seen[n] >>= 1
                    events[n] >>= 1
        p, low, high = _estimate(events[k], seen[k], rdl_fp, clear)
        zero, one = _cost(p, delta_fn), _cost(ONE_Q20 - p, delta_fp)
        local = 1 if one <= zero else 0
        if lower < upper and high > lower and low < upper:
            chance = ONE
        else:
            edge = low if local else high
            gain = _cost(edge, delta_fn) - _cost(ONE_Q20 - edge, delta_fp)
            if local:
                gain = -gain
            chance = FLOOR if half_life else 0
            if gain > 0:
                more = (beta << 10) - min(zero, one)
                if more <= 0 or gain // 32768 >= more:
                    chance = ONE
                else:
                    while more >= 1048576:
                        more >>= 1
                        gain >>= 1
                    x = gain % more << 10
                    gain = gain // more << 15 | x // more << 5 | (x % more << 5) // more
                    n = seen[k] + 50 * UNIT
                    chance = max(chance, gain // n * (50 * UNIT) + gain % n * (50 * UNIT) // n)
            chance = min(chance, ONE)
        offload = _draw(state) < chance
        actions[t] = ASKED + local if offload else local
        if offload and late:
            last = last % 268435455 + 1
            lost += slots[last % window] > 0
            slots[last % window] = last
            tickets[t] = last
        event = starts[t] if late else t
        stop = starts[t + 1] if late else t + 1
        while event < stop:
            r = rounds[event] if late else t
            if actions[r] >= ASKED:
                if late and slots[tickets[r] % window] != tickets[r]:
                    refused += 1
                else:
                    if late:
                        slots[tickets[r] % window] = 0
                    if late and costs[event] == LOSE:
                        lost += 1
                    else:
                        at = bins[r]
                        seen[at] += UNIT
                        events[at] += UNIT * labels[r]
                        if seen[at] >= FULL:
                            seen[at] >>= 1
                            events[at] >>= 1
                        taught += 1
            event += 1
    return taught, refused, lost


@numba.njit(cache=True, nogil=True)
def pairs_of(scores, costs, bits):
    """Pairwise.decide's choice a sample: (a, b, bin), (T,) each; scores: (T, K) Q14, costs: (K, K) Q15."""
    a_of, b_of = np.zeros(len(scores), np.int64), np.zeros(len(scores), np.int64)
    bins = np.zeros(len(scores), np.int64)
    for t in range(len(scores)):
        a = b = 0
        low = next_low = 1073741823
        for k in range(len(costs)):
            cost = expected(costs, scores[t], k)
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

"""The device's arithmetic, draws and expert tree compiled with numba: the same integers.

log_add, exp2 and times are the device's own source, compiled as it stands; what works on objects there is written again here.
"""

from __future__ import annotations

import numpy as np

from h2t2.core import experts, numbers

from ...common.jit import compile_function, njit

ONE, NONE, FINE = numbers.ONE, numbers.NONE, numbers.FINE
LOSS = 2  # where a tree's array `gauge` holds a loss, four words
CAP, ROOM, COARSEST = experts.CAP, experts.ROOM, experts.COARSEST


_tables = {name: np.array(getattr(numbers, name), np.int64) for name in ("CURVE", "SLOPE", "BEND")}
log_add = compile_function(numbers.log_add, **_tables)
exp2 = compile_function(numbers.exp2, **_tables)
times = compile_function(numbers.times)
_put = compile_function(numbers._put)
scale = compile_function(numbers.scale, _put=_put)
divide = compile_function(numbers.divide, _put=_put)


@njit
def draw(state):
    """Rng.draw; state: (3,) x, y, z."""
    x, y, z = 171 * state[0] % 30269, 172 * state[1] % 30307, 170 * state[2] % 30323
    state[0], state[1], state[2] = x, y, z
    return ((x << 15) // 30269 + (y << 15) // 30307 + (z << 15) // 30323) & 32767


@njit
def _pull(tree, n, last):
    """Experts._pull."""
    u, v, p, losses, _, gauge = tree
    unit = gauge[1]
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


@njit
def rebuild(tree, coarser, halved):
    """Experts.rebuild."""
    u, _, _, losses, fine, gauge = tree
    size = len(u)
    unit = gauge[1]
    if coarser or halved:
        for n in range(2 * size):
            if coarser:
                x = ((losses[n] & 1) << 14 + unit | fine[n]) + (8192 << unit)
                losses[n] = (losses[n] >> 1) + (x >> 15 + unit)
                fine[n] = x & (32768 << unit) - 1
            if halved:
                fine[n] >>= 1
    if coarser:
        gauge[1] += 1
    if halved:
        gauge[1] -= 1
    for n in range(size - 1, 0, -1):
        _pull(tree, n, n)


@njit
def coarsen(tree):
    """Experts.coarsen, where there is no room left."""
    u, _, _, losses, _, gauge = tree
    if gauge[0] <= ROOM:
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
    gauge[0] = top
    if top > CAP:
        rebuild(tree, True, gauge[1] >= COARSEST)


@njit
def charge(tree, k):
    """Experts.charge, of the loss in the tree."""
    u, _, _, losses, fine, gauge = tree
    size = len(u)
    unit = gauge[1]
    ah, al, bh, bl = gauge[LOSS : LOSS + 4]
    al += (ah & (1 << unit) - 1) << 14
    bl += (bh & (1 << unit) - 1) << 14
    ah >>= unit
    bh >>= unit
    gauge[0] += 1 + max(abs(ah), abs(bh))
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
    _pull(tree, k >> 1, 2)


@njit
def regions(tree, k):
    """Experts.regions: (offload Q15, one Q15, chance Q29, local class, logarithm of the weights' sum)."""
    u, v, p, losses, _, gauge = tree
    unit = gauge[1]
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
    return q, min(exp2(total - one, unit) + 8192 >> 14, ONE - q), chance, local, total


@njit
def charge_cost(tree, k, rate, beta):
    """What an offload costs more (or, below 0, less) than was charged, to the offloading experts of bin k; beta: Q15."""
    rate = rate if beta > 0 else -rate
    scale(-rate, abs(beta), tree[5], LOSS)
    scale(rate, abs(beta), tree[5], LOSS + 2)
    charge(tree, k)


@njit
def teach(tree, k, zero, one, divisor):
    """A label's losses (octaves, Q26) of predicting 0 and 1 in bin k, divided by its chance (Q29; 0: it teaches nothing)."""
    if divisor:
        divide(zero, divisor, tree[5], LOSS)
        divide(-one, divisor, tree[5], LOSS + 2)
        charge(tree, k)


@njit
def planted(count, n):
    """`count` trees of n bins with equal weights, as (u, v, p, losses, fine, gauge); gauge: `bound`, `unit`, a loss."""
    u = np.zeros((count, n), np.int64)
    losses = np.zeros((count, 2 * n), np.int64)
    fine = np.full((count, 2 * n), 8192, np.int64)
    forest = (u, np.zeros_like(u), np.zeros_like(u), losses, fine, np.zeros((count, 6), np.int64))
    for number in range(count):
        rebuild(at(forest, number), False, False)
    return forest


@njit
def at(forest, number):
    """One tree of them."""
    u, v, p, losses, fine, gauge = forest
    return u[number], v[number], p[number], losses[number], fine[number], gauge[number]

# Looking into a learner, for telemetry and pictures: not part of a step, may allocate.
from .numbers import exp2


def exponents(experts, i: int) -> tuple:
    """(a_i, b_i) in Q28 octaves, any size of integer: u_i = 2^-a_i weighs i as lower threshold, v_i = 2^-b_i as upper."""
    a = b = 0
    bits = 14 + experts.unit
    half = 1 << bits - 1
    n = i + experts.n
    while n > 1:
        if n & 1:
            n >>= 1
            a += (experts.losses[n] << bits) + experts.fine[n] - half
            b += (experts.losses[n + experts.n] << bits) + experts.fine[n + experts.n] - half
        else:
            n >>= 1
    return a, b


def weights(experts) -> tuple:
    """The marginal weights (u, v): two lists of N integers, each relative to its heaviest, which is 32768."""
    rows = [exponents(experts, i) for i in range(experts.n)]
    low = min([a for a, _ in rows]), min([b for _, b in rows])
    return tuple([[exp2(min(row[n] - low[n] >> 14, 1073741823), 0) + 8192 >> 14 for row in rows] for n in (0, 1)])


def likely(experts) -> tuple:
    """The heaviest pair of thresholds (i, j), i <= j, in bins: 0 below i, offload from i to j - 1, 1 from j on. O(2^b b).

    Of equally heavy pairs the one that offloads most: the smallest i, the largest j.
    """
    best = low = None
    pair = 0, 0
    i = 0
    for j in range(experts.n):
        a, b = exponents(experts, j)
        if low is None or a < low:
            low = a
            i = j
        total = low + b
        if best is None or total < best or (total == best and pair[0] == i):
            best = total
            pair = (i, j)
    return pair

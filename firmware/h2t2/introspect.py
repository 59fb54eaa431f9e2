# Looking into a learner, for telemetry and pictures: not part of a step, may allocate.
from .fixed import exp2


def exponents(experts, i):
    """(a_i, b_i), losses of two words (fixed.py): u_i = 2^-a_i weighs i as lower threshold, v_i = 2^-b_i as upper."""
    a = b = a_fine = b_fine = 0
    n = i + experts.n
    while n > 1:
        if n & 1:
            n >>= 1
            a += experts.losses[n]
            b += experts.losses[n + experts.n]
            a_fine += experts.fine[n] - 8192
            b_fine += experts.fine[n + experts.n] - 8192
        else:
            n >>= 1
    return (a + (a_fine >> 14), a_fine & 16383), (b + (b_fine >> 14), b_fine & 16383)


def weights(experts):
    """The marginal weights (u, v): two lists of N integers, each relative to its heaviest, which is 32768."""
    a = [exponents(experts, i) for i in range(experts.n)]
    low = min([x[0][0] for x in a]), min([x[1][0] for x in a])
    return tuple([[exp2(x[side][0] - low[side]) + 8192 >> 14 for x in a] for side in (0, 1)])


def likely(experts):
    """The heaviest pair of thresholds (i, j), i <= j, in bins: 0 below i, offload from i to j - 1, 1 from j on. O(2^b b).

    Of equally heavy pairs the one that offloads most: the smallest i, the largest j.
    """
    best = pair = low = None
    i = 0
    for j in range(experts.n):
        a, b = exponents(experts, j)
        if low is None or a < low:
            low = a
            i = j
        fine = low[1] + b[1]
        total = (low[0] + b[0] + (fine >> 14), fine & 16383)
        if best is None or total < best or (total == best and pair[0] == i):
            best = total
            pair = (i, j)
    return pair

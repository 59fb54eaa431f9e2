# Looking into a learner, for telemetry and pictures: not part of a step, may allocate.


def exponents(experts, i):
    """((octaves, Q28 fraction) of a_i, the same of b_i): u_i = 2^-a_i weighs i as lower threshold, v_i = 2^-b_i as upper."""
    a_hi = a_lo = b_hi = b_lo = 0
    n = 1
    half = experts.n >> 1
    while half:
        if i & half:
            at = 4 * n
            a_hi += experts.losses[at]
            a_lo += experts.losses[at + 1]
            b_hi += experts.losses[at + 2]
            b_lo += experts.losses[at + 3]
        n = n << 1 | (1 if i & half else 0)
        half >>= 1
    return (a_hi + (a_lo >> 28), a_lo & 0xFFFFFFF), (b_hi + (b_lo >> 28), b_lo & 0xFFFFFFF)


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
        lo = low[1] + b[1]
        total = (low[0] + b[0] + (lo >> 28), lo & 0xFFFFFFF)
        if best is None or total < best or (total == best and pair[0] == i):
            best = total
            pair = (i, j)
    return pair

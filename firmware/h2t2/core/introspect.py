# Weights and thresholds of a learner, for telemetry and pictures. This is not part of a step and may allocate.
from .numbers import exp2

if 0:  # for type checkers
    from .experts import Experts


def exponents(experts: "Experts", i: int) -> "tuple[int, int]":
    """Return (a_i, b_i) in Q28 octaves: u_i = 2^-a_i weighs i as lower threshold, v_i = 2^-b_i as upper threshold."""
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


def marginals(experts: "Experts") -> "tuple[list[int], ...]":
    """Return the marginal weights (u, v): two lists of N integers, each relative to its heaviest, which is 32768."""
    rows = [exponents(experts, i) for i in range(experts.n)]
    low = min([a for a, _ in rows]), min([b for _, b in rows])
    return tuple([[exp2(min(row[n] - low[n] >> 14, 1073741823), 0) + 8192 >> 14 for row in rows] for n in (0, 1)])


def likely(experts: "Experts") -> "tuple[int, int]":
    """Return the heaviest pair of thresholds (i, j), i <= j, in bins: 0 below i, offload from i to j - 1, 1 from j on.

    It returns the pair that offloads most among equally heavy ones: the smallest i, the largest j. O(2^b b).
    """
    best = low = None  # type: int | None
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

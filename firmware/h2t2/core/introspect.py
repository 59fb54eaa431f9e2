# Weights and thresholds of a learner, for telemetry and pictures. This is not part of a step and may allocate.
from .numbers import exp2

if 0:  # for type checkers
    from .experts import Experts


def exponents(experts: "Experts", i: int) -> "tuple[int, int]":
    """Return (a_i, b_i) in Q28 octaves: u_i = 2^-a_i weighs i as lower threshold, v_i = 2^-b_i as upper threshold."""
    lower = upper = 0
    bits = 14 + experts.unit
    half = 1 << bits - 1
    node = i + experts.n
    while node > 1:
        if node & 1:
            node >>= 1
            lower += (experts.losses[node] << bits) + experts.fine[node] - half
            upper += (experts.losses[node + experts.n] << bits) + experts.fine[node + experts.n] - half
        else:
            node >>= 1
    return lower, upper


def marginals(experts: "Experts") -> "tuple[list[int], ...]":
    """Return the marginal weights (u, v): two lists of N integers, each relative to its heaviest, which is 32768."""
    rows = [exponents(experts, i) for i in range(experts.n)]
    low = min([lower for lower, _ in rows]), min([upper for _, upper in rows])
    return tuple([[exp2(min(row[side] - low[side] >> 14, 1073741823), 0) + 8192 >> 14 for row in rows] for side in (0, 1)])


def likely(experts: "Experts") -> "tuple[int, int]":
    """Return the heaviest pair of thresholds (i, j), i <= j, in bins: 0 below i, offload from i to j - 1, 1 from j on.

    It returns the pair that offloads most among equally heavy ones: the smallest i, the largest j. O(2^b b).
    """
    best = low = None  # type: int | None
    pair = 0, 0
    i = 0
    for j in range(experts.n):
        lower, upper = exponents(experts, j)
        if low is None or lower < low:
            low = lower
            i = j
        total = low + upper
        if best is None or total < best or (total == best and pair[0] == i):
            best = total
            pair = (i, j)
    return pair

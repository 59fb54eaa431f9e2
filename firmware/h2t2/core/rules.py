# The optimal rules for a calibrated LDL (Theorems 1 and 3): nothing is learned, integers only.
from .policy import OFFLOAD


class Calibrated:
    """Theorem 1: predict 1 iff f >= delta_1 / (delta_1 + delta_-1); offload iff beta / delta_-1 <= f < 1 - beta / delta_1.

    delta_fp, delta_fn: Q15 costs, 0..32768.
    """

    def __init__(self, delta_fp, delta_fn):
        for name, value in (("delta_fp", delta_fp), ("delta_fn", delta_fn)):
            if not 0 <= value <= 32768:
                raise ValueError("%s %r is not in 0..32768" % (name, value))
        self.delta_fp = delta_fp
        self.delta_fn = delta_fn

    def decide(self, f, beta: int) -> int:
        """0, 1 or OFFLOAD for a score f in Q14 (0..16384, the probability of class 1) at this round's cost beta (Q15)."""
        zero = f * self.delta_fn  # expected costs of predicting 0 and 1, Q29
        one = (16384 - f) * self.delta_fp
        if beta << 14 <= zero and beta << 14 < one:
            return OFFLOAD
        return 1 if one <= zero else 0


class CalibratedMulticlass:
    """Theorem 3: predict argmin_k f^T C_k (the first of equals); offload iff that cost is above beta.

    costs: K rows of K Q15 integers, `costs[i][j]` for predicting j when the class is i, zero diagonal, 2 <= K <= 16.
    """

    def __init__(self, costs):
        self.costs = checked(costs)

    def decide(self, f, beta: int) -> int:
        """The class, or OFFLOAD, for scores f: K integers in Q14 that sum to at most 32767 (16384 is 1)."""
        best = 0
        least = 1073741823  # 2^30 - 1, above any cost
        for k in range(len(self.costs)):
            cost = expected(self.costs, f, k)
            if cost < least:
                least = cost
                best = k
        return OFFLOAD if least > beta << 14 else best


def expected(costs, f, k):
    """f^T C_k in Q29: the expected cost of predicting k."""
    total = 0
    for i in range(len(costs)):
        total += f[i] * costs[i][k]
    return total


def checked(costs):
    """The cost matrix, or ValueError saying what is wrong with it."""
    n = len(costs)
    if not 2 <= n <= 16:
        raise ValueError("costs: %d classes, want 2 to 16" % n)
    for i in range(n):
        if len(costs[i]) != n:
            raise ValueError("costs: row %d has %d entries, want %d" % (i, len(costs[i]), n))
        for j in range(n):
            if not 0 <= costs[i][j] <= 32768 or (i == j and costs[i][j]):
                raise ValueError("costs[%d][%d] is %r: want 0..32768, and 0 on the diagonal" % (i, j, costs[i][j]))
    return costs

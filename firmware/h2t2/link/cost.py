# What an offload really costs, from its round-trip time and its bytes: beta of the rounds to come, and of the one that is over.
# Integers only.
from ..core.numbers import ONE

STEEPEST = 1000 * ONE


class LinkCost:
    """beta_t = fixed + per_s x seconds waited + per_kb x KiB sent, at most 1: time, bytes and radio energy on one line.

    The host makes the three numbers from a table of times, bytes and energies (`offload_cost` of a node's configuration).
    The policy keeps the mean of what was paid as its own beta, see next(); here is only what it starts from.
    """

    def __init__(self, fixed: int, per_s: int, per_kb: int, expected: int):
        """Q15: fixed and expected (before anything is measured) 0..32768, per_s and per_kb 0..32768000 (1000 a second or KiB).

        ValueError, naming it, for another value.
        """
        for name, value, most in (
            ("fixed", fixed, ONE),
            ("per_s", per_s, STEEPEST),
            ("per_kb", per_kb, STEEPEST),
            ("expected", expected, ONE),
        ):
            if not 0 <= value <= most:
                raise ValueError("cost %s %r is not in 0..%d" % (name, value, most))
        self.fixed = fixed
        self.per_s = per_s
        self.per_kb = per_kb
        self.expected = expected
        # what costs 1 alone: more is not multiplied, so that every product is a small int
        self.longest = ONE * 1000 // max(1, per_s) + 1
        self.largest = (ONE << 5) // max(1, per_kb) + 1

    def paid(self, ms: int, size: int) -> int:
        """beta (Q15) of an offload of `size` bytes (counted in 32s) that took ms milliseconds."""
        beta = self.fixed + self.per_s * min(max(0, ms), self.longest) // 1000
        return min(ONE, beta + (self.per_kb * min(size >> 5, self.largest) >> 5))

    def next(self, expected: int, beta: int) -> int:
        """What the next offload should cost, Q15: the mean of those before (`expected`) with a new one counting 1/8."""
        return expected + ((beta - expected + 4) >> 3)

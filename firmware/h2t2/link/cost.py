# The measured cost of an offload, from its round-trip time and its bytes: beta of that round and of those to come.
from ..core.numbers import ONE

STEEPEST = 1000 * ONE  # the largest per_s and per_kb, Q15


class LinkCost:
    """beta_t = fixed + per_s x seconds waited + per_kb x KiB sent, at most 1: time, bytes and radio energy on one line.

    The host makes the three numbers from a table of times, bytes and energies (`offload_cost` of a node's configuration).
    The policy keeps the mean of the measured costs as its own beta, see average(); here is only the value that it starts from.

    >>> cost = LinkCost(fixed=1000, per_s=6554, per_kb=0, expected=3000)
    >>> cost.beta_of(ms=500, size=64)
    4277
    """

    def __init__(self, fixed: int, per_s: int, per_kb: int, expected: int) -> None:
        """Set the cost, in Q15.

        Args:
            fixed: of each offload, 0..32768.
            per_s: of a second of waiting, 0..32768000.
            per_kb: of a KiB, 0..32768000.
            expected: of an offload before anything is measured, 0..32768.

        Raises:
            ValueError: a value is out of range; the message names it.
        """
        for name, value, upper_bound in (
            ("fixed", fixed, ONE),
            ("per_s", per_s, STEEPEST),
            ("per_kb", per_kb, STEEPEST),
            ("expected", expected, ONE),
        ):
            if not 0 <= value <= upper_bound:
                raise ValueError("cost %s %r is not in 0..%d" % (name, value, upper_bound))
        self.fixed = fixed
        self.per_s = per_s
        self.per_kb = per_kb
        self.expected = expected
        # times and sizes beyond these cost more than 1: they are cut, so that every product is a small int
        self.longest = ONE * 1000 // max(1, per_s) + 1
        self.largest = (ONE << 5) // max(1, per_kb) + 1

    def beta_of(self, ms: int, size: int) -> int:
        """beta (Q15) of an offload of `size` bytes (counted in 32s) that took ms milliseconds."""
        beta = self.fixed + self.per_s * min(max(0, ms), self.longest) // 1000
        return min(ONE, beta + (self.per_kb * min(size >> 5, self.largest) >> 5))

    def average(self, expected: int, beta: int) -> int:
        """The expected cost of the next offload, Q15: the mean so far (`expected`) with a weight of 1/8 for the new cost."""
        return expected + ((beta - expected + 4) >> 3)

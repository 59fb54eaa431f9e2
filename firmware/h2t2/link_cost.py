# What an offload really costs, from its round-trip time and its bytes: beta of the rounds to come, and of the one that is over.
# Integers only.
from .fixed import ONE


class LinkCost:
    """beta_t = fixed + per_s x seconds waited + per_kb x KiB sent, at most 1: time, bytes and radio energy on one line.

    The host makes the three numbers from a table of times, bytes and energies (`h2t2 node --cost`, board config `cost`).
    expected: Q15, what the next offload should cost: the mean of the last ones, a new one counting 1/8.
    """

    def __init__(self, fixed, per_s, per_kb, expected):
        """All Q15, 0..32768; expected: before anything is measured. ValueError, naming it, for another value."""
        for name, value in (("fixed", fixed), ("per_s", per_s), ("per_kb", per_kb), ("expected", expected)):
            if not 0 <= value <= ONE:
                raise ValueError("cost %s %r is not in 0..32768" % (name, value))
        self.fixed = fixed
        self.per_s = per_s
        self.per_kb = per_kb
        self.expected = expected

    def paid(self, ms, size):
        """beta (Q15) of an offload of `size` bytes that took ms milliseconds (counted to 32 s, 1 MiB); `expected` follows."""
        beta = self.fixed + self.per_s * min(max(0, ms), 32767) // 1000 + (self.per_kb * min(size >> 5, 32767) >> 5)
        beta = min(ONE, beta)
        self.expected += (beta - self.expected + 4) >> 3
        return beta

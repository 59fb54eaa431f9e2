# A budget for offloads: a token bucket that is never overdrawn, and the price of its tokens. Integers only.
#
# The policy decides which samples it offloads. The emptier the bucket, the higher is the cost that the node charges for an
# offload, so that the policy spends the tokens on the samples where an offload saves most.
from .numbers import ONE

LONGEST = 524288  # ms that are credited at once


def price(level: int, capacity: int) -> int:
    """Return the extra cost of an offload, Q15: ((capacity - level) / capacity)^2. 0 <= level <= capacity < 2^29."""
    x = capacity - level
    while capacity >= 16384:
        capacity >>= 1
        x >>= 1
    x = min((x << 15) // capacity, ONE - 1)
    return x * x >> 15


class Budget:
    """A bucket of tokens, which stand for offloads, bytes or energy. It starts full.

    An offload of n bytes costs `fixed` + `per_kb` n / 1024 tokens. The bucket gains `amount` of them every `period` ms and
    `per_sample` with every sample, up to its capacity.
    """

    def __init__(self, capacity: int, *, fixed: int, per_kb: int, amount: int = 0, period: int = 1, per_sample: int = 0):
        """Fill the bucket.

        Args:
            capacity: 1..2^29 - 1.
            fixed, per_kb: 0..2^20 and 0..32767, not both 0.
            amount: 0..1023.
            period: Milliseconds, 1..2^29 - 1.
            per_sample: 0..2^20.

        Raises:
            ValueError: It names an argument out of range, or the capacity is below `fixed`.
        """
        for name, value, low, high in (
            ("capacity", capacity, 1, 536870911),
            ("fixed", fixed, 0, 1048576),
            ("per_kb", per_kb, 0, 32767),
            ("amount", amount, 0, 1023),
            ("period", period, 1, 536870911),
            ("per_sample", per_sample, 0, 1048576),
        ):
            if not low <= value <= high:
                raise ValueError("budget %s %r is not in %d..%d" % (name, value, low, high))
        if not fixed + per_kb or fixed > capacity:
            raise ValueError("budget: %d tokens are no room for an offload of %d" % (capacity, fixed))
        self.capacity = self.level = capacity
        self.fixed = fixed
        self.per_kb = per_kb
        self.amount = amount
        self.period = period
        self.per_sample = per_sample
        self.owed = 0  # token-milliseconds on the way to the next token

    def earn(self, ms: int) -> None:
        """Credit a sample that comes so many milliseconds after the last one."""
        self.level = min(self.capacity, self.level + self.per_sample)
        self.credit(ms)

    def credit(self, ms: int) -> None:
        """Credit time without a sample."""
        level = self.level
        while ms > 0 and self.amount:
            step = min(ms, LONGEST)
            ms -= step
            self.owed += step * self.amount
            level = min(self.capacity, level + self.owed // self.period)
            self.owed %= self.period
        self.level = level

    def cost(self, size: int) -> int:
        """Return the tokens of an offload, its bytes rounded up to 32; above 2^20 bytes they exceed the capacity."""
        if size > 1048576:
            return self.capacity + 1
        return self.fixed + (self.per_kb * (size + 31 >> 5) + 31 >> 5)

    def affords(self, size: int) -> bool:
        """Return whether the bucket has the tokens of an offload of so many bytes."""
        return self.level >= self.cost(size)

    def spend(self, size: int) -> None:
        """Take the tokens of an offload that it affords."""
        self.level -= self.cost(size)

    def price(self) -> int:
        """Return the extra cost of an offload at the present level, Q15."""
        return price(self.level, self.capacity)

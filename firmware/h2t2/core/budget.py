# A budget for offloads: a token bucket that is never overdrawn, and the price of what is in it. Integers only.
#
# What is worth sending is the policy's to say. It is told a higher cost the emptier the bucket is, so that what there is goes
# to the samples where it saves most, and is there when they come.
from .numbers import ONE

LONGEST = 524288  # ms that are credited at once


def price(level: int, capacity: int) -> int:
    """What an offload costs on top, Q15: ((capacity - level) / capacity)^2. 0 <= level <= capacity < 2^29."""
    x = capacity - level
    while capacity >= 16384:
        capacity >>= 1
        x >>= 1
    x = min((x << 15) // capacity, ONE - 1)
    return x * x >> 15


class Budget:
    """A bucket of tokens, whatever they stand for: offloads, bytes, energy. It starts full.

    An offload of n bytes costs `fixed` + `per_kb` n / 1024. `amount` tokens come in every `period` ms, and `per_sample` with
    every sample; what does not fit is lost.
    """

    def __init__(self, capacity: int, fixed: int, per_kb: int, amount: int = 0, period: int = 1, per_sample: int = 0):
        """capacity: 1..2^29 - 1. fixed: 0..2^20, per_kb: 0..32767, not both 0. amount: 0..1023. period: 1..2^29 - 1.
        per_sample: 0..2^20.

        ValueError, naming it, for another value, and where the bucket does not hold one offload's fixed part.
        """
        for name, value, least, most in (
            ("capacity", capacity, 1, 536870911),
            ("fixed", fixed, 0, 1048576),
            ("per_kb", per_kb, 0, 32767),
            ("amount", amount, 0, 1023),
            ("period", period, 1, 536870911),
            ("per_sample", per_sample, 0, 1048576),
        ):
            if not least <= value <= most:
                raise ValueError("budget %s %r is not in %d..%d" % (name, value, least, most))
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
        """A sample, ms milliseconds after the last one."""
        self.level = min(self.capacity, self.level + self.per_sample)
        self.credit(ms)

    def credit(self, ms: int) -> None:
        """Time that passed, without a sample."""
        level = self.level
        while ms > 0 and self.amount:
            part = min(ms, LONGEST)
            ms -= part
            self.owed += part * self.amount
            level = min(self.capacity, level + self.owed // self.period)
            self.owed %= self.period
        self.level = level

    def cost(self, size: int) -> int:
        """Tokens that an offload of so many bytes takes, counted in 32s, rounded up; beyond 2^20 bytes more than all."""
        if size > 1048576:
            return self.capacity + 1
        return self.fixed + (self.per_kb * (size + 31 >> 5) + 31 >> 5)

    def affords(self, size: int) -> bool:
        """Whether there is enough for an offload of so many bytes."""
        return self.level >= self.cost(size)

    def spend(self, size: int) -> None:
        """An offload of so many bytes, which it affords."""
        self.level -= self.cost(size)

    def price(self) -> int:
        """What an offload costs on top now, Q15."""
        return price(self.level, self.capacity)

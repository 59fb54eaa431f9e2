# A budget for offloads: a token bucket that is never overdrawn, and the price of its tokens. Integers only.
#
# The policy decides which samples it offloads. The emptier the bucket, the higher is the cost that the node charges for an
# offload, so that the policy spends the tokens on the samples where an offload saves most.
from .numbers import ONE

if 0:  # for type checkers
    from ..annotations import Sequence

KEPT = "level", "owed", "remainder", "turn", "used", "samples", "before", "passed", "blind"  # what outlives a start

LONGEST = 524288  # ms that are credited at once
MOST = 536870911


class Budget:
    """A bucket of tokens, which stand for offloads, bytes or energy. It starts empty.

    An offload of n bytes costs `fixed` + `per_kb` n / 1024 tokens. The bucket gains `amount` of them every `period` ms and
    `per_sample` with every sample, up to its capacity. With a `limit`, no more than so many are spent in a calendar period of
    `span` ms, and where `remembers` says that restarts do not hide what was spent, each sample gains the limit divided by the
    samples of the period before, once there was a whole one.

    Attributes:
        level: Tokens in the bucket; below 0 it owes what was spent too early.
        remembers: Whether memory() is saved before the tokens up to `mark` are spent. Otherwise income comes with time
            alone and no period inherits tokens, so that all starts of a period together keep to the limit.
        turn: Number of the calendar period; -1: the clock was never set.
        used, samples: Tokens spent and samples seen in this period.
        before: Samples of the period before; 0: unknown.
        mark: How many tokens may be spent in this period by now.
        asked_cost: Tokens of the last offload that affords() was asked about.
    """

    def __init__(
        self, capacity: int, *, fixed: int, per_kb: int, amount: int = 0, period: int = 1, per_sample: int = 0, limit: int = 0,
        span: int = 1,
    ):  # fmt: skip
        """Begin with an empty bucket.

        Args:
            capacity: 1..2^29 - 1.
            fixed, per_kb: 0..2^20 and 0..32767, not both 0.
            amount: 0..1023.
            period: Milliseconds, 1..2^29 - 1.
            per_sample: 0..2^20.
            limit: Largest number of tokens spent in a span, 0..2^29 - 1; 0: any.
            span: Milliseconds, 1..2^29 - 1: a minute, an hour, a day.

        Raises:
            ValueError: It names an argument out of range, or the capacity is below `fixed`.
        """
        for name, value, low, high in (
            ("capacity", capacity, 1, MOST), ("fixed", fixed, 0, 1048576), ("per_kb", per_kb, 0, 32767),
            ("amount", amount, 0, 1023), ("period", period, 1, MOST), ("per_sample", per_sample, 0, 1048576),
            ("limit", limit, 0, MOST), ("span", span, 1, MOST),
        ):  # fmt: skip
            if not low <= value <= high:
                raise ValueError("budget %s %r is not in %d..%d" % (name, value, low, high))
        if not fixed + per_kb or fixed > capacity:
            raise ValueError("budget: %d tokens are no room for an offload of %d" % (capacity, fixed))
        self.capacity = capacity
        self.fixed = fixed
        self.per_kb = per_kb
        self.amount = amount
        self.period = period
        self.per_sample = per_sample
        self.limit = limit
        self.span = span
        self.remembers = self.complete = False  # complete: this period is known from its beginning
        self.turn = -1
        self.level = self.used = self.samples = self.before = 0
        self.asked_cost = max(1, fixed)
        self.passed = 0  # ms of this period
        self.dark = True  # the clock is not set
        self.blind = 0  # tokens spent meanwhile, in this period and the one before
        self.mark = limit or MOST
        self.owed = 0  # token-milliseconds on the way to the next token
        self.remainder = 0  # likewise, of `before` for a token

    def earn(self, ms: int, turn: int) -> None:
        """Credit a sample. Arguments: as of credit()."""
        self.credit(ms, turn)
        income = self.per_sample
        if self.before:
            self.remainder += self.limit
            income = self.remainder // self.before
            self.remainder %= self.before
        self.samples = min(self.samples + 1, MOST)
        self.level = min(self.capacity, self.level + income)

    def credit(self, ms: int, turn: int) -> None:
        """Credit time without a sample.

        Args:
            ms: Milliseconds since the last call.
            turn: Number of the calendar period; -1: the clock is not set.
        """
        if self.limit:
            self.passed += min(max(0, ms), self.span - self.passed)
            if turn > self.turn or self.passed == self.span and (turn < 0 or turn != self.turn):
                self.begin_period(turn)
                ms = 0  # nobody knows how much of it is of this period
            self.dark = turn < 0
        level = self.level
        while ms > 0 and self.amount and not self.before:
            step = min(ms, LONGEST)
            ms -= step
            self.owed += step * self.amount
            level = min(self.capacity, level + self.owed // self.period)
            self.owed %= self.period
        self.level = level

    def begin_period(self, turn: int) -> None:
        """Begin a period. Before its clock was set, the device may have spent in this one what it spent without."""
        self.before = self.samples if self.complete and self.remembers else 0
        if turn < 0:
            self.blind = self.used
            self.used = 0
        else:
            self.used = min(self.limit, self.blind) if self.dark else 0
            self.blind = 0
        if self.remembers:
            self.mark = 0
        else:
            self.level = -min(self.used, self.capacity)  # at most so much of it was earned before this period
        self.turn = turn
        self.samples = self.passed = self.remainder = 0
        self.complete = True

    def cost(self, size: int) -> int:
        """Return the tokens of an offload, its bytes rounded up to 32; above 2^20 bytes they exceed the capacity."""
        if size > 1048576:
            return self.capacity + 1
        return self.fixed + (self.per_kb * (size + 31 >> 5) + 31 >> 5)

    def affords(self, size: int) -> bool:
        """Return whether an offload of so many bytes is within the bucket and the limit."""
        self.asked_cost = cost = self.cost(size)
        return self.level >= cost and self.used + cost <= self.mark

    def spend(self, size: int) -> None:
        """Take the tokens of an offload that it affords."""
        cost = self.cost(size)
        self.level -= cost
        if self.limit:
            self.used += cost
            if self.dark:
                self.blind += cost

    def price(self) -> int:
        """Return the extra cost of an offload at the present level, Q15: ((capacity - level) / capacity)^2."""
        capacity = self.capacity
        missing = capacity - self.level
        while capacity >= 16384:
            capacity >>= 1
            missing >>= 1
        missing = min((missing << 15) // capacity, ONE - 1)
        return missing * missing >> 15

    def is_due(self) -> bool:
        """Return whether a new mark has to be kept before the next offload."""
        return self.mark < self.limit and self.used + self.asked_cost > self.mark

    def next_mark(self) -> int:
        """Return the mark to keep: where it is due, a 32nd of the limit ahead."""
        return min(self.limit, self.used + max(self.asked_cost, self.limit >> 5)) if self.is_due() else self.mark

    def memory(self) -> "list[int]":
        """Return what outlives a start."""
        return [getattr(self, name) for name in KEPT]

    def recall(self, memory: "Sequence[int]") -> None:
        """Continue with what a start before kept."""
        for name, value in zip(KEPT, memory):
            setattr(self, name, value)
        self.level = min(self.level, self.capacity)
        self.owed %= self.period
        self.complete = True

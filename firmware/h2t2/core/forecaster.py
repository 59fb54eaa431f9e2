# The forecaster: how often is a sample of this bin an event? A forecast combines the label counts of a memory with a prior, and
# its past errors weigh it. The policy (adaptive) draws and charges.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .numbers import MACHINE_CODE, ONE, exp2, times
from .policy import checked_integer
from .watch import MEMORIES, Watch

if 0:  # for type checkers
    from collections.abc import Iterator

KINDS = 4  # priors: the bin's own, worth 4 and 128 labels, and the mean of its parent in the bin tree, worth 1 and 8
P, LOW, HIGH, COUNT = 0, 1, 2, 3  # of a belief: P(event), its interval (Q15, 1..ONE - 1), labels behind it (quarters)
FULL = 32000  # quarters: a node's counts are halved when it holds 8000 labels
SLOPE = 3  # weights are 2^-(6 x Brier loss): loss in Q15, logarithms in Q14


def square_root(x: int) -> int:
    """Return floor(sqrt(x)) for 0 <= x < 2^30, in fifteen steps."""
    root = 0
    bit = 16384
    while bit:
        if (root + bit) * (root + bit) <= x:
            root += bit
        bit >>= 1
    return root


def forecasts(labels: "array[int]", events: "array[int]", prior: int, p: "array[int]", bits: int, k: int) -> None:
    """Compute the forecasts for a bin.

    Args:
        labels, events: (MEMORIES, 2^(bits + 1)) counts in quarters, each memory a heap over the bins.
        prior: Of the bin, Q15.
        p: (MEMORIES, KINDS), becomes the forecasts, Q15, below 1.
        bits: 2^bits bins.
        k: The bin.
    """
    size = 2 << bits
    k += size >> 1
    base = i = 0
    while base < len(labels):
        n = labels[base + k]
        x = events[base + k] << 15
        p[i] = (x + 16 * prior) // (n + 16)
        p[i + 1] = (x + 512 * prior) // (n + 512)
        a = b = 16384  # the root's parent is one half
        shift = bits
        while shift >= 0:
            n = labels[base + (k >> shift)]
            x = events[base + (k >> shift)] << 15
            a = (x + 4 * a) // (n + 4)
            b = (x + 32 * b) // (n + 32)
            shift -= 1
        p[i + 2] = a
        p[i + 3] = b
        i += 4
        base += size


def mean(labels: "array[int]", weight: "array[int]", p: "array[int]", belief: "array[int]", size: int, leaf: int) -> None:
    """Combine the forecasts for a bin.

    Args:
        labels: As for forecasts().
        weight: Of every forecast, Q15, sum ONE.
        p: The forecasts, Q15.
        belief: Becomes P, LOW, HIGH and COUNT; in COUNT a prior has half its worth (5/8 for the heaviest).
        size: Of a memory's heap.
        leaf: Index of the bin in it.
    """
    i = x = count = 0
    while i < len(p):
        n = labels[leaf]
        x += weight[i] * p[i] + weight[i + 1] * p[i + 1] + weight[i + 2] * p[i + 2] + weight[i + 3] * p[i + 3]
        count += weight[i] * (n + 8) + weight[i + 1] * (n + 320) + weight[i + 2] * (n + 2) + weight[i + 3] * (n + 16)
        i += 4
        leaf += size
    x = max(1, x >> 15)
    n = (count >> 15) + 4
    count = x * (ONE - x) // n << 2
    while i:
        i -= 1
        if weight[i]:
            leaf = p[i] - x
            count += times(leaf * leaf, weight[i])
    width = square_root(count) + 65536 // n
    belief[P] = x
    belief[LOW] = max(1, x - width)
    belief[HIGH] = min(ONE - 1, x + width)
    belief[COUNT] = n


def judge(loss: "array[int]", p: "array[int]", label: int) -> None:
    """Multiply the losses of all forecasts by .995 and add the Brier losses that a label causes."""
    label <<= 15
    i = len(p)
    while i:
        i -= 1
        x = p[i] - label >> 1
        loss[i] += (x * x >> 13) - (loss[i] * 5 >> 10)


def weigh(weight: "array[int]", loss: "array[int]") -> None:
    """Compute the weights of the forecasts, Q15 with the sum ONE, from their losses."""
    minimum = loss[0]
    i = len(loss)
    while i:
        i -= 1
        minimum = min(minimum, loss[i])
    total = best = 0
    i = len(loss)
    while i:
        i -= 1
        x = exp2((loss[i] - minimum) * SLOPE, 0) >> 14
        weight[i] = x
        total += x
        if loss[i] == minimum:
            best = i
    i = len(loss)
    remainder = ONE
    while i:
        i -= 1
        x = (weight[i] << 14) // total << 1
        weight[i] = x
        remainder -= x
    weight[best] += remainder


def count(labels: "array[int]", events: "array[int]", size: int, leaf: int, label: int) -> None:
    """Count a label at a leaf and at its ancestors, in every memory. Arguments as for mean()."""
    while leaf < len(labels):
        n = leaf & size - 1
        base = leaf - n
        while n:
            i = base + n
            labels[i] += 4
            if label:
                events[i] += 4
            if labels[i] >= FULL:
                labels[i] >>= 1
                events[i] >>= 1
            n >>= 1
        leaf += size


def fade(counts: "array[int]", start: int, stop: int, shift: int) -> None:
    """Divide the counts from start to stop - 1 by 2^shift."""
    while stop > start:
        stop -= 1
        counts[stop] >>= shift


class Forecaster(Watch):
    """Learns P(event) of each bin from labels, with an interval. A round calls count_score(), a label learn().

    Attributes:
        belief: P, LOW, HIGH and COUNT of the bin of the last estimate().
        prior: P(event) of each bin before any label, Q15.
    """

    def __init__(self, bits: int, prior: "list[int] | None" = None):
        """bits: 1..12. prior: P(event) of each bin, Q15; None: the middle of its scores."""
        n = 1 << bits
        Watch.__init__(self, n)
        self.bits = bits
        self.prior = array("i", [0] * n)
        self.set_prior(prior)
        self.labels = array("H", bytes(4 * n * MEMORIES))  # no list of so many entries, for which a board may lack the room
        self.events = array("H", self.labels)
        self.loss = array("i", [0] * (MEMORIES * KINDS))
        self.weight = array("i", self.loss)
        self.forecast = array("i", self.loss)
        self.belief = array("i", [0, 0, 0, 0])
        self.clear()

    def set_prior(self, prior: "list[int] | None") -> None:
        """Replace the prior; labels keep their effect. ValueError for a wrong table."""
        n = len(self.prior)
        table = prior if prior is not None else [(2 * k + 1 << 14) >> self.bits for k in range(n)]
        if len(table) != n:
            raise ValueError("prior: %d numbers, want %d, one a bin" % (len(table), n))
        for value in table:
            checked_integer("prior", value, 0, ONE)
        for k in range(n):
            self.prior[k] = min(max(table[k], 1), ONE - 1)
        self.bin = -1

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows(). The prior is not part of the state."""
        size = len(self.labels)
        yield self.labels, 0, size, 0, FULL, 0
        yield self.events, 0, size, 0, FULL, size  # at most as many events as labels
        yield from Watch.array_rows(self)
        yield self.loss, 0, len(self.loss), 0, 1 << 23, 0

    def derive(self) -> None:
        """Compute anew what follows from the state."""
        weigh(self.weight, self.loss)
        self.bin = -1  # the bin of `forecast`

    def clear(self) -> None:
        """Forget all labels and scores, not the prior."""
        Watch.clear(self)
        for counts in (self.labels, self.events, self.loss):
            fade(counts, 0, len(counts), 30)
        self.derive()

    def _forecast(self, k: int) -> None:
        """Compute `forecast` for bin k unless it is current."""
        if self.bin != k:
            forecasts(self.labels, self.events, self.prior[k], self.forecast, self.bits, k)
            self.bin = k

    def estimate(self, k: int) -> None:
        """Set `belief` for bin k."""
        self._forecast(k)
        mean(self.labels, self.weight, self.forecast, self.belief, 2 << self.bits, (1 << self.bits) + k)

    def fade(self, memory: int, shift: int) -> None:
        """As Watch.fade."""
        size = 2 << self.bits
        fade(self.labels, memory * size, (memory + 1) * size, shift)
        fade(self.events, memory * size, (memory + 1) * size, shift)
        self.bin = -1

    def learn(self, k: int, label: int) -> None:
        """Learn a label, 0 or 1, of bin k."""
        self._forecast(k)
        judge(self.loss, self.forecast, label)
        weigh(self.weight, self.loss)
        size = 2 << self.bits
        count(self.labels, self.events, size, (size >> 1) + k, label)
        self.bin = -1


if MACHINE_CODE:
    from .forecaster_viper import count, forecasts, judge, mean, weigh

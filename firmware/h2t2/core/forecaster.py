# The forecaster: how often is a sample of this bin an event? Counts of labels in several memories, beside several priors, are
# forecasts; each weighs what its own past says it is worth. It draws nothing and charges nothing: that is adaptive's.
#
# What works on arrays stands in functions of arrays, for the simulator compiles them as they are.
from array import array

from .numbers import ONE, exp2, times
from .policy import checked_integer
from .watch import MEMORIES, Watch

KINDS = 4  # priors: the bin's own, worth 4 and 128 labels, and the mean of its parent in the bin tree, worth 1 and 8
FULL = 32000  # quarters: a node's counts are halved when it has held 8000 labels
SLOPE = 3  # weights are 2^-(6 x Brier loss): loss in Q15, logarithms in Q14


def square_root(x: int) -> int:
    """floor(sqrt(x)) for 0 <= x < 2^30, fifteen steps."""
    root = 0
    bit = 16384
    while bit:
        if (root + bit) * (root + bit) <= x:
            root += bit
        bit >>= 1
    return root


def forecasts(labels, events, prior: int, p, bits: int, k: int) -> None:
    """The MEMORIES x KINDS forecasts for bin k into `p`, Q15, below 1.

    labels, events: MEMORIES heaps of 2^(bits + 1) counts in quarters; prior: of the bin, Q15.
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


def mean(labels, weight, p, seen, size: int, leaf: int) -> None:
    """What the forecasts come to: `seen` becomes the probability of an event, the width of its interval (both Q15), and the
    labels behind it in quarters, a prior's share counted with half its worth (5/8 for the heaviest).

    weight: of every forecast, Q15, sum 1; size: of a memory's heap; leaf: the bin's place in it.
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
    seen[0] = x
    seen[1] = square_root(count) + 65536 // n
    seen[2] = n


def judge(loss, p, label: int) -> None:
    """Add a label's Brier loss of every forecast, those before it fading by .995."""
    label <<= 15
    i = len(p)
    while i:
        i -= 1
        x = p[i] - label >> 1
        loss[i] += (x * x >> 13) - (loss[i] * 5 >> 10)


def weigh(weight, loss) -> None:
    """The forecasts' weights from their losses, Q15, their sum ONE."""
    least = loss[0]
    i = len(loss)
    while i:
        i -= 1
        least = min(least, loss[i])
    total = best = 0
    i = len(loss)
    while i:
        i -= 1
        x = exp2((loss[i] - least) * SLOPE, 0) >> 14
        weight[i] = x
        total += x
        if loss[i] == least:
            best = i
    i = len(loss)
    least = ONE
    while i:
        i -= 1
        x = (weight[i] << 14) // total << 1
        weight[i] = x
        least -= x
    weight[best] += least


def count(labels, events, size: int, leaf: int, label: int) -> None:
    """A label at a leaf and at the nodes above it, in every memory."""
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


def fade(counts, start: int, stop: int, shift: int) -> None:
    """Counts from start to stop - 1, each divided by 2^shift."""
    while stop > start:
        stop -= 1
        counts[stop] >>= shift


class Forecaster(Watch):
    """P(event) of a bin, learned from labels, with its interval; told of every score, for their histogram needs no label.

    look(k) sets `p`, `low`, `high` (Q15) and `count` (quarters); see() is a round; learn() a label.
    """

    def __init__(self, bits: int, prior=None):
        """bits: 1..12. prior: P(event) of every bin before any label, Q15; None: the score itself."""
        n = 1 << bits
        Watch.__init__(self, n)
        self.bits = bits
        self.prior = array("i", [0] * n)
        self.set_prior(prior)
        self.labels = array("H", [0] * (2 * n * MEMORIES))
        self.events = array("H", self.labels)
        self.loss = array("i", [0] * (MEMORIES * KINDS))
        self.weight = array("i", self.loss)
        self.forecast = array("i", self.loss)
        self.belief = [0, 0, 0]
        self.p = self.low = self.high = self.count = 0
        self.clear()

    def set_prior(self, prior) -> None:
        """Another table. What the labels have said stays. ValueError for one that is none."""
        n = len(self.prior)
        table = prior if prior is not None else [(2 * k + 1 << 14) >> self.bits for k in range(n)]
        if len(table) != n:
            raise ValueError("prior: %d numbers, want %d, one a bin" % (len(table), n))
        for value in table:
            checked_integer("prior", value, 0, ONE)
        for k in range(n):
            self.prior[k] = min(max(table[k], 1), ONE - 1)
        self.at = -1

    def arrays(self):
        """As Policy.arrays. The table is not among them: it is what the policy was made with, or told since."""
        yield self.labels, ((0, FULL),)
        yield self.events, len(self.events)  # never more events than labels
        yield from Watch.arrays(self)
        yield self.loss, ((0, 1 << 23),)

    def restored(self) -> None:
        """After a restore: what follows from the state is computed anew."""
        weigh(self.weight, self.loss)
        self.at = -1

    def clear(self) -> None:
        """Forget every label and every score. The prior stays."""
        Watch.clear(self)
        for counts in (self.labels, self.events, self.loss):
            fade(counts, 0, len(counts), 30)
        weigh(self.weight, self.loss)
        self.at = -1  # the bin that `forecast` is of, -1: none

    def _forecast(self, k):
        """`forecast` for bin k, unless it is that already."""
        if self.at != k:
            forecasts(self.labels, self.events, self.prior[k], self.forecast, self.bits, k)
            self.at = k

    def look(self, k: int) -> None:
        """What it believes of bin k."""
        self._forecast(k)
        mean(self.labels, self.weight, self.forecast, self.belief, 2 << self.bits, (1 << self.bits) + k)
        self.p = p = self.belief[0]
        self.low = max(1, p - self.belief[1])
        self.high = min(ONE - 1, p + self.belief[1])
        self.count = self.belief[2]

    def fade(self, memory: int, shift: int) -> None:
        """As Watch.fade."""
        size = 2 << self.bits
        fade(self.labels, memory * size, (memory + 1) * size, shift)
        fade(self.events, memory * size, (memory + 1) * size, shift)
        self.at = -1

    def learn(self, k: int, label: int) -> None:
        """A label of bin k, 0 or 1."""
        self._forecast(k)
        judge(self.loss, self.forecast, label)
        weigh(self.weight, self.loss)
        size = 2 << self.bits
        count(self.labels, self.events, size, (size >> 1) + k, label)
        self.at = -1

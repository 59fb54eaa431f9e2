# The forecaster: how often is a sample of this bin an event? A forecast combines the label counts of a memory with a prior, and
# its past errors weigh it. The policy (adaptive) draws and charges. Watch, the part that needs no label, detects drift.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .numbers import ONE, exp2, times
from .policy import checked_integer

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator, Sequence, UInt16s

# of the forecasters of two and of many classes; the first four weigh a forecaster beside the other experts
ETA = 3355443  # .05 in Q26
SHARE = 6950945  # log2(.99 / .01) in Q20: the forecaster's initial weight relative to that of all other experts
GAMMA = 655  # .02 in Q15, added to P(offload) in loss estimates: a small bias for much less variance
STEP = 4194304  # 2^8 octaves: a label moves a loss by at most so much
MEMORIES = 4  # of labels: one never fades, the others have half-lives of 4000, 1000 and 250 rounds
YEAR = 4000  # rounds after which the schedule of fading repeats
FAST, SLOW = 2, 6  # shifts every 32 rounds: histograms of the last 128 and of the last 2048 scores
INCREMENT = 64  # a score adds this to its cell of a histogram
FAST_MAX, SLOW_MAX = 8192, 131072  # of a cell, when all scores fall into it
QUIET = 128  # rounds from one drift to the next, at least
DRIFT = 1285  # a chi-squared of 80 between the two histograms is drift
FLOOR = 164  # .005 in Q15: the smallest probability to offload
AUDITS = (13107, 1638, 485, 205, FLOOR)  # .4 / (1 + n)^3 in Q15: P(offload) with a certain forecast, after n audits
# of two classes
KINDS = 4  # priors: the cell's own, worth 4 and 128 labels, and the mean of its parent in the tree, worth 1 and 8
BINS = MEMORIES * KINDS  # forecasts by the bins of the score; those of heads follow
# of a belief: P(event), its interval (Q15, 1..ONE - 1), labels behind it (quarters), and the mean of the forecasts itself
P, LOW, HIGH, COUNT, MEAN = 0, 1, 2, 3, 4
HEAVY = 320  # worth of the heavy prior there
HEAD_WORTH = 64  # quarters of labels that count there for a head's forecast, beside those of the sample's bin
HEAD_LEAD = 65536  # with equal losses each of a head weighs as much as BINS by bins: 2^4, in Q14 octaves
FULL = 32000  # quarters: a node's counts are halved when it holds 8000 labels
SAME = 65536  # added to a weight that is that of the same kind of the memory before
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


def forecasts(labels: "UInt16s", events: "UInt16s", leaf: int, forecast: "Int32s", at: int, bits: int, memories: int) -> None:
    """Compute the forecasts by a cell: a bin of the score, or of a head's output.

    Args:
        labels, events: Counts in quarters: for each memory a heap over the 2^bits cells.
        leaf: Index of the cell in a heap.
        forecast: From `at` on, (memories, KINDS) become the forecasts, Q15, below 1. The first is the cell's prior.
        bits, memories: As above.
    """
    base = 0
    prior = forecast[at]
    size = 2 << bits
    for _ in range(memories):
        light = heavy = prior
        light_mean = heavy_mean = 16384  # the root's parent is one half
        known = happened = 0
        shift = bits
        while shift >= 0:
            node = base + (leaf >> shift)
            known = labels[node]
            if known:
                happened = events[node] << 15
                light_mean = (happened + 4 * light_mean) // (known + 4)
                heavy_mean = (happened + 32 * heavy_mean) // (known + 32)
            shift -= 1
        if known:
            light = (happened + 16 * prior) // (known + 16)
            heavy = (happened + 512 * prior) // (known + 512)
        forecast[at] = light
        forecast[at + 1] = heavy
        forecast[at + 2] = light_mean
        forecast[at + 3] = heavy_mean
        at += KINDS
        base += size


def believe(labels: "UInt16s", weight: "Int32s", forecast: "Int32s", at: int, belief: "Int32s", bits: int) -> None:
    """Set a belief to the mean of the forecasts and the labels behind it.

    Args:
        labels, bits: Of the bins, as for forecasts().
        weight: Of every forecast, Q15, sum ONE.
        forecast: By the bin, then those of heads.
        at: Index of the bin in a heap.
        belief: Becomes P to MEAN. A prior counts with half its worth.
    """
    i = mean = behind = 0
    size = 2 << bits
    worth = labels[at + size] + HEAD_WORTH  # by memory 1
    for _ in range(MEMORIES):
        known = labels[at]
        share = weight[i]
        mean += share * forecast[i]
        behind += share * (known + 8)
        share = weight[i + 1]
        mean += share * forecast[i + 1]
        behind += share * (known + HEAVY)
        share = weight[i + 2]
        mean += share * forecast[i + 2]
        behind += share * (known + 2)
        share = weight[i + 3]
        mean += share * forecast[i + 3]
        behind += share * (known + 16)
        i += KINDS
        at += size
    for i in range(BINS, len(forecast)):
        share = weight[i]
        mean += share * forecast[i]
        behind += share * worth
    mean >>= 15
    belief[MEAN] = mean
    mean = max(1, mean)
    behind = (behind >> 15) + 4
    square = mean * (ONE - mean) // behind << 2
    for i in range(len(forecast)):
        share = weight[i]
        if share:
            deviation = forecast[i] - mean
            square += times(deviation * deviation, share)
    width = square_root(square) + 65536 // behind
    belief[P] = mean
    belief[LOW] = max(1, mean - width)
    belief[HIGH] = min(ONE - 1, mean + width)
    belief[COUNT] = behind


def judge(loss: "Int32s", forecast: "Int32s", label: int, size: int) -> None:
    """Multiply the losses of all forecasts by .995 and add the Brier losses that a label causes.

    Args:
        loss, forecast: (size,).
        label: 0 or 1.
        size: Number of forecasts.
    """
    label <<= 15
    while size:
        size -= 1
        error = forecast[size] - label >> 1
        loss[size] = (error * error >> 13) + loss[size] - (loss[size] * 5 >> 10)


def weigh(weight: "Int32s", loss: "Int32s", size: int, heads: int) -> None:
    """Compute the weights of the forecasts, Q15 with the sum ONE, from their losses.

    Args:
        weight: (size,), become the weights.
        loss, size: Of judge().
        heads: Index of the first forecast of a head, which HEAD_LEAD favours; `size` where there is none.
    """
    best = 0
    smallest = loss[0]
    for i in range(1, size):
        own = loss[i]
        if own < smallest:
            smallest = own
            best = i
    total = 0
    lead = HEAD_LEAD if heads < size else 0
    for i in range(size):
        if i == heads:
            lead = 0
        if KINDS <= i < heads and loss[i] == loss[i - KINDS]:  # as long as two memories are equal
            share = weight[i - KINDS] | SAME
        else:
            share = exp2((loss[i] - smallest) * SLOPE + lead, 0) >> 14
        weight[i] = share
        total += share & SAME - 1
    remainder = ONE
    for i in range(size):
        share = weight[i]
        share = weight[i - KINDS] if share & SAME else (share << 14) // total << 1
        weight[i] = share
        remainder -= share
    weight[best] += remainder


def count(labels: "UInt16s", events: "UInt16s", leaf: int, bits: int, memories: int, label: int) -> None:
    """Count a label at a leaf and its ancestors in every memory. Arguments as for forecasts()."""
    base = 0
    for _ in range(memories):
        node = leaf
        while node:
            at = base + node
            known = labels[at] + 4
            if label:
                events[at] += 4
            if known >= FULL:
                known >>= 1
                events[at] >>= 1
            labels[at] = known
            node >>= 1
        base += 2 << bits


def fade(counts: "array[int]", start: int, stop: int, shift: int) -> None:
    """Divide the counts from start to stop - 1 by 2^shift."""
    while stop > start:
        stop -= 1
        counts[stop] >>= shift


def drifted(fast: "Int32s", slow: "Int32s") -> bool:
    """Return whether the histogram of the last scores differs from that of the earlier ones."""
    fast_sum = slow_sum = chi_squared = 0
    cell = len(fast)
    while cell:
        cell -= 1
        fast_sum += fast[cell]
        slow_sum += slow[cell]
    cell = len(fast)
    while cell:
        cell -= 1
        now = (fast[cell] << 12) // fast_sum
        before = (slow[cell] << 12) // slow_sum
        chi_squared += (now - before) * (now - before) // ((now + before >> 1) + 4)
    return chi_squared > DRIFT * max(1, len(fast) >> 4)


def fade_histograms(fast: "Int32s", slow: "Int32s") -> None:
    """Fade both histograms, once in 32 rounds."""
    cell = len(fast)
    while cell:
        cell -= 1
        fast[cell] -= fast[cell] >> FAST
        slow[cell] -= slow[cell] >> SLOW


class Watch:
    """Counts the rounds, keeps two histograms of the cells of the scores, and fades memories on schedule and after drift.

    Attributes:
        fast, slow: The histograms.
        age: Rounds of the current YEAR.
        quiet: Rounds since the last drift, up to QUIET.
        audits: Offloads made although the forecast was certain, up to the length of AUDITS.
    """

    def __init__(self, cells: int):
        self.fast = array("i", [0] * cells)
        self.slow = array("i", self.fast)
        self.age = self.quiet = self.audits = 0

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "age", 0, YEAR - 1
        yield self, "quiet", 0, QUIET
        yield self, "audits", 0, len(AUDITS) - 1

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield self.fast, 0, len(self.fast), 0, FAST_MAX, 0
        yield self.slow, 0, len(self.slow), 0, SLOW_MAX, 0

    def clear(self) -> None:
        """Forget all rounds."""
        for cell in range(len(self.fast)):
            self.fast[cell] = self.slow[cell] = 0
        self.age = self.quiet = self.audits = 0

    def count_score(self, cell: int) -> None:
        """Begin a round with a score in a cell: O(1), every 32nd round O(cells); every 250th round fades memories."""
        self.fast[cell] = min(self.fast[cell] + INCREMENT, FAST_MAX)
        self.slow[cell] = min(self.slow[cell] + INCREMENT, SLOW_MAX)
        self.quiet = min(self.quiet + 1, QUIET)
        self.age += 1
        if not self.age & 31 or not self.age % 250:
            self._follow_schedule()

    def _follow_schedule(self) -> None:
        """Look for drift and fade what is due after `age` rounds."""
        if not self.age & 31:
            if self.quiet >= QUIET and drifted(self.fast, self.slow):
                self.adapt_to_drift()
            fade_histograms(self.fast, self.slow)
        if not self.age % 250:
            self.fade(3, 1)
            if not self.age % 1000:
                self.fade(2, 1)
            if self.age == YEAR:
                self.age = 0
                self.fade(1, 1)

    def adapt_to_drift(self) -> None:
        """Fade all memories to a quarter and audit again."""
        for memory in range(MEMORIES):
            self.fade(memory, 2)
        for cell in range(len(self.fast)):
            self.slow[cell] = self.fast[cell]
        self.audits = min(self.audits, 1)
        self.quiet = 0

    def count_audit(self) -> None:
        """Count an offload with a certain forecast."""
        self.audits = min(self.audits + 1, len(AUDITS) - 1)

    if 0:  # what each forecaster defines

        def fade(self, memory: int, shift: int) -> None:
            """Divide the counts of a memory, 0 (it never fades by schedule) to 3, by 2^shift."""
            raise NotImplementedError


class Forecaster(Watch):
    """Learns P(event) of each bin from labels, with an interval. A round calls count_score(), a label learn().

    Attributes:
        belief: P to MEAN of the bin of the last estimate().
        prior: P(event) of each bin before any label, Q15.
        bin: That of `forecast`; -1: none.
        equal: Whether all memories certainly have the same counts, as before the first fading.
    """

    def __init__(self, bits: int, prior: "list[int] | None" = None, heads: int = 0):
        """bits: 1..12. prior: P(event) of each bin, Q15; None: the middle of its scores. heads: further forecasts."""
        checked_integer("bits", bits, 1, 12)
        bins = 1 << bits
        Watch.__init__(self, bins)
        self.bits = bits
        self.prior = array("i", [0] * bins)
        self.set_prior(prior)
        # no list of so many entries, for which a board may lack the room
        self.labels = array("H", bytes(2 * MEMORIES * 2 * bins))
        self.events = array("H", self.labels)
        self.loss = array("i", [0] * (BINS + heads))
        self.weight = array("i", self.loss)
        self.forecast = array("i", self.loss)
        self.belief = array("i", [0, 0, 0, 0, 0])
        self.clear()

    def set_prior(self, prior: "list[int] | None") -> None:
        """Replace the prior; labels keep their effect. ValueError for a wrong table."""
        bins = len(self.prior)
        table: "Sequence[int]" = range(1 << 14 - self.bits, ONE, 1 << 15 - self.bits) if prior is None else prior
        if len(table) != bins:
            raise ValueError("prior: %d numbers, want %d, one a bin" % (len(table), bins))
        for value in table:
            checked_integer("prior", value, 0, ONE)
        for i in range(bins):
            self.prior[i] = min(max(table[i], 1), ONE - 1)
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
        weigh(self.weight, self.loss, len(self.loss), BINS)
        self.bin = -1
        self.equal = False

    def clear(self) -> None:
        """Forget all labels and scores, not the prior."""
        Watch.clear(self)
        for counts in (self.labels, self.events, self.loss):
            fade(counts, 0, len(counts), 30)
        self.derive()
        self.equal = True

    def _forecast(self, k: int) -> None:
        """Compute `forecast` for bin k."""
        forecast = self.forecast
        memories = 1 if self.equal else MEMORIES
        forecast[0] = self.prior[k]
        forecasts(self.labels, self.events, (1 << self.bits) + k, forecast, 0, self.bits, memories)
        for i in range(memories * KINDS, BINS):
            forecast[i] = forecast[i - KINDS]
        self.bin = k

    def estimate(self, k: int) -> None:
        """Set `belief` for bin k."""
        if self.bin != k:
            self._forecast(k)
        believe(self.labels, self.weight, self.forecast, (1 << self.bits) + k, self.belief, self.bits)

    def fade(self, memory: int, shift: int) -> None:
        """Divide the counts of a memory, labels and events of all bins, by 2^shift."""
        size = 2 << self.bits
        fade(self.labels, memory * size, (memory + 1) * size, shift)
        fade(self.events, memory * size, (memory + 1) * size, shift)
        self.bin = -1
        self.equal = False

    def learn(self, k: int, label: int) -> None:
        """Learn a label, 0 or 1, of bin k."""
        if self.bin != k:
            self._forecast(k)
        size = len(self.loss)
        judge(self.loss, self.forecast, label, size)
        weigh(self.weight, self.loss, size, BINS)
        count(self.labels, self.events, (1 << self.bits) + k, self.bits, MEMORIES, label)
        self.bin = -1

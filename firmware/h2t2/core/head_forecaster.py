# The forecaster of samples with features. Beside the bins of the score, each head is a view: cells by the head's output, with
# memories and priors, and the output itself. The Brier losses of all forecasts weigh them, as in forecaster.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .forecaster import (
    COUNT,
    FULL,
    HIGH,
    KINDS,
    LOW,
    Forecaster,
    P,
    count,
    fade,
    forecasts,
    square_root,
)  # fmt: skip
from .head import RATES, Heads
from .numbers import MACHINE_CODE, ONE, times
from .watch import MEMORIES

if 0:  # for type checkers
    from collections.abc import Iterator

CELL_BITS = 4  # a head's output has 2^CELL_BITS cells
SIZE = 2 << CELL_BITS  # nodes of a memory of a view
CELLS = MEMORIES * KINDS  # forecasts by the cells of a view; a head's own output is one more
NEXT, MEAN, BEHIND = 0, 1, 2  # of the sums of add_view()
# of a view: quarters of labels that its prior is worth, light and heavy, and how many of them count in the interval
BIN_WORTH = (16, 512, 8, 320)
HEAD_WORTH = (16, 512, 8, 256)
OWN_WORTH = 64  # quarters of labels that count for a head's own output in the interval, beside those of its cell
DOUBT, MAX_DOUBT = 512, 32768  # surprise of the labels, 1 and 64 in Q9; at the latter they show a drift


def view_forecasts(
    labels: "array[int]", events: "array[int]", prior: int, p: "array[int]", worth: "array[int]", k: int, i: int
) -> None:
    """Compute the forecasts by the cells of a head, as forecaster.forecasts() does for the bins.

    Args:
        labels, events: (MEMORIES, SIZE), in quarters.
        prior: The head's output, Q15.
        p: Its items from i on become the forecasts, Q15.
        worth: HEAD_WORTH.
        k: The cell.
        i: Index of the first forecast.
    """
    k += SIZE >> 1
    light = worth[0]
    heavy = worth[1]
    base = 0
    while base < len(labels):
        n = labels[base + k]
        x = events[base + k] << 15
        p[i] = (x + light * prior) // (n + light)
        p[i + 1] = (x + heavy * prior) // (n + heavy)
        a = b = 16384
        shift = CELL_BITS
        while shift >= 0:
            n = labels[base + (k >> shift)]
            x = events[base + (k >> shift)] << 15
            a = (x + 4 * a) // (n + 4)
            b = (x + 32 * b) // (n + 32)
            shift -= 1
        p[i + 2] = a
        p[i + 3] = b
        i += 4
        base += SIZE


def add_view(
    labels: "array[int]", weight: "array[int]", p: "array[int]", sums: "array[int]", worth: "array[int]", size: int, leaf: int
) -> None:
    """Add the forecasts of a view to the sums.

    Args:
        labels: (MEMORIES, size), in quarters.
        weight: Of every forecast, Q15, sum ONE.
        p: The forecasts, Q15.
        sums: NEXT: index of the view's first forecast, becomes the index after its last. MEAN: of the weighted forecasts, Q30.
            BEHIND: of the weighted labels, quarters in Q15.
        worth: BIN_WORTH or HEAD_WORTH.
        size: Of a memory's heap.
        leaf: Index of the cell in it.
    """
    i = sums[NEXT]
    x = sums[MEAN]
    n = sums[BEHIND]
    light = worth[2]
    heavy = worth[3]
    while leaf < len(labels):
        m = labels[leaf]
        x += weight[i] * p[i] + weight[i + 1] * p[i + 1] + weight[i + 2] * p[i + 2] + weight[i + 3] * p[i + 3]
        n += weight[i] * (m + light) + weight[i + 1] * (m + heavy) + weight[i + 2] * (m + 2) + weight[i + 3] * (m + 16)
        i += 4
        leaf += size
    sums[NEXT] = i
    sums[MEAN] = x
    sums[BEHIND] = n


def conclude(weight: "array[int]", p: "array[int]", sums: "array[int]", belief: "array[int]") -> None:
    """Set a belief from the sums of all views, and clear the sums.

    Arguments as for add_view(). COUNT becomes a quarter of the labels: a head uses each label in more ways than a bin, and
    what it may still learn is worth more offloads.
    """
    x = max(1, sums[MEAN] >> 15)
    n = (sums[BEHIND] >> 15) + 4
    square = x * (ONE - x) // n << 2
    i = sums[NEXT]
    while i:
        i -= 1
        if weight[i]:
            d = p[i] - x
            square += times(d * d, weight[i])
    width = square_root(square) + 65536 // n
    belief[P] = x
    belief[LOW] = max(1, x - width)
    belief[HIGH] = min(ONE - 1, x + width)
    belief[COUNT] = n >> 2
    sums[NEXT] = sums[MEAN] = sums[BEHIND] = 0


def mixed(weight: "array[int]", p: "array[int]") -> int:
    """Return the mean of the forecasts p, Q15, with those weights."""
    x = 0
    for i in range(len(p)):
        x += weight[i] * p[i]
    return x >> 15


class HeadForecaster(Forecaster):
    """Forecasts for samples with features. Before estimate() and learn(), `heads` must have the sample.

    Labels that the forecasts did not expect show a drift that the scores do not show. The surprise is the likelihood ratio of
    an even chance against the forecasts since the time that favours it most (Page's test). At MAX_DOUBT all memories fade.

    Attributes:
        heads: The learners.
        surprise: Likelihood ratio, Q9.
    """

    def __init__(self, bits: int, heads: Heads, prior: "list[int] | None" = None):
        """Arguments as for Forecaster."""
        views = len(RATES)
        self.heads = heads
        self.surprise = DOUBT
        self.bin_worth = array("i", BIN_WORTH)
        self.head_worth = array("i", HEAD_WORTH)
        self.sums = array("i", [0, 0, 0])  # scratch of estimate()
        self.head_labels = [array("H", [0] * (MEMORIES * SIZE)) for _ in RATES]
        self.head_events = [array("H", [0] * (MEMORIES * SIZE)) for _ in RATES]
        Forecaster.__init__(self, bits, prior)
        self.loss = array("i", [0] * (CELLS + views * (CELLS + 1)))
        self.weight = array("i", self.loss)
        self.forecast = array("i", self.loss)
        if MACHINE_CODE:
            self.places = head_viper.places_of_forecaster(self)  # type: ignore[no-untyped-call]
        self.clear()

    def see(self, sample: "array[int]") -> None:
        """Make a sample the current one. sample: As Heads.see() takes it."""
        self.heads.see(sample)
        self.bin = -1

    def recall(self, at: int) -> None:
        """Make the sample of the ticket in slot `at` the current one."""
        if self.heads.recall(at):
            self.bin = -1

    def clear(self) -> None:
        """As Forecaster.clear."""
        self.clear_heads()
        Forecaster.clear(self)
        if MACHINE_CODE:
            self.heads.places[head_viper.EQUAL] = 1

    def derive(self) -> None:
        """As Forecaster.derive."""
        Forecaster.derive(self)
        if MACHINE_CODE:
            self.heads.places[head_viper.EQUAL] = 0

    def clear_heads(self) -> None:
        """Forget what the heads have learned, and what their forecasts lost."""
        for r in range(len(self.head_labels)):
            fade(self.head_labels[r], 0, MEMORIES * SIZE, 30)
            fade(self.head_events[r], 0, MEMORIES * SIZE, 30)
        self.heads.clear()
        self.surprise = DOUBT
        fade(self.loss, 0, len(self.loss), 30)
        self.derive()

    def _forecast(self, k: int) -> None:
        """As Forecaster._forecast, for the current sample."""
        if self.bin != k:
            heads = self.heads
            p = self.forecast
            heads.predict()
            forecasts(self.labels, self.events, self.prior[k], p, self.bits, k)
            i = CELLS
            for r in range(len(RATES)):
                g = heads.g[r]
                view_forecasts(self.head_labels[r], self.head_events[r], g, p, self.head_worth, g >> 15 - CELL_BITS, i)
                p[i + CELLS] = g
                i += CELLS + 1
            self.bin = k

    def estimate(self, k: int) -> None:
        """Set `belief` for the current sample, which is in bin k."""
        self._forecast(k)
        sums = self.sums
        weight = self.weight
        add_view(self.labels, weight, self.forecast, sums, self.bin_worth, 2 << self.bits, (1 << self.bits) + k)
        for r in range(len(RATES)):
            g = self.heads.g[r]
            leaf = (g >> 15 - CELL_BITS) + (SIZE >> 1)
            add_view(self.head_labels[r], weight, self.forecast, sums, self.head_worth, SIZE, leaf)
            w = weight[sums[NEXT]]
            sums[NEXT] += 1
            sums[MEAN] += w * g
            sums[BEHIND] += w * (self.head_labels[r][leaf + SIZE] + OWN_WORTH)
        conclude(weight, self.forecast, sums, self.belief)

    def fade(self, memory: int, shift: int) -> None:
        """As Watch.fade."""
        Forecaster.fade(self, memory, shift)
        if MACHINE_CODE:
            self.heads.places[head_viper.EQUAL] = 0
        start = memory * SIZE
        for r in range(len(self.head_labels)):
            fade(self.head_labels[r], start, start + SIZE, shift)
            fade(self.head_events[r], start, start + SIZE, shift)

    def learn(self, k: int, label: int) -> None:
        """Learn the label of the current sample, which is in bin k."""
        self._forecast(k)
        self._doubt(label)
        Forecaster.learn(self, k, label)
        heads = self.heads
        for r in range(len(RATES)):
            leaf = (heads.g[r] >> 15 - CELL_BITS) + (SIZE >> 1)
            count(self.head_labels[r], self.head_events[r], SIZE, leaf, label)
        heads.learn(label)

    def _doubt(self, label: int) -> None:
        """Update `surprise`."""
        p = mixed(self.weight, self.forecast)
        if not label:
            p = ONE - p
        self.surprise = max(DOUBT, (self.surprise << 14) // max(p, 64))
        if self.surprise >= MAX_DOUBT:
            self.doubt_all()

    def doubt_all(self) -> None:
        """Let labels and losses of the past count less, audit again, and learn faster."""
        self.surprise = DOUBT
        self.adapt_to_drift()
        fade(self.loss, 0, len(self.loss), 2)
        self.heads.quicken()

    def head_share(self) -> int:
        """Return the share of the forecasts' weight that the heads' views have, Q15."""
        share = ONE
        for i in range(CELLS):
            share -= self.weight[i]
        return share

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield from Forecaster.number_rows(self)
        yield self, "surprise", DOUBT, MAX_DOUBT
        yield from self.heads.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield from Forecaster.array_rows(self)
        for r in range(len(self.head_labels)):
            labels = self.head_labels[r]
            yield labels, 0, len(labels), 0, FULL, 0
            yield self.head_events[r], 0, len(labels), 0, FULL, len(labels)
        yield from self.heads.array_rows()


if MACHINE_CODE:
    from . import head_viper

    HeadForecaster.see = head_viper.see  # type: ignore[method-assign]
    HeadForecaster.recall = head_viper.recall  # type: ignore[method-assign]
    HeadForecaster.estimate = head_viper.estimate  # type: ignore[method-assign]
    HeadForecaster.learn = head_viper.learn  # type: ignore[method-assign]
    del HeadForecaster._forecast, HeadForecaster._doubt, view_forecasts, add_view, conclude, mixed

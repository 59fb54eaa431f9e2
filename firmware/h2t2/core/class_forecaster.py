# The forecaster for many classes. A cell is a predicted class and a bin of its confidence; the forecaster learns which labels
# the samples of a cell get. As in forecaster, a forecast combines the label counts of a memory with a prior, and its past
# errors weigh it.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .forecaster import FULL, fade, square_root, weigh
from .numbers import ONE, times
from .watch import MEMORIES, Watch

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator, UInt16s

KINDS = 4  # priors: the mean of the cell's own scores, worth 1, 8 and 64 labels; the labels of the predicted class, worth 1
HALF_WORTH = (2, 16, 128, 2)  # of a prior, in quarters of a label
RECENT = 524288  # sum of a cell's scores, Q14, at which it is halved: its mean covers the last 32 to 64 samples
WIDTH = 22938  # .7 in Q15: scales the interval
OWN_WORTH = 1024  # quarters of labels that count for a head's own output in the interval, beside those of the cell
GUESS, COST, INTERVAL, COUNT = 0, 1, 2, 3  # of a belief: the cheapest class, its expected cost and interval (Q15), labels
# of a shape: 2^bits bins of confidence, classes, cells, nodes of a memory (cells, then predicted classes, then all samples)
BITS, CLASSES, CELLS, NODES = 0, 1, 2, 3


def likeliest(f: "list[int]") -> int:
    """Return the class of the largest score, the first of equals."""
    top = 0
    for k in range(len(f)):
        if f[k] > f[top]:
            top = k
    return top


def confidence(score: int, classes: int, bits: int) -> int:
    """Return the bin of the largest score, Q14: 2^bits bins between 1 / classes and 1."""
    return min(max((score * classes - 16384 << bits) // (16384 * (classes - 1)), 0), (1 << bits) - 1)


def observe(sums: "Int32s", totals: "Int32s", f: "list[int]", cell: int) -> None:
    """Add scores, Q14, to the sums of a cell, whose shares are a prior. sums: (cells, classes); totals: (cells,)."""
    at = cell * len(f)
    for k in range(len(f)):
        sums[at + k] += f[k]
        totals[cell] += f[k]
    if totals[cell] >= RECENT:
        totals[cell] = 0
        for k in range(len(f)):
            sums[at + k] >>= 1
            totals[cell] += sums[at + k]


def class_forecasts(
    counts: "UInt16s",
    labels: "Int32s",
    sums: "Int32s",
    total: int,
    p: "Int32s",
    shape: "Int32s",
    cell: int,
) -> None:
    """Compute the forecasts for a cell.

    Args:
        counts: (MEMORIES, nodes, classes) in quarters, each at most FULL / classes.
        labels: (MEMORIES, nodes), sums of the counts.
        sums: (cells, classes), of observe().
        total: Sum of the cell's scores.
        p: (MEMORIES, KINDS, classes), becomes the forecasts, Q15.
        shape: BITS to NODES.
        cell: The cell.
    """
    classes = shape[CLASSES]
    nodes = shape[NODES]
    for k in range(classes):
        prior = min((sums[cell * classes + k] << 10) // (total >> 5), ONE - 1) if total >= 32 else ONE // classes
        own = cell
        group = shape[CELLS] + (cell >> shape[BITS])
        every = nodes - 1
        at = k
        while own < len(labels):
            n = labels[own]
            x = counts[own * classes + k] << 15
            up = ((counts[every * classes + k] << 15) + 4 * ONE // classes) // (labels[every] + 4)
            up = ((counts[group * classes + k] << 15) + 4 * up) // (labels[group] + 4)
            p[at] = (x + 4 * prior) // (n + 4)
            p[at + classes] = (x + 32 * prior) // (n + 32)
            p[at + 2 * classes] = (x + 256 * prior) // (n + 256)
            p[at + 3 * classes] = (x + 4 * up) // (n + 4)
            at += KINDS * classes
            own += nodes
            group += nodes
            every += nodes


def mix(p: "Int32s", weight: "Int32s", mixed: "Int32s") -> None:
    """Average the forecasts. mixed: (classes,), becomes P(class), Q15. Other arguments as for class_mean()."""
    classes = len(mixed)
    for k in range(classes):
        x = 0
        for i in range(len(weight)):
            x += weight[i] * p[i * classes + k]
        mixed[k] = x >> 15


def cheapest(mixed: "Int32s", costs: "Int32s", belief: "Int32s") -> None:
    """Set GUESS and COST (not limited to 0..ONE) of a belief. Arguments as for class_mean()."""
    classes = len(mixed)
    guess = -1
    for j in range(classes):
        x = 0
        for k in range(classes):
            x += (mixed[k] >> 1) * costs[k * classes + j]
        x >>= 14
        if guess < 0 or x < belief[COST]:
            belief[COST] = x
            guess = j
    belief[GUESS] = guess


def class_mean(
    p: "Int32s",
    weight: "Int32s",
    costs: "Int32s",
    mixed: "Int32s",
    labels: "Int32s",
    belief: "Int32s",
    cell: int,
) -> None:
    """Combine the forecasts for a cell.

    Args:
        p: The forecasts, as of class_forecasts(), then those of heads.
        weight: Of every forecast, Q15, sum ONE.
        costs: (classes, classes), Q15: of answering the second when the label is the first, at most sqrt 2 either way.
        mixed: (classes,), becomes P(class), Q15.
        labels: As for class_forecasts().
        belief: Becomes GUESS to COUNT; in COUNT, quarters of labels, a prior has half its worth.
        cell: The cell.
    """
    mix(p, weight, mixed)
    cheapest(mixed, costs, belief)
    classes = len(mixed)
    nodes = len(labels) // MEMORIES
    n = 0
    for i in range(MEMORIES * KINDS):
        n += weight[i] * (labels[i // KINDS * nodes + cell] + HALF_WORTH[i % KINDS])
    for i in range(MEMORIES * KINDS, len(weight)):
        n += weight[i] * min(labels[nodes + cell] + OWN_WORTH, FULL)
    n = (n >> 15) + 4
    guess = belief[GUESS]
    best = belief[COST]
    square = 0
    for k in range(classes):
        x = costs[k * classes + guess] >> 1
        square += (mixed[k] >> 1) * (x * x >> 13)
    square = (min(max(0, (square >> 14) - ((best >> 1) * (best >> 1) >> 13)), ONE - 1) << 15) // n << 2
    for i in range(len(weight)):
        if weight[i]:
            x = 0
            for k in range(classes):
                x += (p[i * classes + k] >> 1) * costs[k * classes + guess]
            x = min(abs((x >> 14) - best), ONE - 1)
            square += times(x * x >> 1, weight[i]) << 1
    belief[COST] = min(max(best, 0), ONE)
    belief[INTERVAL] = times(square_root(square) + 65536 // n, WIDTH)
    belief[COUNT] = n


def class_judge(loss: "Int32s", p: "Int32s", classes: int, label: int) -> None:
    """Multiply the losses of all forecasts by .995 and add half the Brier losses that a label causes."""
    for i in range(len(loss)):
        x = 0
        for k in range(classes):
            y = p[i * classes + k]
            if k == label:
                y = ONE - y
            y >>= 1
            x += y * y >> 14
        loss[i] += x - (loss[i] * 5 >> 10)


def class_count(counts: "UInt16s", labels: "Int32s", shape: "Int32s", cell: int, label: int) -> None:
    """Count a label at a cell, its predicted class, and all samples, in every memory. Arguments as for class_forecasts()."""
    classes = shape[CLASSES]
    nodes = shape[NODES]
    base = 0
    while base < len(labels):
        n = base + cell
        base += nodes
        while n < base:  # the cell, its class, all
            counts[n * classes + label] += 4
            labels[n] += 4
            if counts[n * classes + label] >= FULL // classes:
                fade(counts, n * classes, (n + 1) * classes, 1)
                total(counts, labels, classes, n, n + 1)
            if n < base - 1 - classes:
                n = base - 1 - classes + (cell >> shape[BITS])
            else:
                n = base - 1 if n < base - 1 else base


def total(counts: "array[int]", labels: "Int32s", classes: int, start: int, stop: int) -> None:
    """Compute `labels` of nodes start to stop - 1 from their counts."""
    for n in range(start, stop):
        x = 0
        for k in range(classes):
            x += counts[n * classes + k]
        labels[n] = x


class ClassForecaster(Watch):
    """Learns P(class) of each cell from labels, and which answer is cheapest. A round calls observe(), a label learn().

    Attributes:
        belief: GUESS to COUNT of the cell of the last estimate().
        shape: BITS to NODES.
    """

    def __init__(self, bits: int, classes: int):
        Watch.__init__(self, classes << bits)
        cells = classes << bits
        nodes = cells + classes + 1
        self.shape = array("i", [bits, classes, cells, nodes])
        self.counts = array("H", [0] * (MEMORIES * nodes * classes))
        self.labels = array("i", [0] * (MEMORIES * nodes))
        self.sums = array("i", [0] * (cells * classes))
        self.totals = array("i", [0] * cells)
        self.loss = array("i", [0] * (MEMORIES * KINDS))
        self.weight = array("i", self.loss)
        self.forecast = array("i", [0] * (MEMORIES * KINDS * classes))
        self.mixed = array("i", [0] * classes)
        self.belief = array("i", [0, 0, 0, 0])
        self.clear()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield self.counts, 0, len(self.counts), 0, FULL // self.shape[CLASSES], 0
        yield self.sums, 0, len(self.sums), 0, RECENT, 0
        yield self.loss, 0, len(self.loss), 0, 1 << 23, 0
        yield from Watch.array_rows(self)

    def derive(self) -> None:
        """Compute anew what follows from the state."""
        weigh(self.weight, self.loss, len(self.loss), len(self.loss))
        total(self.counts, self.labels, self.shape[CLASSES], 0, len(self.labels))
        total(self.sums, self.totals, self.shape[CLASSES], 0, len(self.totals))
        self.cell = -1  # the cell of `forecast`

    def clear(self) -> None:
        """Forget all labels and scores."""
        Watch.clear(self)
        for counts in (self.counts, self.sums, self.loss):
            fade(counts, 0, len(counts), 30)
        self.derive()

    def observe(self, f: "list[int]", cell: int) -> None:
        """Begin a round with scores in a cell."""
        observe(self.sums, self.totals, f, cell)
        self.cell = -1
        self.count_score(cell)

    def _forecast(self, cell: int) -> None:
        """Compute `forecast` for a cell unless it is current."""
        if self.cell != cell:
            class_forecasts(self.counts, self.labels, self.sums, self.totals[cell], self.forecast, self.shape, cell)
            self.cell = cell

    def estimate(self, costs: "Int32s", cell: int) -> None:
        """Set `belief` for a cell. costs: (classes, classes), Q15, flat."""
        self._forecast(cell)
        class_mean(self.forecast, self.weight, costs, self.mixed, self.labels, self.belief, cell)

    def fade(self, memory: int, shift: int) -> None:
        """As Watch.fade."""
        classes = self.shape[CLASSES]
        start = memory * self.shape[NODES]
        stop = start + self.shape[NODES]
        fade(self.counts, start * classes, stop * classes, shift)
        total(self.counts, self.labels, classes, start, stop)
        self.cell = -1

    def learn(self, cell: int, label: int) -> None:
        """Learn the label of a cell."""
        self._forecast(cell)
        class_judge(self.loss, self.forecast, self.shape[CLASSES], label)
        weigh(self.weight, self.loss, len(self.loss), len(self.loss))
        class_count(self.counts, self.labels, self.shape, cell, label)
        self.cell = -1

# The forecaster for many classes. A cell is a predicted class and a bin of its confidence; the forecaster learns which labels
# the samples of a cell get. As in forecaster, a forecast combines the label counts of a memory with a prior, and its past
# errors weigh it.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .forecaster import FULL, MEMORIES, Watch, fade, square_root, weigh
from .numbers import ONE, times

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


def likeliest(scores: "list[int]") -> int:
    """Return the class of the largest score, the first of equals."""
    top = 0
    for label in range(len(scores)):
        if scores[label] > scores[top]:
            top = label
    return top


def confidence(score: int, classes: int, bits: int) -> int:
    """Return the bin of the largest score, Q14: 2^bits bins between 1 / classes and 1."""
    return min(max((score * classes - 16384 << bits) // (16384 * (classes - 1)), 0), (1 << bits) - 1)


def observe(sums: "Int32s", totals: "Int32s", scores: "list[int]", cell: int) -> None:
    """Add scores, Q14, to the sums of a cell, whose shares are a prior. sums: (cells, classes); totals: (cells,)."""
    at = cell * len(scores)
    for label in range(len(scores)):
        sums[at + label] += scores[label]
        totals[cell] += scores[label]
    if totals[cell] >= RECENT:
        totals[cell] = 0
        for label in range(len(scores)):
            sums[at + label] >>= 1
            totals[cell] += sums[at + label]


def class_forecasts(
    counts: "UInt16s",
    labels: "Int32s",
    sums: "Int32s",
    total: int,
    forecast: "Int32s",
    shape: "Int32s",
    cell: int,
) -> None:
    """Compute the forecasts for a cell.

    Args:
        counts: (MEMORIES, nodes, classes) in quarters, each at most FULL / classes.
        labels: (MEMORIES, nodes), sums of the counts.
        sums: (cells, classes), of observe().
        total: Sum of the cell's scores.
        forecast: (MEMORIES, KINDS, classes), becomes the forecasts, Q15.
        shape: BITS to NODES.
        cell: The cell.
    """
    classes = shape[CLASSES]
    nodes = shape[NODES]
    for label in range(classes):
        prior = min((sums[cell * classes + label] << 10) // (total >> 5), ONE - 1) if total >= 32 else ONE // classes
        own = cell
        group = shape[CELLS] + (cell >> shape[BITS])
        every = nodes - 1
        at = label
        while own < len(labels):
            known = labels[own]
            counted = counts[own * classes + label] << 15
            up = ((counts[every * classes + label] << 15) + 4 * ONE // classes) // (labels[every] + 4)
            up = ((counts[group * classes + label] << 15) + 4 * up) // (labels[group] + 4)
            forecast[at] = (counted + 4 * prior) // (known + 4)
            forecast[at + classes] = (counted + 32 * prior) // (known + 32)
            forecast[at + 2 * classes] = (counted + 256 * prior) // (known + 256)
            forecast[at + 3 * classes] = (counted + 4 * up) // (known + 4)
            at += KINDS * classes
            own += nodes
            group += nodes
            every += nodes


def mix(forecast: "Int32s", weight: "Int32s", mixed: "Int32s") -> None:
    """Average the forecasts. mixed: (classes,), becomes P(class), Q15. Other arguments as for class_mean()."""
    classes = len(mixed)
    for label in range(classes):
        mean = 0
        for i in range(len(weight)):
            mean += weight[i] * forecast[i * classes + label]
        mixed[label] = mean >> 15


def cheapest(mixed: "Int32s", costs: "Int32s", belief: "Int32s") -> None:
    """Set GUESS and COST (not limited to 0..ONE) of a belief. Arguments as for class_mean()."""
    classes = len(mixed)
    guess = -1
    for answer in range(classes):
        cost = 0
        for label in range(classes):
            cost += (mixed[label] >> 1) * costs[label * classes + answer]
        cost >>= 14
        if guess < 0 or cost < belief[COST]:
            belief[COST] = cost
            guess = answer
    belief[GUESS] = guess


def class_mean(
    forecast: "Int32s",
    weight: "Int32s",
    costs: "Int32s",
    mixed: "Int32s",
    labels: "Int32s",
    belief: "Int32s",
    cell: int,
) -> None:
    """Combine the forecasts for a cell.

    Args:
        forecast: As of class_forecasts(), then those of heads.
        weight: Of every forecast, Q15, sum ONE.
        costs: (classes, classes), Q15: of answering the second when the label is the first, at most sqrt 2 either way.
        mixed: (classes,), becomes P(class), Q15.
        labels: As for class_forecasts().
        belief: Becomes GUESS to COUNT; in COUNT, quarters of labels, a prior has half its worth.
        cell: The cell.
    """
    mix(forecast, weight, mixed)
    cheapest(mixed, costs, belief)
    classes = len(mixed)
    nodes = len(labels) // MEMORIES
    behind = 0
    for i in range(MEMORIES * KINDS):
        behind += weight[i] * (labels[i // KINDS * nodes + cell] + HALF_WORTH[i % KINDS])
    for i in range(MEMORIES * KINDS, len(weight)):
        behind += weight[i] * min(labels[nodes + cell] + OWN_WORTH, FULL)
    behind = (behind >> 15) + 4
    guess = belief[GUESS]
    best = belief[COST]
    square = 0
    for label in range(classes):
        cost = costs[label * classes + guess] >> 1
        square += (mixed[label] >> 1) * (cost * cost >> 13)
    square = (min(max(0, (square >> 14) - ((best >> 1) * (best >> 1) >> 13)), ONE - 1) << 15) // behind << 2
    for i in range(len(weight)):
        if weight[i]:
            cost = 0
            for label in range(classes):
                cost += (forecast[i * classes + label] >> 1) * costs[label * classes + guess]
            cost = min(abs((cost >> 14) - best), ONE - 1)
            square += times(cost * cost >> 1, weight[i]) << 1
    belief[COST] = min(max(best, 0), ONE)
    belief[INTERVAL] = times(square_root(square) + 65536 // behind, WIDTH)
    belief[COUNT] = behind


def class_judge(loss: "Int32s", forecast: "Int32s", classes: int, label: int) -> None:
    """Multiply the losses of all forecasts by .995 and add half the Brier losses that a label causes."""
    for i in range(len(loss)):
        brier = 0
        for answer in range(classes):
            error = forecast[i * classes + answer]
            if answer == label:
                error = ONE - error
            error >>= 1
            brier += error * error >> 14
        loss[i] += brier - (loss[i] * 5 >> 10)


def class_count(counts: "UInt16s", labels: "Int32s", shape: "Int32s", cell: int, label: int) -> None:
    """Count a label at a cell, its predicted class, and all samples, in every memory. Arguments as for class_forecasts()."""
    classes = shape[CLASSES]
    nodes = shape[NODES]
    base = 0
    while base < len(labels):
        node = base + cell
        base += nodes
        while node < base:  # the cell, its class, all
            counts[node * classes + label] += 4
            labels[node] += 4
            if counts[node * classes + label] >= FULL // classes:
                fade(counts, node * classes, (node + 1) * classes, 1)
                total(counts, labels, classes, node, node + 1)
            if node < base - 1 - classes:
                node = base - 1 - classes + (cell >> shape[BITS])
            else:
                node = base - 1 if node < base - 1 else base


def total(counts: "array[int]", labels: "Int32s", classes: int, start: int, stop: int) -> None:
    """Compute `labels` of nodes start to stop - 1 from their counts."""
    for node in range(start, stop):
        known = 0
        for label in range(classes):
            known += counts[node * classes + label]
        labels[node] = known


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

    def observe(self, scores: "list[int]", cell: int) -> None:
        """Begin a round with scores in a cell."""
        observe(self.sums, self.totals, scores, cell)
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
        """Divide the counts of a memory, of all cells, predicted classes and samples, by 2^shift."""
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

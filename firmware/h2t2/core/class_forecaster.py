# The forecaster for many classes: what the labels of a cell were, a cell being a predicted class and how sure the model was.
# As in forecaster, counts in several memories beside several priors are forecasts, each weighed by its own past.
#
# What works on arrays stands in functions of arrays, for the simulator compiles them as they are.
from array import array

from .forecaster import FULL, fade, square_root, weigh
from .numbers import ONE, times
from .watch import MEMORIES, Watch

KINDS = 4  # priors: the mean of the cell's own scores, worth 1, 8 and 64 labels, and what the class's labels were, worth 1
BEHIND = (2, 16, 128, 2)  # half of that, in quarters
RECENT = 524288  # sum of a cell's scores, Q14, at which it is halved: its mean is that of the last 32 to 64
WIDTH = 22938  # .7 in Q15: of the interval


def likeliest(f) -> int:
    """The class of the largest score, the first of equals."""
    top = 0
    for k in range(len(f)):
        if f[k] > f[top]:
            top = k
    return top


def confidence(score: int, classes: int, bits: int) -> int:
    """The bin of the largest score, Q14: 2^bits of them between 1 / classes and 1."""
    return min(max((score * classes - 16384 << bits) // (16384 * (classes - 1)), 0), (1 << bits) - 1)


def observe(sums, totals, f, cell: int) -> None:
    """Scores `f`, Q14, seen in a cell: into the sums whose shares are the prior. sums: (cells, classes); totals: (cells,)."""
    at = cell * len(f)
    for k in range(len(f)):
        sums[at + k] += f[k]
        totals[cell] += f[k]
    if totals[cell] >= RECENT:
        totals[cell] = 0
        for k in range(len(f)):
            sums[at + k] >>= 1
            totals[cell] += sums[at + k]


def class_forecasts(counts, labels, sums, total: int, p, bits: int, classes: int, cell: int) -> None:
    """The MEMORIES x KINDS forecasts for a cell into `p`, (forecasts, classes), Q15.

    counts: (memories, nodes, classes) in quarters, none above FULL / classes; labels: (memories, nodes), their sums. Nodes are
    the cells, then the classes predicted, then all. total: of the cell's sums.
    """
    nodes = (classes << bits) + classes + 1
    for k in range(classes):
        prior = min((sums[cell * classes + k] << 10) // (total >> 5), ONE - 1) if total >= 32 else ONE // classes
        own = cell
        group = (classes << bits) + (cell >> bits)
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


def class_mean(p, weight, costs, mixed, labels, belief, nodes: int, classes: int, cell: int) -> None:
    """What the forecasts come to. mixed: (classes,) becomes P(class), Q15; belief: the class of least expected cost, that cost,
    the width of its interval (both Q15), and the labels behind it in quarters, a prior's share counted with half its worth.

    costs: (classes, classes) Q15, of saying the second when the label is the first, within sqrt 2 either way.
    """
    n = 0
    for i in range(len(weight)):
        n += weight[i] * (labels[i // KINDS * nodes + cell] + BEHIND[i % KINDS])
    n = (n >> 15) + 4
    for k in range(classes):
        x = 0
        for i in range(len(weight)):
            x += weight[i] * p[i * classes + k]
        mixed[k] = x >> 15
    best = guess = -1
    for j in range(classes):
        x = 0
        for k in range(classes):
            x += (mixed[k] >> 1) * costs[k * classes + j]
        x >>= 14
        if guess < 0 or x < best:
            best = x
            guess = j
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
    belief[0] = guess
    belief[1] = min(max(best, 0), ONE)
    belief[2] = times(square_root(square) + 65536 // n, WIDTH)
    belief[3] = n


def class_judge(loss, p, classes: int, label: int) -> None:
    """Add a label's Brier loss, halved, of every forecast, those before it fading by .995."""
    for i in range(len(loss)):
        x = 0
        for k in range(classes):
            y = p[i * classes + k]
            if k == label:
                y = ONE - y
            y >>= 1
            x += y * y >> 14
        loss[i] += x - (loss[i] * 5 >> 10)


def class_count(counts, labels, bits: int, classes: int, cell: int, label: int) -> None:
    """A label at a cell, its class predicted, and all, in every memory."""
    nodes = (classes << bits) + classes + 1
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
                n = base - 1 - classes + (cell >> bits)
            else:
                n = base - 1 if n < base - 1 else base


def total(counts, labels, classes: int, start: int, stop: int) -> None:
    """`labels` of nodes start to stop - 1 from their counts."""
    for n in range(start, stop):
        x = 0
        for k in range(classes):
            x += counts[n * classes + k]
        labels[n] = x


class ClassForecaster(Watch):
    """P(class) of a cell, learned from labels, and what the best answer to it would cost; told of every score.

    look() sets `guess`, `cost`, `width` (Q15) and `count` (quarters); learn() takes a label.
    """

    def __init__(self, bits: int, classes: int):
        Watch.__init__(self, classes << bits)
        self.bits = bits
        self.classes = classes
        self.nodes = nodes = (classes << bits) + classes + 1
        self.counts = array("H", [0] * (MEMORIES * nodes * classes))
        self.labels = array("i", [0] * (MEMORIES * nodes))
        self.sums = array("i", [0] * ((classes << bits) * classes))
        self.totals = array("i", [0] * (classes << bits))
        self.loss = array("i", [0] * (MEMORIES * KINDS))
        self.weight = array("i", self.loss)
        self.forecast = array("i", [0] * (MEMORIES * KINDS * classes))
        self.mixed = array("i", [0] * classes)
        self.belief = [0, 0, 0, 0]
        self.guess = self.cost = self.width = self.count = 0
        self.clear()

    def arrays(self):
        """As Policy.arrays."""
        yield self.counts, ((0, FULL // self.classes),)
        yield self.sums, ((0, RECENT),)
        yield self.loss, ((0, 1 << 23),)
        yield from Watch.arrays(self)

    def restored(self) -> None:
        """After a restore: what follows from the state is computed anew."""
        weigh(self.weight, self.loss)
        total(self.counts, self.labels, self.classes, 0, len(self.labels))
        total(self.sums, self.totals, self.classes, 0, len(self.totals))
        self.at = -1

    def clear(self) -> None:
        """Forget every label and every score."""
        Watch.clear(self)
        for counts in (self.counts, self.labels, self.sums, self.totals, self.loss):
            fade(counts, 0, len(counts), 30)
        weigh(self.weight, self.loss)
        self.at = -1  # the cell that `forecast` is of, -1: none

    def observe(self, f, cell: int) -> None:
        """A round begins, with scores in a cell."""
        observe(self.sums, self.totals, f, cell)
        self.at = -1
        self.see(cell)

    def _forecast(self, cell):
        """`forecast` for a cell, unless it is that already."""
        if self.at != cell:
            class_forecasts(
                self.counts, self.labels, self.sums, self.totals[cell], self.forecast, self.bits, self.classes, cell
            )  # fmt: skip
            self.at = cell

    def look(self, costs, cell: int) -> None:
        """What it believes of a cell. costs: (classes, classes), Q15, flat."""
        self._forecast(cell)
        class_mean(
            self.forecast, self.weight, costs, self.mixed, self.labels, self.belief, self.nodes, self.classes, cell
        )  # fmt: skip
        self.guess = self.belief[0]
        self.cost = self.belief[1]
        self.width = self.belief[2]
        self.count = self.belief[3]

    def fade(self, memory: int, shift: int) -> None:
        """As Watch.fade."""
        start = memory * self.nodes
        stop = start + self.nodes
        fade(self.counts, start * self.classes, stop * self.classes, shift)
        total(self.counts, self.labels, self.classes, start, stop)
        self.at = -1

    def learn(self, cell: int, label: int) -> None:
        """A label of a cell."""
        self._forecast(cell)
        class_judge(self.loss, self.forecast, self.classes, label)
        weigh(self.weight, self.loss)
        class_count(self.counts, self.labels, self.bits, self.classes, cell, label)
        self.at = -1

# The forecaster of samples with features for many classes. Beside the forecasts by the cell stand the distributions that the
# heads give, one for each learning rate. The Brier losses of all forecasts weigh them, as in class_forecaster.
from array import array

from .class_forecaster import KINDS, ClassForecaster, mix
from .class_heads import ClassHeads
from .forecaster import MEMORIES, fade
from .head import RATES
from .numbers import ONE

if 0:  # for type checkers
    from ..annotations import Iterator

FIRST = MEMORIES * KINDS  # index of the first forecast by heads
DOUBT, MAX_DOUBT = 64, 32768  # surprise of the labels, 1 and 512 in Q6; at the latter they show a drift


class ClassHeadForecaster(ClassForecaster):
    """Forecasts for samples with features. Before estimate() and learn(), `heads` must have the sample.

    Labels that the forecasts did not expect show a drift that the scores do not show. The surprise is the likelihood ratio of
    equal chances against the forecasts since the time that favours it most (Page's test); a label changes it at most eightfold.
    At MAX_DOUBT all memories fade.

    Attributes:
        heads: The learners.
        surprise: Likelihood ratio, Q6.
    """

    def __init__(self, bits: int, classes: int, heads: ClassHeads):
        self.heads = heads
        self.surprise = DOUBT
        ClassForecaster.__init__(self, bits, classes)
        self.loss = array("i", [0] * (FIRST + len(RATES)))
        self.weight = array("i", self.loss)
        self.forecast = array("i", [0] * (len(self.loss) * classes))
        self.derive()

    def see(self, sample: "list[int]") -> None:
        """Make a sample the current one. sample: As ClassHeads.see() takes it."""
        self.heads.see(sample)
        self.cell = -1

    def recall(self, at: int) -> None:
        """Make the sample of the ticket in slot `at` the current one."""
        self.heads.recall(at)
        self.cell = -1

    def clear(self) -> None:
        """Forget all labels and scores, in cells and heads."""
        self.clear_heads()
        ClassForecaster.clear(self)

    def clear_heads(self) -> None:
        """Forget what the heads have learned, and what all forecasts lost."""
        self.heads.clear()
        self.surprise = DOUBT
        fade(self.loss, 0, len(self.loss), 30)
        self.derive()

    def _forecast(self, cell: int) -> None:
        """Compute `forecast` for a cell unless it is current: by its labels, then by the heads for the current sample."""
        if self.cell != cell:
            ClassForecaster._forecast(self, cell)
            self.heads.predict(self.forecast, FIRST)

    def learn(self, cell: int, label: int) -> None:
        """Learn the label of the current sample, which is in a cell."""
        self._forecast(cell)
        self._doubt(label)
        ClassForecaster.learn(self, cell, label)
        self.heads.learn(label)

    def _doubt(self, label: int) -> None:
        """Update `surprise`. At MAX_DOUBT, let labels and losses of the past count less, audit again, and learn faster."""
        mix(self.forecast, self.weight, self.mixed)
        ratio = max(self.mixed[label] * len(self.mixed), ONE >> 3)
        self.surprise = max(DOUBT, (self.surprise << 14) // (ratio >> 1))
        if self.surprise >= MAX_DOUBT:
            self.surprise = DOUBT
            self.adapt_to_drift()
            fade(self.loss, 0, len(self.loss), 2)
            self.heads.quicken()

    def head_share(self) -> int:
        """Return the share of the forecasts' weight that the heads have, Q15."""
        return ONE - sum(self.weight[:FIRST])

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield from ClassForecaster.number_rows(self)
        yield self, "surprise", DOUBT, MAX_DOUBT
        yield from self.heads.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield from ClassForecaster.array_rows(self)
        yield from self.heads.array_rows()

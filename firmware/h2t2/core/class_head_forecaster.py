# The forecaster of samples with features for many classes. Beside the forecasts by the cell stand the distributions that the
# heads give, one for each learning rate. The Brier losses of all forecasts weigh them, as in class_forecaster.
from array import array

from .class_forecaster import KINDS, ClassForecaster
from .class_heads import ClassHeads
from .forecaster import fade
from .head import RATES
from .numbers import ONE
from .watch import MEMORIES

if 0:  # for type checkers
    from collections.abc import Iterator

FIRST = MEMORIES * KINDS  # index of the first forecast by heads


class ClassHeadForecaster(ClassForecaster):
    """Forecasts for samples with features. Before estimate() and learn(), `heads` must have the sample.

    Attributes:
        heads: The learners.
    """

    def __init__(self, bits: int, classes: int, heads: ClassHeads):
        self.heads = heads
        ClassForecaster.__init__(self, bits, classes)
        self.loss = array("i", [0] * (FIRST + len(RATES)))
        self.weight = array("i", self.loss)
        self.forecast = array("i", [0] * (len(self.loss) * classes))
        self.derive()

    def see(self, sample: "array[int]") -> None:
        """Make a sample the current one. sample: As ClassHeads.see() takes it."""
        self.heads.see(sample)
        self.cell = -1

    def recall(self, at: int) -> None:
        """Make the sample of the ticket in slot `at` the current one."""
        self.heads.recall(at)
        self.cell = -1

    def clear(self) -> None:
        """As ClassForecaster.clear."""
        self.heads.clear()
        ClassForecaster.clear(self)

    def clear_heads(self) -> None:
        """Forget what the heads have learned, and what all forecasts lost."""
        self.heads.clear()
        fade(self.loss, 0, len(self.loss), 30)
        self.derive()

    def _forecast(self, cell: int) -> None:
        """As ClassForecaster._forecast, for the current sample."""
        if self.cell != cell:
            ClassForecaster._forecast(self, cell)
            self.heads.predict(self.forecast, FIRST)

    def learn(self, cell: int, label: int) -> None:
        """Learn the label of the current sample, which is in a cell."""
        ClassForecaster.learn(self, cell, label)
        self.heads.learn(label)

    def head_share(self) -> int:
        """Return the share of the forecasts' weight that the heads have, Q15."""
        share = ONE
        for i in range(FIRST):
            share -= self.weight[i]
        return share

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield from ClassForecaster.number_rows(self)
        yield from self.heads.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield from ClassForecaster.array_rows(self)
        yield from self.heads.array_rows()

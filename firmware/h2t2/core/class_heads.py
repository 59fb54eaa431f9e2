# Heads for many classes: for each class, heads that tell it from all others. For each learning rate, their outputs divided by
# their sum are a distribution over the classes.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .head import RATES, Heads

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator


def normalise(forecast: "Int32s", first: int, classes: int) -> None:
    """Divide the outputs of each rate's heads by their sum.

    Args:
        forecast: (forecasts, classes). Its last rows, one for each rate, hold outputs, Q15, and become distributions, Q15.
        first: Index of the first of these rows.
        classes: Number of classes.
    """
    at = first * classes
    while at < len(forecast):
        total = 0
        for label in range(classes):
            total += forecast[at + label]
        for label in range(classes):
            forecast[at + label] = (forecast[at + label] << 15) // total
        at += classes


class ClassHeads:
    """A Heads for each class, all of which learn each label. They share the stored features.

    Attributes:
        of_class: The Heads of each class.
        model: As of Heads.
    """

    def __init__(self, classes: int, features: int, window: int):
        first = Heads(features, window)
        self.of_class = [first]
        for _ in range(classes - 1):
            self.of_class.append(Heads(features, window, first))
        self.sample = array("h", [0] * (1 + features))  # scratch of see()
        self.model = 0

    def clear(self) -> None:
        """Forget all labels."""
        for label in range(len(self.of_class)):
            self.of_class[label].clear()

    def see(self, sample: "list[int]") -> None:
        """Make a sample the current one: the scores of all classes, Q14, then its features, Q5, -128..127."""
        own = self.sample
        classes = len(self.of_class)
        for i in range(1, len(own)):
            own[i] = sample[classes + i - 1]
        for label in range(classes):
            own[0] = min(sample[label] >> 6, 255)
            self.of_class[label].see(own)

    def keep(self, at: int) -> None:
        """Store the current sample for the ticket in slot `at`."""
        for label in range(len(self.of_class)):
            self.of_class[label].keep(at)

    def recall(self, at: int) -> None:
        """Make the sample of the ticket in slot `at` the current one."""
        for label in range(len(self.of_class)):
            self.of_class[label].recall(at)

    def predict(self, forecast: "Int32s", first: int) -> None:
        """Compute a distribution over the classes for each rate. Arguments as for normalise()."""
        classes = len(self.of_class)
        for label in range(classes):
            heads = self.of_class[label]
            heads.predict()
            for head in range(len(RATES)):
                forecast[(first + head) * classes + label] = heads.g[head]
        normalise(forecast, first, classes)

    def learn(self, label: int) -> None:
        """Learn the class of the current sample, for which predict() was called."""
        for own in range(len(self.of_class)):
            self.of_class[own].learn(1 if own == label else 0)

    def quicken(self) -> None:
        """Let the heads of all classes take longer steps again, as after a drift."""
        for label in range(len(self.of_class)):
            self.of_class[label].quicken()

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        for heads in self.of_class:
            yield from heads.number_rows()
        yield self, "model", 0, (1 << 28) - 1

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows(); the features only once."""
        first = self.of_class[0]
        for heads in self.of_class:
            for row in heads.array_rows():
                if heads is first or row[0] is not first.rows:
                    yield row

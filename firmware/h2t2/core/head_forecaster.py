# The forecaster of samples with features. Beside the forecasts by the bin stands the output of each head. The Brier losses of
# all forecasts weigh them, as in forecaster.
from array import array

from .forecaster import BINS, COUNT, MEAN, Forecaster, fade
from .head import RATES, Heads
from .numbers import ONE

if 0:  # for type checkers
    from ..annotations import Int16s, Iterator

DOUBT, MAX_DOUBT = 512, 32768  # surprise of the labels, 1 and 64 in Q9; at the latter they show a drift


class HeadForecaster(Forecaster):
    """Forecasts for samples with features. Before estimate() and learn(), `heads` must have the sample.

    Labels that the forecasts did not expect show a drift that the scores do not show. The surprise is the likelihood ratio of
    an even chance against the forecasts since the time that favours it most (Page's test). At MAX_DOUBT all memories fade.

    Attributes:
        heads: The learners.
        surprise: Likelihood ratio, Q9.
    """

    def __init__(self, bits: int, heads: Heads, prior: "list[int] | None" = None, further: int = 0):
        """further: Forecasts beside that of each head. Other arguments as for Forecaster."""
        self.heads = heads
        self.surprise = DOUBT
        Forecaster.__init__(self, bits, prior, len(RATES) + further)

    def see(self, sample: "Int16s") -> None:
        """Make a sample the current one. sample: As Heads.see() takes it."""
        self.heads.see(sample)
        self.bin = -1

    def recall(self, at: int) -> None:
        """Make the sample of the ticket in slot `at` the current one."""
        if self.heads.recall(at):
            self.bin = -1

    def clear(self) -> None:
        """Forget all labels and scores, in bins and heads."""
        self.heads.clear()
        self.surprise = DOUBT
        Forecaster.clear(self)

    def clear_heads(self) -> None:
        """Forget what the heads have learned, and what their forecasts lost."""
        self.heads.clear()
        self.surprise = DOUBT
        fade(self.loss, 0, len(self.loss), 30)
        self.derive()

    def _forecast(self, k: int) -> None:
        """Compute `forecast` for the current sample: by the labels of bin k, then the output of each head."""
        heads = self.heads
        heads.predict()
        for head in range(len(RATES)):
            self.forecast[BINS + head] = heads.g[head]
        Forecaster._forecast(self, k)

    def estimate(self, k: int) -> None:
        """Set `belief` for the current sample, which is in bin k."""
        Forecaster.estimate(self, k)
        self.belief[COUNT] >>= 2  # a head uses each label in more ways than a bin, and may still learn: worth more offloads

    def learn(self, k: int, label: int) -> None:
        """Learn the label of the current sample, which is in bin k."""
        if self.bin != k:
            Forecaster.estimate(self, k)
        mean = self.belief[MEAN]
        self._doubt(mean if label else ONE - mean)
        Forecaster.learn(self, k, label)
        self.heads.learn(label)

    def _doubt(self, p: int) -> None:
        """Update `surprise`. p: The probability, Q15, that the forecasts gave to the label."""
        self.surprise = surprise = max(DOUBT, (self.surprise << 14) // max(p, 64))
        if surprise >= MAX_DOUBT:
            self.doubt_all()

    def doubt_all(self) -> None:
        """Let labels and losses of the past count less, audit again, and learn faster."""
        self.surprise = DOUBT
        self.adapt_to_drift()
        fade(self.loss, 0, len(self.loss), 2)
        self.heads.quicken()

    def head_share(self) -> int:
        """Return the share of the forecasts' weight that the heads have, Q15."""
        return ONE - sum(self.weight[:BINS])

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield from Forecaster.number_rows(self)
        yield self, "surprise", DOUBT, MAX_DOUBT
        yield from self.heads.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield from Forecaster.array_rows(self)
        yield from self.heads.array_rows()

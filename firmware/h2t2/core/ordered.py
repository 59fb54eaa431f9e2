# The adaptive policy for samples that come in the order of time: the same decisions, by a forecaster whose heads read the past.
# It also asks for the sake of the samples that follow.
from array import array

from . import defaults
from .adaptive import Adaptive, asking
from .forecaster import BINS, COUNT, FULL, HIGH, KINDS, LOW, P, count, fade, forecasts
from .head_forecaster import HeadForecaster
from .numbers import ONE
from .past import FIRST, INPUTS, PAST, ROW, TRACE, Past, answered, follow_up
from .policy import FIELDS, IS_BOARD, OFFLOAD, checked_integer

if 0:  # for type checkers
    from ..annotations import Any, Int32s, Iterator


CELL_BITS = 4  # outputs of a head have 2^CELL_BITS cells
MEMORY = 1  # the counts of the cells fade when this memory of the bins does


class PastForecaster(HeadForecaster):
    """A HeadForecaster whose heads read the past.

    Where scores tell more than a head can, as where all of them are near one half, labels correct the output of the quickest
    head: KINDS forecasts by cells of this output.

    Attributes:
        cell_labels, cell_events: Counts of labels, as those of Forecaster, in one memory.
        cell: Index of the current sample's cell.
    """

    if 0:  # for type checkers
        heads: Past

    def __init__(self, bits: int, heads: Past, prior: "list[int] | None" = None):
        """Arguments as for HeadForecaster."""
        self.cell_labels = array("H", bytes(4 << CELL_BITS))
        self.cell_events = array("H", self.cell_labels)
        self.cell = 0
        HeadForecaster.__init__(self, bits, heads, prior, KINDS)

    def _forecast(self, k: int) -> None:
        """Compute `forecast` for bin k, then the forecasts by the cell that the quickest head's output falls into."""
        self.heads.see_score(k, self.prior[k])
        HeadForecaster._forecast(self, k)
        forecast = self.forecast
        forecast[FIRST] = forecast[BINS]
        self.cell = cell = (forecast[BINS] >> 15 - CELL_BITS) + (1 << CELL_BITS)
        forecasts(self.cell_labels, self.cell_events, cell, forecast, FIRST, CELL_BITS, 1)

    def learn(self, k: int, label: int) -> None:
        """Learn the label of the current sample, in bin k and in the cell of the quickest head."""
        HeadForecaster.learn(self, k, label)
        count(self.cell_labels, self.cell_events, self.cell, CELL_BITS, 1, label)

    def clear(self) -> None:
        """Forget all labels, scores and the past."""
        self._fade_cells(15)
        HeadForecaster.clear(self)

    def fade(self, memory: int, shift: int) -> None:
        """Fade a memory of the bins, and the cells with MEMORY."""
        HeadForecaster.fade(self, memory, shift)
        if memory == MEMORY:
            self._fade_cells(shift)

    def _fade_cells(self, shift: int) -> None:
        fade(self.cell_labels, 0, len(self.cell_labels), shift)
        fade(self.cell_events, 0, len(self.cell_events), shift)

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield from HeadForecaster.array_rows(self)
        size = len(self.cell_labels)
        yield self.cell_labels, 0, size, 0, FULL, 0
        yield self.cell_events, 0, size, 0, FULL, size


class Ordered(Adaptive):
    """Adaptive with a past. A late label counts at the age that it has, a lost one leaves no trace."""

    kind = 9
    if 0:  # for type checkers
        forecaster: PastForecaster

    def __init__(self, bits: int = defaults.BITS, **options: "Any"):
        """bits: 1..8. Other arguments as for Adaptive."""
        checked_integer("bits", bits, 1, 8)
        Adaptive.__init__(self, bits, **options)

    def new_forecaster(self, bits: int, prior: "list[int] | None", window: int) -> PastForecaster:
        """Return a forecaster whose heads read the past. Arguments as for Adaptive.new_forecaster()."""
        return PastForecaster(bits, Past(bits, window), prior)

    def estimate(self, k: int) -> "Int32s":
        """Return the belief about bin k. Its interval is 0 to 1 where an answer saves more than it costs: the policy asks."""
        belief = Adaptive.estimate(self, k)
        heads = self.forecaster.heads
        event = belief[P]
        saving = follow_up(heads.weights, self.forecaster.weight, heads.x, heads.z, heads.g, self.effective)
        if answered(event, self.effective) + saving > asking(event, self.effective):
            belief[LOW] = 1
            belief[HIGH] = ONE - 1
            belief[COUNT] = 0
        return belief

    def steps(self) -> int:
        """Return 256: heads use all bits of a score."""
        return 256

    def reading(self, output: "Any", level: int) -> "Any":
        """Return the score in 256ths."""
        return level

    def bin(self, level: int) -> int:
        """Return the bin of a score in 256ths."""
        return level >> 8 - self.bits

    def pass_time(self, ms: int) -> None:
        """Let the past fade by the time since the sample before."""
        self.forecaster.heads.pass_time(ms)

    def report(self) -> "dict[str, Any]":
        """Return the share of the forecasts' weight that the heads have, Q15, and what the best head has learned, Q10.

        That is its weights of the traces, of the age of the last answer and of the constant.
        """
        forecaster = self.forecaster
        heads = forecaster.heads
        best = max(range(len(heads.z)), key=lambda head: forecaster.weight[BINS + head])
        at = best * INPUTS + TRACE
        learned = [weight >> 10 for weight in heads.weights[at : at + PAST - TRACE + 1]]
        return dict(Adaptive.report(self), past_share=forecaster.head_share(), past=learned)

    def decide(self, level: int) -> int:
        """Play a round by the past and the score, in 256ths, 0..255, whose first bits are its bin. Return 0, 1 or OFFLOAD."""
        if not 0 <= level <= 255:
            raise ValueError("score %r is not in 0..255" % level)
        self.forecaster.heads.begin(level)
        self.forecaster.bin = -1
        action = Adaptive.decide(self, level >> 8 - self.bits)
        if action == OFFLOAD:
            self.forecaster.heads.keep_past(self.ticket % self.tickets.window)
        return action

    def likely(self, level: int) -> int:
        """Return the class to act on without an offload, as if a score, in 256ths, were the current sample's."""
        heads = self.forecaster.heads
        heads.show_current()
        heads.level = level
        self.forecaster.bin = -1
        return Adaptive.likely(self, level >> 8 - self.bits)

    def _teach(self, at: int, label: int) -> None:
        """Teach the pairs and the bins a label, and the heads with the past that the ticket has stored."""
        self.forecaster.recall(at // FIELDS)
        Adaptive._teach(self, at, label)

    if not IS_BOARD:

        def columns(self, ticket: int) -> "dict[str, tuple[array[int], int]]":
            """Return the columns of a ticket, with the round of its sample, from which its age follows."""
            return dict(Adaptive.columns(self, ticket), clock=(self.forecaster.heads.rounds, ticket % self.tickets.window))

        def lesson(self, ticket: int) -> "dict[str, Any]":
            """Return what a label teaches, with the past of the sample."""
            at = ticket % self.tickets.window * ROW
            return dict(Adaptive.lesson(self, ticket), past=tuple(self.forecaster.heads.rows[at : at + ROW]))

        def show(self, ticket: int, lesson: "dict[str, Any]") -> None:
            """Make a lesson's past that of the sample which is forecast."""
            heads = self.forecaster.heads
            heads.show_current()
            self.forecaster.bin = -1
            if ticket:
                heads.slot = ticket % self.tickets.window
                heads.level = lesson["past"][PAST] + 128
                for i in range(PAST):
                    heads.x[i] = lesson["past"][i]

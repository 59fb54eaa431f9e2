# The adaptive policy for samples with features: the same decisions, by a forecaster that has heads.
from array import array

from . import defaults
from .adaptive import Adaptive
from .head import MAX_FEATURES, Heads
from .head_forecaster import HeadForecaster
from .head_saving import BINS, SAVED, SUMS, correct, count_saving, period
from .policy import FIELDS, IS_BOARD, OFFLOAD, checked_integer

if 0:  # for type checkers
    from ..annotations import Any, Sequence


class AdaptiveHead(Adaptive):
    """Adaptive with heads: decide() takes a sample of 1 + features integers.

    sample[0] is the score of class 1 in 1/256, 0..255; its first bits are the bin. The others are features in 1/32, -128..127.
    Whitened features (mean 0, variance 1, uncorrelated) are learned fastest.

    Attributes:
        saving: Sums of head_saving since this object was made. They are not part of the state, as other counters of a start.
        counted: For each outstanding ticket what head_saving.count_saving() returned.
        sample: An array("h") to fill for decide(), which copies another sample into it.
    """

    kind = 10
    if 0:  # for type checkers
        forecaster: HeadForecaster

    def __init__(
        self, features: int, bits: int = defaults.BITS, *, prior: "list[int] | None" = None, window: int = defaults.WINDOW,
        **options: "Any",
    ):  # fmt: skip
        """features: their number, 1..40. bits: 1..8. Other arguments as for Adaptive."""
        checked_integer("features", features, 1, MAX_FEATURES)
        checked_integer("bits", bits, 1, 8)
        self.features = features
        Adaptive.__init__(self, bits, window=window, prior=prior, **options)
        self.saving = array("i", [0] * (BINS + (SUMS << bits)))
        self.counted = array("i", [0] * window)
        self.sample = array("h", [0] * (1 + features))

    def new_forecaster(self, bits: int, prior: "list[int] | None", window: int) -> HeadForecaster:
        """Return a forecaster of the bins with heads. Arguments as for Adaptive.new_forecaster()."""
        return HeadForecaster(bits, Heads(self.features, window), prior)

    def reading(self, output: "Any", level: int) -> "Any":
        """Return the local model's output: the score and the features."""
        return output

    def bin(self, sample: "Sequence[int]") -> int:
        """Return the bin of the score, the first number of a sample."""
        return sample[0] >> 8 - self.bits

    def _see(self, sample: "Sequence[int]") -> None:
        """Make a sample the current one."""
        own = self.sample
        if sample is not own:
            for i in range(len(own)):
                own[i] = sample[i]
        self.forecaster.see(own)

    def decide(self, sample: "Sequence[int]") -> int:  # type: ignore[override]
        """Play a round for a sample and return 0 or 1 (act on it), or OFFLOAD (then `ticket` is set)."""
        self._see(sample)
        forecaster = self.forecaster
        k = sample[0] >> 8 - self.bits
        action = Adaptive.decide(self, k)
        counted = count_saving(self.saving, k, forecaster.belief, self.effective)
        if action == OFFLOAD:
            at = self.ticket % self.tickets.window
            forecaster.heads.keep(at)
            self.counted[at] = counted
        return action

    def likely(self, sample: "Sequence[int]") -> int:  # type: ignore[override]
        """Return the class to act on without an offload, by the score and the features of a sample."""
        self._see(sample)
        return Adaptive.likely(self, sample[0] >> 8 - self.bits)

    def _teach(self, at: int, label: int) -> None:
        """Teach the pairs and the bins a label, and the heads with the features that the ticket has stored."""
        slot = at // FIELDS
        self.forecaster.recall(slot)
        Adaptive._teach(self, at, label)
        correct(self.saving, self.counted[slot], label, self.tickets.slots, at, self.effective)

    def adopt(self, model: int) -> None:
        """Continue with the features of a local model, by its number, 0..2^28 - 1. The heads of another model begin anew."""
        heads = self.forecaster.heads
        if heads.model != model:
            if heads.model:
                self.forecaster.clear_heads()
            heads.model = model

    def settings(self) -> "tuple[int, ...]":
        """Return the settings of the policy without heads, and the number of features."""
        return Adaptive.settings(self) + (self.features,)

    def report(self) -> "dict[str, int]":
        """Return the share of the forecasts' weight that the heads have, Q15, and what they saved, in thousandths.

        Under a limit for misses costs are raised, and what heads save is unknown.
        """
        entries = dict(Adaptive.report(self), head_share=self.forecaster.head_share())
        if not self.limited:
            saved = self.saving[SAVED] + period(self.saving, self.delta_fp, self.delta_fn)
            entries["head_saved"] = saved * 1000 >> 10
        return entries

    if not IS_BOARD:

        def columns(self, ticket: int) -> "dict[str, tuple[array[int], int]]":
            """Return the columns of a ticket, with what its round counted for head_saving."""
            return dict(Adaptive.columns(self, ticket), counted=(self.counted, ticket % self.tickets.window))

        def lesson(self, ticket: int) -> "dict[str, Any]":
            """Return what a label teaches, with the score, the features and the local model's number."""
            heads = self.forecaster.heads
            sample = heads.sample(ticket % self.tickets.window)
            return dict(Adaptive.lesson(self, ticket), features=sample, model=heads.model)

        def show(self, ticket: int, lesson: "dict[str, Any]") -> None:
            """Make a lesson's sample the current one."""
            self.forecaster.see(lesson["features"])
            self.forecaster.heads.slot = ticket % self.tickets.window if ticket else -1

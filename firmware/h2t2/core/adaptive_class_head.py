# The adaptive policy for more than two classes and samples with features: the same decisions, by a forecaster that has heads.
from . import defaults
from .adaptive_classes import AdaptiveClasses
from .class_head_forecaster import ClassHeadForecaster
from .class_heads import ClassHeads
from .head import MAX_FEATURES
from .policy import IS_BOARD, OFFLOAD, checked_integer

if 0:  # for type checkers
    from ..annotations import Any


class AdaptiveClassHead(AdaptiveClasses):
    """AdaptiveClasses with heads: decide() takes a sample of K + features integers.

    The first K are the scores of all classes, Q14, which sum to at most 32767. The others are features in 1/32, -128..127.
    Whitened features (mean 0, variance 1, uncorrelated) are learned fastest.

    Attributes:
        scores: Of the current sample, Q14.
    """

    kind = 8
    if 0:  # for type checkers
        forecaster: ClassHeadForecaster

    def __init__(
        self, features: int, costs: "list[list[int]]", bits: int = defaults.BITS, *, window: int = defaults.WINDOW,
        **options: "Any",
    ):  # fmt: skip
        """features: their number, 1..40. Other arguments as for AdaptiveClasses."""
        checked_integer("features", features, 1, MAX_FEATURES)
        self.features = features
        AdaptiveClasses.__init__(self, costs, bits, window=window, **options)
        self.scores = [0] * self.classes

    def new_forecaster(self, bits: int, window: int) -> ClassHeadForecaster:
        """Return a forecaster of the cells with heads for each class. Arguments as for the class."""
        return ClassHeadForecaster(bits, self.classes, ClassHeads(self.classes, self.features, window))

    def _see(self, sample: "list[int]") -> None:
        """Make a sample the current one."""
        self._copy_scores(sample)
        self.forecaster.see(sample)

    def _copy_scores(self, sample: "list[int]") -> None:
        """Set `scores`."""
        for i in range(len(self.scores)):
            self.scores[i] = sample[i]

    def bin(self, sample: "list[int]") -> int:
        """Return the bin of the confidence that the sample's scores give."""
        self._copy_scores(sample)
        return AdaptiveClasses.bin(self, self.scores)

    def decide(self, sample: "list[int]") -> int:
        """Play a round for a sample and return the class to act on, or OFFLOAD (then `ticket` is set)."""
        self._see(sample)
        action = AdaptiveClasses.decide(self, self.scores)
        if action == OFFLOAD:
            self.forecaster.heads.keep(self.ticket % self.tickets.window)
        return action

    def likely(self, sample: "list[int]") -> int:
        """Return the class to act on without an offload, by the scores and the features of a sample."""
        self._see(sample)
        return AdaptiveClasses.likely(self, self.scores)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """Learn the label of an offload: the heads learn it from the features that the ticket has stored."""
        self.forecaster.recall(ticket % self.tickets.window)
        return AdaptiveClasses.learn(self, ticket, label, beta)

    def adopt(self, model: int) -> None:
        """Continue with the features of a local model, by its number, 0..2^28 - 1. The heads of another model begin anew."""
        heads = self.forecaster.heads
        if heads.model != model:
            if heads.model:
                self.forecaster.clear_heads()
            heads.model = model

    def settings(self) -> "tuple[int, ...]":
        """Return the settings of the policy without heads, and the number of features."""
        return AdaptiveClasses.settings(self) + (self.features,)

    def report(self) -> "dict[str, int]":
        """Return what the limit reports, and the share of the forecasts' weight that the heads have, Q15."""
        return dict(AdaptiveClasses.report(self), head_share=self.forecaster.head_share())

    if not IS_BOARD:

        def lesson(self, ticket: int) -> "dict[str, Any]":
            """Return what a label teaches, with the sample. Its scores have as many bits as the heads read."""
            heads = self.forecaster.heads
            samples = [own.sample(ticket % self.tickets.window) for own in heads.of_class]
            features = tuple([sample[0] << 6 for sample in samples]) + samples[0][1:]
            return dict(AdaptiveClasses.lesson(self, ticket), features=features, model=heads.model)

        def show(self, ticket: int, lesson: "dict[str, Any]") -> None:
            """Make a lesson's sample the current one, in every class's heads."""
            self.forecaster.see(lesson["features"])
            for own in self.forecaster.heads.of_class:
                own.slot = ticket % self.tickets.window if ticket else -1

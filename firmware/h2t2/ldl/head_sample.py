# What a policy with heads reads of an LDL: the score, or the scores of all classes, and the features.
from array import array

from .ldl import Ldl

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Callable


class HeadSample(Ldl):
    """An LDL whose run() gives a sample of AdaptiveHead or AdaptiveClassHead, in one array that every call fills again.

    Attributes:
        model: The LDL that gives the features.
        first: Index of the first feature in a sample.
        context: Returns the numbers that the application adds to the model's features, in 1/32.
        complain: Called with "context" and an exception of it; the numbers are 0 then.
    """

    def __init__(
        self,
        ldl: "Any",
        features: int,
        added: int,
        context: "Callable[[], Any] | None",
        complain: "Callable[[str, Exception], object]",
    ) -> None:
        """ldl: the model, or its ClassScores; its first `features` - `added` features are used. features: of the policy.

        Raises:
            ValueError: The model gives fewer features, or there is no context for the numbers to be added.
        """
        self.model = model = getattr(ldl, "ldl", ldl)
        self.first = 1 if model is ldl else len(ldl.scores)
        self.own = features - added
        if not 0 <= self.own <= model.features:
            raise ValueError(
                "a head of %d features, %d of them from context(): the local model gives %d" % (features, added, model.features)
            )
        if added and not context:
            raise ValueError("context = %d: the app has no function context()" % added)
        self.ldl = ldl
        self.input_size = ldl.input_size
        self.sample = array("h", [0] * (self.first + features))
        self.context = context if added else None
        self.complain = complain

    def input_quantisation(self) -> tuple[float, int]:
        scale, zero_point = self.ldl.input_quantisation()
        return scale, zero_point

    def run(self, x: "Any") -> "array[int]":
        """int8 input to the score, 0..255, or the scores of all classes, Q14, and the features, -128..127."""
        sample = self.sample
        q = self.ldl.run(x)
        first = self.first
        if first == 1:
            sample[0] = self.ldl.level(q)
        else:
            for n in range(first):
                sample[n] = q[n]
        arena = self.model.arena
        at = self.model.features_at
        for n in range(self.own):
            sample[first + n] = arena[at + n] - 128
        if self.context:
            self._add(self.context)
        return sample

    def _add(self, context: "Callable[[], Any]") -> None:
        """Append the numbers of the application."""
        sample = self.sample
        start = n = self.first + self.own
        try:
            added = context()
            if len(added) != len(sample) - n:
                raise ValueError("context() returned %d numbers, want %d" % (len(added), len(sample) - n))
            for value in added:
                sample[n] = min(max(int(value), -128), 127)
                n += 1
        except Exception as error:  # the app's own program
            self.complain("context", error)
            for n in range(start, len(sample)):
                sample[n] = 0

    def level(self, q: "Any") -> int:
        score: int = q[0]
        for n in range(1, self.first):
            score = max(score, q[n])
        return score if self.first == 1 else min(score >> 6, 255)

# What a policy with a head reads of an LDL: the score and the features, in place of the score alone.
from array import array

from .ldl import Ldl

if 0:  # for type checkers: MicroPython compiles nothing here
    from collections.abc import Callable
    from typing import Any


class HeadSample(Ldl):
    """An LDL whose run() gives a sample of AdaptiveHead, in one array that every call fills again.

    Attributes:
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
        """ldl: the model, the first `features` - `added` of whose features are used. features: of the policy.

        Raises:
            ValueError: The model gives fewer features, or there is no context for the numbers to be added.
        """
        self.own = features - added
        if not 0 <= self.own <= ldl.features:
            raise ValueError(
                "a head of %d features, %d of them from context(): the local model gives %d" % (features, added, ldl.features)
            )
        if added and not context:
            raise ValueError("context = %d: the app has no function context()" % added)
        self.ldl = ldl
        self.input_size = ldl.input_size
        self.sample = array("h", [0] * (1 + features))
        self.context = context if added else None
        self.complain = complain

    def input_quantisation(self) -> tuple[float, int]:
        scale, zero_point = self.ldl.input_quantisation()
        return scale, zero_point

    def run(self, x: "Any") -> "array[int]":
        """int8 input to the score, 0..255, and the features, -128..127."""
        sample = self.sample
        sample[0] = self.ldl.level(self.ldl.run(x))
        arena = self.ldl.arena
        at = self.ldl.features_at
        for n in range(self.own):
            sample[n + 1] = arena[at + n] - 128
        if self.context:
            self._add(self.context)
        return sample

    def _add(self, context: "Callable[[], Any]") -> None:
        """Append the numbers of the application."""
        sample = self.sample
        n = self.own + 1
        try:
            added = context()
            if len(added) != len(sample) - n:
                raise ValueError("context() returned %d numbers, want %d" % (len(added), len(sample) - n))
            for value in added:
                sample[n] = min(max(int(value), -128), 127)
                n += 1
        except Exception as error:  # the app's own program
            self.complain("context", error)
            for n in range(self.own + 1, len(sample)):
                sample[n] = 0

    def level(self, q: "Any") -> int:
        score: int = q[0]
        return score

    def bin(self, q: "Any") -> "Any":
        """The sample unchanged: the policy computes its own bin from it."""
        return q

# What a policy with a head reads of an LDL: the score and the features, in place of the score alone.
from array import array

from .ldl import Ldl

if 0:  # for type checkers: MicroPython compiles nothing here
    from collections.abc import Callable
    from typing import Any


class HeadSample(Ldl):
    """An LDL whose run() gives a sample of AdaptiveHead, in one array that every call fills again.

    Attributes:
        context: Returns the numbers that the application adds to the features, in 1/32; None: it adds none.
    """

    def __init__(self, ldl: Ldl, features: int) -> None:
        """ldl: the model. features: of the policy; those that the model does not give come from `context`.

        Raises:
            ValueError: The model gives more features.
        """
        if features < ldl.features:
            raise ValueError("a model of %d features, and a policy of %d" % (ldl.features, features))
        self.ldl = ldl
        self.input_size = ldl.input_size
        self.sample = array("h", [0] * (1 + features))
        self.context: "Callable[[], Any] | None" = None

    def input_quantisation(self) -> tuple[float, int]:
        return self.ldl.input_quantisation()

    def run(self, x: "Any") -> "array[int]":
        """int8 input to the score, 0..255, and the features, -128..127. ValueError for a context of another length."""
        sample = self.sample
        sample[0] = self.ldl.level(self.ldl.run(x))
        n = self.ldl.features
        for i in range(n):
            sample[i + 1] = self.ldl.feature(i)
        if n + 1 < len(sample):
            added = self.context() if self.context else ()
            if len(added) != len(sample) - n - 1:
                raise ValueError("context() returned %d numbers, want %d" % (len(added), len(sample) - n - 1))
            for value in added:
                n += 1
                sample[n] = min(max(int(value), -128), 127)
        return sample

    def level(self, q: "Any") -> int:
        score: int = q[0]
        return score

    def bin(self, q: "Any") -> "Any":
        """The sample unchanged: the policy computes its own bin from it."""
        return q

# What a policy for many classes reads of an LDL: the scores of all classes, in place of one event's.
from array import array

from .ldl import Ldl

FULL = 32768  # a policy takes scores, Q14, whose sum is less


class ClassScores(Ldl):
    """An LDL whose run() gives the scores of all classes, Q14, in one array that every call fills again.

    ldl: the model. classes: how many the policy decides between. ValueError where the model has another number of outputs.
    """

    def __init__(self, ldl: Ldl, classes: int) -> None:
        if ldl.classes != classes:
            raise ValueError("a model of %d outputs, and costs for %d classes" % (ldl.classes, classes))
        self.ldl = ldl
        self.input_size = ldl.input_size
        self.scores = array("i", [0] * classes)

    def input_quantisation(self) -> tuple[float, int]:
        return self.ldl.input_quantisation()

    def run(self, x: object) -> "array[int]":
        """int8 input to the scores, Q14, each in steps of 1/256. A sum of 2 or more is scaled down to 1."""
        self.ldl.run(x)
        scores = self.scores
        total = 0
        for n in range(len(scores)):
            scores[n] = self.ldl.score_of(n) << 6
            total += scores[n]
        if total >= FULL:
            for n in range(len(scores)):
                scores[n] = (scores[n] << 14) // total
        return scores

    def level(self, q: "array[int]") -> int:
        largest: int = max(q)
        return min(largest >> 6, 255)

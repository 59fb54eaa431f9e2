# Many classes: what a policy for them reads of an LDL, every output's score, in place of one event's.
from array import array

FULL = 32768  # scores, Q14, sum to less: what a policy takes


class Classes:
    """An LDL whose `run` gives the scores of all its classes, Q14, in an array of its own, used again every time.

    ldl: Int8Model or TFLiteModel. classes: how many the policy decides between. ValueError where the model has not as many.
    """

    def __init__(self, ldl, classes):
        if getattr(ldl, "classes", 1) != classes:
            raise ValueError("a model of %d outputs, and costs for %d classes" % (getattr(ldl, "classes", 1), classes))
        self.ldl = ldl
        self.input_size = ldl.input_size
        self.scores = array("i", [0] * classes)

    def input_quantisation(self) -> tuple:
        """As the model's."""
        return self.ldl.input_quantisation()

    def run(self, x):
        """int8 input to the scores, Q14, each in steps of 1/256; scaled down to a sum of 1 where they would be 2 or more."""
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

    def bin(self, scores):
        """The scores themselves: the policy makes its own bin of them."""
        return scores

# How often a question gets an answer in time: one that gets none costs beta too, so a question costs beta / P(answer).
from array import array

from .numbers import ONE

if 0:  # for type checkers
    from collections.abc import Iterator

BITS = 4  # bins of so many bits have counts of their own
QUESTION = 16  # what a question adds to a count
MOST = 8703  # of a count: 16 questions in 16 rounds, which then lose a 32nd
PRIOR = 128  # worth of the mean of all bins, as that of 8 questions
SMALLEST = 1024  # 1/32 in Q15, the smallest P(answer)
EVERY = 16  # rounds, a power of 2, after which counts fade


class Answers:
    """Counts of questions and answers, of each bin and of all.

    They fade by rounds, half in 355, towards "every question is answered": after an outage the policy soon asks again.

    Attributes:
        lost: Questions without an answer, of all bins; while there is none, every question counts as answered.
    """

    def __init__(self, bits: int):
        """bits: The policy has 2^bits bins."""
        self.shift = max(0, bits - BITS)
        size = (1 << min(bits, BITS)) + 1
        self.questions = array("H", bytes(2 * size))
        self.answered = array("H", self.questions)
        self.lost = 0

    def rate(self, k: int) -> int:
        """Return P(an answer in time) to a question about bin k, Q15."""
        if not self.lost:
            return ONE
        k >>= self.shift
        last = len(self.questions) - 1
        mean = ((self.answered[last] + 64) << 15) // (self.questions[last] + 64)
        return max(SMALLEST, ((self.answered[k] << 15) + PRIOR * mean) // (self.questions[k] + PRIOR))

    def fade_counts(self) -> None:
        """Let the counts fade."""
        for n in range(len(self.questions)):
            questions = self.questions[n]
            if questions:
                questions -= questions + 31 >> 5
                answered = self.answered[n]
                answered = min(answered - (answered >> 5), questions)
                self.answered[n] = answered
                self.questions[n] = questions
        self.derive()

    def count(self, k: int, came: int) -> None:
        """Count a question about bin k. came: 1 if it was answered in time, 0 if not."""
        k >>= self.shift
        last = len(self.questions) - 1
        for n in (k, last):
            if self.questions[n] <= MOST - QUESTION:
                self.questions[n] += QUESTION
                self.answered[n] += QUESTION * came
        self.derive()

    def clear(self) -> None:
        """Forget all questions."""
        for n in range(len(self.questions)):
            self.questions[n] = self.answered[n] = 0
        self.derive()

    def derive(self) -> None:
        """Compute anew what follows from the counts."""
        last = len(self.questions) - 1
        self.lost = self.questions[last] - self.answered[last]

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        size = len(self.questions)
        yield self.questions, 0, size, 0, MOST, 0
        yield self.answered, 0, size, 0, MOST, size  # at most as many answers as questions

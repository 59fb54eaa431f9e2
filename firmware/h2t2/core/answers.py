# How often a question gets an answer in time: one that gets none costs beta too, so a question costs beta / P(answer).
#
# Counts of questions: for each CELLS-th of the scores, then of all, those without an answer in time and those with one.
from .numbers import ONE

if 0:  # for type checkers
    from ..annotations import UInt16s

CELLS = 16  # parts of the scores that have counts of their own
LOST, CAME, SIZE = 2 * CELLS, 2 * CELLS + 1, 2 * CELLS + 2  # LOST, CAME: of all
QUESTION = 16  # what a question adds to a count
MOST = 16383  # of a count
PRIOR = 128  # worth of the mean of all cells, as that of 8 questions
SMALLEST = 1024  # 1/32 in Q15, the smallest P(answer)
EVERY = 256  # rounds, a power of 2, after which the counts are halved: an outage is soon forgotten


def add_question(counts: "UInt16s", k: int, bits: int, came: int) -> None:
    """Count a question about bin k of 2^bits. came: 1 if it was answered in time, 0 if not."""
    for at in ((k << 4 >> bits << 1) + came, LOST + came):
        counts[at] = min(counts[at] + QUESTION, MOST)


def answer_rate(counts: "UInt16s", k: int, bits: int) -> int:
    """Return P(an answer in time) to a question about bin k of 2^bits, Q15; ONE while no question has lost its answer."""
    if not counts[LOST]:
        return ONE
    at = k << 4 >> bits << 1
    mean = (counts[CAME] + 64 << 15) // (counts[LOST] + counts[CAME] + 64)
    return max(SMALLEST, ((counts[at + 1] << 15) + PRIOR * mean) // (counts[at] + counts[at + 1] + PRIOR))

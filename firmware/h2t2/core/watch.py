# What a forecaster is told of every round, which needs no label: when its memories fade, and whether the scores have moved.
#
# Its first constants are what the forecasters of two and of many classes share: how one is weighed beside the other experts.
#
# What works on arrays stands in functions of arrays, for the simulator compiles them as they are.
from array import array

ETA = 3355443  # .05 in Q26
SHARE = 6950945  # log2(.99 / .01) in Q20: the forecaster's share of the weight at the start, over that of all other experts
GAMMA = 655  # .02 in Q15, added to P(offload) in the losses' estimates: a little bias for much less variance
STEP = 4194304  # of `loss`, 2^8 octaves: the most that a label moves
MEMORIES = 4  # of labels: for ever, and half-lives of 4000, 1000 and 250 rounds
YEAR = 4000  # rounds after which the fadings repeat
FAST, SLOW = 2, 6  # shifts every 32 rounds: histograms of the last 128 and of the last 2048 scores
SEEN = 64  # what a score adds to its cell there
FAST_MOST, SLOW_MOST = 8192, 131072  # what that comes to when every score is in one cell
QUIET = 128  # rounds after a surprise before the next
MOVED = 1285  # chi-squared of 80 between the two is a surprise
FLOOR = 164  # .005 in Q15: it looks wherever it is, for ever
AUDITS = (13107, 1638, 485, 205, FLOOR)  # .4 / (1 + n)^3 in Q15: how it looks where it is sure, after n such looks


def moved(fast, slow) -> bool:
    """Whether the last scores' histogram is another than that of those before them."""
    a = b = x = 0
    k = len(fast)
    while k:
        k -= 1
        a += fast[k]
        b += slow[k]
    k = len(fast)
    while k:
        k -= 1
        y = (fast[k] << 12) // a
        z = (slow[k] << 12) // b
        x += (y - z) * (y - z) // ((y + z >> 1) + 4)
    return x > MOVED * max(1, len(fast) >> 4)


def faded(fast, slow) -> None:
    """Both histograms 32 rounds later."""
    k = len(fast)
    while k:
        k -= 1
        fast[k] -= fast[k] >> FAST
        slow[k] -= slow[k] >> SLOW


class Watch:
    """Counts the rounds and keeps two histograms of the scores' cells; says when to forget. `audits`: looks where it was sure.

    Whoever remembers gives it `fade(memory, shift)`: what is in a memory, 0 (kept for ever) to 3, divided by 2^shift.
    """

    def __init__(self, cells: int):
        self.fast = array("i", [0] * cells)
        self.slow = array("i", self.fast)
        self.age = self.quiet = self.audits = 0

    def scalars(self):
        """As Policy.scalars."""
        yield self, "age", 0, YEAR - 1
        yield self, "quiet", 0, QUIET
        yield self, "audits", 0, len(AUDITS) - 1

    def arrays(self):
        """As Policy.arrays."""
        yield self.fast, ((0, FAST_MOST),)
        yield self.slow, ((0, SLOW_MOST),)

    def clear(self) -> None:
        """Forget every round."""
        for k in range(len(self.fast)):
            self.fast[k] = self.slow[k] = 0
        self.age = self.quiet = self.audits = 0

    def see(self, k: int) -> None:
        """A round begins, with a score in cell k: O(1), once in 32 rounds O(cells), and once in 250 the memories fade."""
        self.fast[k] = min(self.fast[k] + SEEN, FAST_MOST)
        self.slow[k] = min(self.slow[k] + SEEN, SLOW_MOST)
        self.quiet = min(self.quiet + 1, QUIET)
        self.age += 1
        if not self.age & 31:
            if self.quiet >= QUIET and moved(self.fast, self.slow):
                self.doubt()
            faded(self.fast, self.slow)
        if not self.age % 250:
            self.fade(3, 1)
            if not self.age % 1000:
                self.fade(2, 1)
            if self.age == YEAR:
                self.age = 0
                self.fade(1, 1)

    def doubt(self) -> None:
        """The scores have moved: a quarter of what the labels said stays, and it looks again where it was sure."""
        for memory in range(MEMORIES):
            self.fade(memory, 2)
        for k in range(len(self.fast)):
            self.slow[k] = self.fast[k]
        self.audits = min(self.audits, 1)
        self.quiet = 0

    def audited(self) -> None:
        """It has looked where it was sure."""
        self.audits = min(self.audits + 1, len(AUDITS) - 1)

    def fade(self, memory: int, shift: int) -> None:
        """What is in a memory, divided by 2^shift."""
        raise NotImplementedError

# The part of a forecaster that needs no label: it fades the memories of labels, and detects drift of the scores.
#
# The forecasters of two and of many classes share the first constants, which weigh a forecaster beside the other experts.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator

ETA = 3355443  # .05 in Q26
SHARE = 6950945  # log2(.99 / .01) in Q20: the forecaster's initial weight relative to that of all other experts
GAMMA = 655  # .02 in Q15, added to P(offload) in loss estimates: a small bias for much less variance
STEP = 4194304  # 2^8 octaves: a label moves a loss by at most so much
MEMORIES = 4  # of labels: one never fades, the others have half-lives of 4000, 1000 and 250 rounds
YEAR = 4000  # rounds after which the schedule of fading repeats
FAST, SLOW = 2, 6  # shifts every 32 rounds: histograms of the last 128 and of the last 2048 scores
INCREMENT = 64  # a score adds this to its cell of a histogram
FAST_MAX, SLOW_MAX = 8192, 131072  # of a cell, when all scores fall into it
QUIET = 128  # rounds from one drift to the next, at least
DRIFT = 1285  # a chi-squared of 80 between the two histograms is drift
FLOOR = 164  # .005 in Q15: the smallest probability to offload
AUDITS = (13107, 1638, 485, 205, FLOOR)  # .4 / (1 + n)^3 in Q15: P(offload) with a certain forecast, after n audits


def drifted(fast: "Int32s", slow: "Int32s") -> bool:
    """Return whether the histogram of the last scores differs from that of the earlier ones."""
    fast_sum = slow_sum = chi_squared = 0
    cell = len(fast)
    while cell:
        cell -= 1
        fast_sum += fast[cell]
        slow_sum += slow[cell]
    cell = len(fast)
    while cell:
        cell -= 1
        now = (fast[cell] << 12) // fast_sum
        before = (slow[cell] << 12) // slow_sum
        chi_squared += (now - before) * (now - before) // ((now + before >> 1) + 4)
    return chi_squared > DRIFT * max(1, len(fast) >> 4)


def fade_histograms(fast: "Int32s", slow: "Int32s") -> None:
    """Fade both histograms, once in 32 rounds."""
    cell = len(fast)
    while cell:
        cell -= 1
        fast[cell] -= fast[cell] >> FAST
        slow[cell] -= slow[cell] >> SLOW


class Watch:
    """Counts the rounds, keeps two histograms of the cells of the scores, and fades memories on schedule and after drift.

    Attributes:
        fast, slow: The histograms.
        age: Rounds of the current YEAR.
        quiet: Rounds since the last drift, up to QUIET.
        audits: Offloads made although the forecast was certain, up to the length of AUDITS.
    """

    def __init__(self, cells: int):
        self.fast = array("i", [0] * cells)
        self.slow = array("i", self.fast)
        self.age = self.quiet = self.audits = 0

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "age", 0, YEAR - 1
        yield self, "quiet", 0, QUIET
        yield self, "audits", 0, len(AUDITS) - 1

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        yield self.fast, 0, len(self.fast), 0, FAST_MAX, 0
        yield self.slow, 0, len(self.slow), 0, SLOW_MAX, 0

    def clear(self) -> None:
        """Forget all rounds."""
        for cell in range(len(self.fast)):
            self.fast[cell] = self.slow[cell] = 0
        self.age = self.quiet = self.audits = 0

    def count_score(self, cell: int) -> None:
        """Begin a round with a score in a cell: O(1), every 32nd round O(cells); every 250th round fades memories."""
        self.fast[cell] = min(self.fast[cell] + INCREMENT, FAST_MAX)
        self.slow[cell] = min(self.slow[cell] + INCREMENT, SLOW_MAX)
        self.quiet = min(self.quiet + 1, QUIET)
        self.age += 1
        if not self.age & 31 or not self.age % 250:
            self._follow_schedule()

    def _follow_schedule(self) -> None:
        """Look for drift and fade what is due after `age` rounds."""
        if not self.age & 31:
            if self.quiet >= QUIET and drifted(self.fast, self.slow):
                self.adapt_to_drift()
            fade_histograms(self.fast, self.slow)
        if not self.age % 250:
            self.fade(3, 1)
            if not self.age % 1000:
                self.fade(2, 1)
            if self.age == YEAR:
                self.age = 0
                self.fade(1, 1)

    def adapt_to_drift(self) -> None:
        """Fade all memories to a quarter and audit again."""
        for memory in range(MEMORIES):
            self.fade(memory, 2)
        for cell in range(len(self.fast)):
            self.slow[cell] = self.fast[cell]
        self.audits = min(self.audits, 1)
        self.quiet = 0

    def count_audit(self) -> None:
        """Count an offload with a certain forecast."""
        self.audits = min(self.audits + 1, len(AUDITS) - 1)

    if 0:  # what each forecaster defines

        def fade(self, memory: int, shift: int) -> None:
            """Divide the counts of a memory, 0 (it never fades by schedule) to 3, by 2^shift."""
            raise NotImplementedError

# What heads save: the cost of deciding by the forecasts with the heads, beside that of the best fixed answer in each bin of the
# score. Nothing here influences a decision.
from array import array

from .adaptive import FEE, FN, FP
from .forecaster import P
from .numbers import MACHINE_CODE, ONE, times
from .tickets import BIN, CHANCE
from .watch import FLOOR, GAMMA

ASK = 2  # beside the answers 0 and 1
LIMIT = 1006632960  # 15/16 of 2^30: a sum within it may grow by a step and stay a small integer
PERIOD = 16384  # rounds after which the sums are settled and begin anew
PAID, ROUNDS, SAVED = 0, 1, 2  # of `totals`


class HeadSaving:
    """Estimates what the heads save, from forecasts and labels; exploration counts on neither side.

    In each round the forecast prices the cheapest action. Each label then corrects this price: its difference to the expected
    one is divided by the chance of the offload, so wrong forecasts do not bias the sum (a doubly robust estimate). The same
    sums give the events of each bin, and so its cheapest action in hindsight: a policy without heads does hardly better,
    unless its bins drift within a PERIOD.

    Attributes:
        fees, events, counts: Sums for each bin: what offloads would have cost and events, Q15, and samples.
        totals: PAID, the cost of the cheapest actions by the forecasts, Q15; ROUNDS of this period; what heads SAVED in earlier
            periods, in 1/1024 of a cost of 1.
    """

    def __init__(self, bits: int):
        self.fees = array("i", [0] * (1 << bits))
        self.events = array("i", self.fees)
        self.counts = array("i", self.fees)
        self.totals = array("i", [0, 0, 0])

    def count(self, k: int, belief: "array[int]", effective: "array[int]") -> int:
        """Count a round in bin k and return P(event) << 2 | the cheapest action. Arguments as for adaptive.offload_wish()."""
        totals = self.totals
        if totals[ROUNDS] >= PERIOD:
            self.settle(effective[FP], effective[FN])
        p = belief[P]
        fee = effective[FEE]
        cost_0 = p * effective[FN] >> 15
        cost_1 = (ONE - p) * effective[FP] >> 15
        action = 1 if cost_1 <= cost_0 else 0
        cost = min(cost_0, cost_1)
        if fee < cost:
            action = ASK
            cost = fee
        totals[ROUNDS] += 1
        totals[PAID] = bounded(totals[PAID] + cost)
        self.fees[k] += fee
        self.events[k] = bounded(self.events[k] + p)
        self.counts[k] += 1
        return p << 2 | action

    def correct(self, counted: int, label: int, slots: "array[int]", at: int, effective: "array[int]") -> None:
        """Correct a round by its label.

        Args:
            counted: As count() returned it.
            label: 0 or 1.
            slots, at: BIN and CHANCE of the offload, from index `at` on, as in Tickets.
            effective: As for count().
        """
        fp = effective[FP]
        fn = effective[FN]
        chance = max(FLOOR, (slots[at + CHANCE] >> 14) - GAMMA)
        p = counted >> 2
        action = counted & 3
        at = slots[at + BIN]
        self.events[at] = bounded(self.events[at] + divided((label << 15) - p, chance))
        if action != ASK:
            cost = (ONE - p) * fp >> 15 if action else p * fn >> 15
            mistake = 0
            if action != label:
                mistake = fn if label else fp
            self.totals[PAID] = bounded(self.totals[PAID] + divided(mistake - cost, chance))

    def period(self, fp: int, fn: int) -> int:
        """Return what this period saved, in 1/1024."""
        saved = -(self.totals[PAID] >> 5)
        for k in range(len(self.counts)):
            samples = self.counts[k] << 15
            events = min(max(self.events[k], 0), samples)
            saved += min(self.fees[k], min(times(events, fn), times(samples - events, fp))) >> 5
        return saved

    def settle(self, fp: int, fn: int) -> None:
        """Add a period to what was saved, and begin anew."""
        self.totals[SAVED] = bounded(self.totals[SAVED] + self.period(fp, fn))
        self.totals[PAID] = self.totals[ROUNDS] = 0
        for k in range(len(self.counts)):
            self.fees[k] = self.events[k] = self.counts[k] = 0


def bounded(x: int) -> int:
    """Return x within LIMIT."""
    return min(max(x, -LIMIT), LIMIT)


def divided(x: int, chance: int) -> int:
    """Return x / chance for |x| <= ONE, both Q15."""
    return (x << 14) // (chance >> 1)


if MACHINE_CODE:  # head_viper.decide and head_viper.teach do it
    del HeadSaving.count, HeadSaving.correct, divided

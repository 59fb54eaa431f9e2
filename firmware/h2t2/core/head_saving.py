# What heads save: the cost of deciding by the forecasts with the heads, beside that of the best fixed answer in each bin of the
# score. Nothing here influences a decision.
from array import array

from .numbers import ONE, times

ASK = 2  # beside the answers 0 and 1
LIMIT = 1006632960  # 15/16 of 2^30: a sum within it may grow by a step and stay a small integer
PERIOD = 16384  # rounds after which the sums are settled and begin anew


class HeadSaving:
    """Estimates what the heads save, from forecasts and labels; exploration counts on neither side.

    In each round the forecast prices the cheapest action. Each label then corrects this price: its difference to the expected
    one is divided by the chance of the offload, so wrong forecasts do not bias the sum (a doubly robust estimate). The same
    sums give the events of each bin, and so its cheapest action in hindsight: a policy without heads does hardly better,
    unless its bins drift within a PERIOD.

    Attributes:
        fees, events, counts: Sums for each bin: what offloads would have cost and events, Q15, and samples.
        paid: Cost of the cheapest actions by the forecasts, Q15.
        rounds: Of this period.
        saved: In earlier periods, in 1/1024 of a cost of 1.
    """

    def __init__(self, bits: int):
        self.fees = array("i", [0] * (1 << bits))
        self.events = array("i", self.fees)
        self.counts = array("i", self.fees)
        self.paid = self.rounds = self.saved = 0

    def count(self, k: int, p: int, fee: int, fp: int, fn: int) -> int:
        """Count a round in bin k and return p << 2 | the cheapest action. p: P(event). fee, fp, fn: costs. All are Q15."""
        cost_0 = p * fn >> 15
        cost_1 = (ONE - p) * fp >> 15
        action = 1 if cost_1 <= cost_0 else 0
        cost = min(cost_0, cost_1)
        if fee < cost:
            action = ASK
            cost = fee
        self.rounds += 1
        self.paid = bounded(self.paid + cost)
        self.fees[k] += fee
        self.events[k] = bounded(self.events[k] + p)
        self.counts[k] += 1
        return p << 2 | action

    def correct(self, k: int, counted: int, label: int, fp: int, fn: int, chance: int) -> None:
        """Correct a round in bin k by its label. counted: As count() returned it. chance: P(offload), Q15, 164 or more."""
        p = counted >> 2
        action = counted & 3
        self.events[k] = bounded(self.events[k] + divided((label << 15) - p, chance))
        if action != ASK:
            cost = (ONE - p) * fp >> 15 if action else p * fn >> 15
            mistake = 0
            if action != label:
                mistake = fn if label else fp
            self.paid = bounded(self.paid + divided(mistake - cost, chance))

    def period(self, fp: int, fn: int) -> int:
        """Return what this period saved, in 1/1024."""
        saved = -(self.paid >> 5)
        for k in range(len(self.counts)):
            samples = self.counts[k] << 15
            events = min(max(self.events[k], 0), samples)
            saved += min(self.fees[k], min(times(events, fn), times(samples - events, fp))) >> 5
        return saved

    def settle(self, fp: int, fn: int) -> None:
        """At the end of a period, add it to `saved` and begin anew."""
        if self.rounds < PERIOD:
            return
        self.saved = bounded(self.saved + self.period(fp, fn))
        self.paid = self.rounds = 0
        for k in range(len(self.counts)):
            self.fees[k] = self.events[k] = self.counts[k] = 0


def bounded(x: int) -> int:
    """Return x within LIMIT."""
    return min(max(x, -LIMIT), LIMIT)


def divided(x: int, chance: int) -> int:
    """Return x / chance for |x| <= ONE, both Q15."""
    return (x << 14) // (chance >> 1)

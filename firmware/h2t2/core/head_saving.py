# What heads save: the cost of deciding by the forecasts with the heads, beside that of the best fixed answer in each bin of the
# score. Nothing here influences a decision.
#
# In each round the forecast prices the cheapest action. Each label then corrects this price: its difference to the expected one
# is divided by the chance of the offload, so wrong forecasts do not bias the sum (a doubly robust estimate). The same sums give
# the events of each bin, and so its cheapest action in hindsight: a policy without heads does hardly better, unless its bins
# drift within a PERIOD. Exploration counts on neither side.
from .adaptive import FN, FP, asking
from .forecaster import FLOOR, GAMMA, P
from .numbers import ONE, times
from .policy import BIN, CHANCE

if 0:  # for type checkers
    from ..annotations import Int32s

ASK = 2  # beside the answers 0 and 1
LIMIT = 1006632960  # 15/16 of 2^30: a sum within it may grow by a step and stay a small integer
PERIOD = 16384  # rounds after which the sums are settled and begin anew
# of the sums: the cost of the cheapest actions by the forecasts, Q15; rounds of this period; what heads saved before, in
# 1/1024 of a cost of 1. From BINS on, for each bin: what offloads would have cost and events, Q15, and samples
PAID, ROUNDS, SAVED, BINS = 0, 1, 2, 3
FEES, EVENTS, SAMPLES, SUMS = 0, 1, 2, 3  # of a bin


def count_saving(sums: "Int32s", k: int, belief: "Int32s", effective: "Int32s") -> int:
    """Count a round in bin k and return P(event) << 2 | the cheapest action. Arguments as for adaptive.offload_wish()."""
    if sums[ROUNDS] >= PERIOD:
        settle(sums, effective[FP], effective[FN])
    p = belief[P]
    fee = asking(p, effective)
    cost_0 = p * effective[FN] >> 15
    cost_1 = (ONE - p) * effective[FP] >> 15
    action = 1 if cost_1 <= cost_0 else 0
    cost = min(cost_0, cost_1)
    if fee < cost:
        action = ASK
        cost = fee
    sums[ROUNDS] += 1
    sums[PAID] = bounded(sums[PAID] + cost)
    k = BINS + k * SUMS
    sums[k + FEES] += fee
    sums[k + EVENTS] = bounded(sums[k + EVENTS] + p)
    sums[k + SAMPLES] += 1
    return p << 2 | action


def correct(sums: "Int32s", counted: int, label: int, slots: "Int32s", at: int, effective: "Int32s") -> None:
    """Correct a round by its label.

    Args:
        sums: As for count_saving().
        counted: As count_saving() returned it.
        label: 0 or 1.
        slots, at: BIN and CHANCE of the offload, from index `at` on, as in Tickets.
        effective: As for count_saving().
    """
    fp = effective[FP]
    fn = effective[FN]
    chance = max(FLOOR, (slots[at + CHANCE] >> 14) - GAMMA) >> 1
    p = counted >> 2
    action = counted & 3
    at = BINS + slots[at + BIN] * SUMS + EVENTS
    sums[at] = bounded(sums[at] + ((label << 15) - p << 14) // chance)
    if action != ASK:
        cost = (ONE - p) * fp >> 15 if action else p * fn >> 15
        mistake = 0
        if action != label:
            mistake = fn if label else fp
        sums[PAID] = bounded(sums[PAID] + (mistake - cost << 14) // chance)


def period(sums: "Int32s", fp: int, fn: int) -> int:
    """Return what this period saved, in 1/1024."""
    saved = -(sums[PAID] >> 5)
    for k in range(BINS, len(sums), SUMS):
        samples = sums[k + SAMPLES] << 15
        events = min(max(sums[k + EVENTS], 0), samples)
        saved += min(sums[k + FEES], min(times(events, fn), times(samples - events, fp))) >> 5
    return saved


def settle(sums: "Int32s", fp: int, fn: int) -> None:
    """Add a period to what was saved, and begin anew."""
    saved = bounded(sums[SAVED] + period(sums, fp, fn))
    for k in range(len(sums)):
        sums[k] = 0
    sums[SAVED] = saved


def bounded(x: int) -> int:
    """Return x within LIMIT."""
    return min(max(x, -LIMIT), LIMIT)

# A limit for missed events: with it an adaptive policy has an effective cost of a miss that rises with the misses it expects.
#
# A miss is a sample that the remote model would call an event, and that the policy answered 0 without an offload. The policy
# estimates their number from the labels of its offloads, each weighed by its inverse probability. A quicker control loop uses
# the forecaster's belief about the samples answered 0. Of many classes one is normal, and stands for the 0 of two; all others
# are events.
#
# Functions of arrays, not methods, do the arithmetic, so that the simulator can compile them.
from array import array

from .adaptive import FN, FP, UNIT
from .forecaster import FLOOR, HIGH, P, square_root
from .miss_limit import Limit
from .numbers import ONE, exp2, times
from .policy import OFFLOAD, checked_integer

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator
    from .adaptive import Adaptive

# The estimate: sums over labels of events, each of weight w = 1 / P(offload), answered 0 with probability z. All sums of labels
# are halved when the weights reach MEMORY events.
EVENTS, MISSES = 0, 1  # w, w z; Q8
SQUARES, CROSS, MISSED = 2, 3, 4  # w^2, w^2 z, w^2 z^2; Q4
WEIGHT = 5  # mean w of expected misses, Q12: the weight of a miss that no label has shown yet
STAKE = 6  # the effective cost of a miss is 2^STAKE times its cost; Q20
SUMS = 7
ADAPTIVE = 3  # kind of Adaptive
MEMORY = 4096
MAX_STAKE = 4194304  # 16 times
NOTCH = 32768  # of STAKE: the effective costs follow steps of this size
LOWER_BOUNDS = (0, 0, 0, 0, 0, 1 << 12, 0)
UPPER_BOUNDS = (MEMORY << 8, 1 << 21, 1 << 24, 1 << 24, 1 << 24, 1 << 20, MAX_STAKE)


def share(a: int, b: int) -> int:
    """Return a / b in Q15, rounded down, at most ONE; 0 <= a, 0 < b < 2^21."""
    if a >= b:
        return ONE
    return (a << 9) // b << 6 | ((a << 9) % b << 6) // b


def clear_sums(sums: "Int32s", floor: int) -> None:
    """Set the sums to those before any round. floor: As smallest_chance() returns it."""
    for i in range(SUMS):
        sums[i] = 0
    sums[WEIGHT] = (ONE << 12) // floor


def zero_chance(positive: int, negative: int, guess: int, chance: int) -> int:
    """Return the probability, Q15, with which a round answered 0.

    Args:
        positive, negative: Weights of its answers 1 and 0.
        guess: The forecaster's class, the answer where both are 0.
        chance: P(offload), Q15.
    """
    if positive + negative:
        return (ONE - chance) * negative // (positive + negative)
    return 0 if guess else ONE - chance


def expect_misses(sums: "Int32s", estimated: "Int32s", belief: "Int32s", zero: int, chance: int, limit: int) -> None:
    """Count a round: the stake rises by an eighth of the expected misses and falls by an eighth of the permitted ones.

    Args:
        sums: The sums, WEIGHT and STAKE of which change.
        estimated: As estimate() sets it. While it is above the limit for certain, no miss is permitted.
        belief: P and HIGH of the sample.
        zero: Probability of the answer 0, Q15.
        chance: P(offload), Q15.
        limit: Permitted share of events missed, Q15.
    """
    if estimated[0] > limit + estimated[1]:
        limit = 0
    p = belief[P]
    expected = (p + (belief[HIGH] - p >> 1)) * zero
    x = ((ONE << 12) // chance - sums[WEIGHT]) // 64
    sums[WEIGHT] += times(x, expected >> 15) if x > 0 else -times(-x, expected >> 15)
    sums[STAKE] = min(max(sums[STAKE] + ((expected >> 10) - (p * limit >> 10) >> 3), 0), MAX_STAKE)


def count_event(sums: "Int32s", chance: int, zero: int) -> None:
    """Count a label that is an event. Arguments as for expect_misses() in its round."""
    w = (ONE << 8) // chance
    sums[EVENTS] += w
    sums[MISSES] += w * (zero >> 2) >> 13
    w = (w >> 4) * (w >> 4) >> 4
    sums[SQUARES] += w
    sums[CROSS] += times(w, zero)
    sums[MISSED] += times(times(w, zero), zero)
    if sums[EVENTS] > MEMORY << 8:
        for i in range(WEIGHT):
            sums[i] >>= 1


def estimate(sums: "Int32s", estimated: "Int32s") -> None:
    """Estimate the miss rate.

    Args:
        sums: The sums.
        estimated: Becomes the rate and the width of its interval, Q15: two standard errors and a miss that no label has shown.
    """
    events = sums[EVENTS]
    estimated[0] = 0
    estimated[1] = ONE
    if events:
        rate = share(sums[MISSES], events)
        x = sums[SQUARES]
        x = max(0, sums[MISSED] - 2 * times(sums[CROSS], rate) + times(times(x, rate), rate))
        w = sums[WEIGHT] >> 8
        estimated[0] = rate
        estimated[1] = share(square_root(x + (w * w >> 4)) << 7, events)


def raise_costs(stake: int, delta_fp: int, delta_fn: int, raised: "Int32s") -> None:
    """Compute effective costs at a stake.

    Args:
        stake: As STAKE.
        delta_fp, delta_fn: Costs of a false positive and a false negative, Q15.
        raised: Becomes 2^-stake, and the effective costs of a false positive, a false negative and a cost of 1; all Q15.
    """
    x = exp2(stake >> 6, 0) >> 14
    delta_fn = max(1, delta_fn)
    fn = (delta_fn << 14) // x << 1
    raised[0] = x
    if fn > ONE:  # the effective cost of a miss is limited to 1: the other costs are reduced instead
        x = (x << 14) // delta_fn << 1
        raised[1] = times(delta_fp, x)
        raised[2] = ONE
        raised[3] = x
    else:
        raised[1] = delta_fp
        raised[2] = fn
        raised[3] = ONE


def smallest_chance(limit: int) -> int:
    """Return the smallest P(offload), Q15, that lets the policy estimate so low a miss rate: FLOOR to 1/4."""
    return max(FLOOR, min(ONE >> 2, 524288 // limit))


class MissRate(Limit):
    """A limit for the share of events that a policy misses, as far as its labels show. It belongs to one policy.

    `delta_fp`, `delta_fn` and `beta` of the policy remain the costs; `effective` holds the raised ones. The estimate does not
    include events missed because an offload had no answer, or was impossible.

    Attributes:
        kind: Of a snapshot of Adaptive with this limit; of other policies the upper bits are those of their kind.
        older: As Policy.older.
        miss_rate: The limit, Q15.
        normal: The class that is no event.
        floor: Smallest P(offload), Q15.
        sums: EVENTS to STAKE.
        estimated: Miss rate and width of its interval, Q15.
        stake: The STAKE in force.
        losses: `rates` of the policy at stake 0 for the answer 0, whose labels are 0 and 1.
        raised: As of raise_costs().
        zero: P(answer 0) of the last round, Q15.
        rounds: Of each outstanding ticket: P(offload) - 1 << 15 | zero.
    """

    kind = 5
    older = {}  # type: dict[str, int]

    def __init__(self, miss_rate: int, normal: int = 0):
        """miss_rate: The limit, Q15, 1..32768. normal: Of many classes the one that is no event."""
        checked_integer("miss_rate", miss_rate, 1, ONE)
        self.miss_rate = miss_rate
        self.normal = normal
        self.floor = smallest_chance(miss_rate)
        self.sums = array("i", [0] * SUMS)
        self.raised = array("i", [ONE, 0, 0, ONE])
        self.estimated = array("i", [0, ONE])
        self.stake = self.zero = 0
        self.losses = [0, 0]
        clear_sums(self.sums, self.floor)

    def join(self, policy: "Adaptive") -> None:
        """Limit a policy in its first state."""
        self.rounds = array("i", [0] * policy.tickets.window)
        policy.limit = self
        policy.limited = True
        policy.floor = self.floor
        policy.kind = self.kind if policy.kind == ADAPTIVE else policy.kind << 4 | self.kind
        policy.older = self.older
        self.take_rates(policy)

    def take_rates(self, policy: "Adaptive") -> None:
        """Raise the policy's costs anew, after a change of them or of the sums."""
        estimate(self.sums, self.estimated)
        for label in range(len(policy.rates) >> 1):
            self.losses[label] = policy.rates[label << 1]
        self.set_bounds(policy)

    def set_bounds(self, policy: "Adaptive") -> None:
        """Give a policy the effective costs at the stake in force."""
        raised = self.raised
        raise_costs(self.stake, policy.delta_fp, policy.delta_fn, raised)
        policy.effective[FP] = raised[1]
        policy.effective[FN] = raised[2]
        policy.effective[UNIT] = raised[3]
        for label in range(len(policy.rates) >> 1):
            policy.rates[label << 1] = over(self.losses[label], raised[0])
        policy.set_bounds()

    def raise_wish(self, policy: "Adaptive", share: int) -> int:
        """Return the smallest P(offload) that lets the policy estimate its misses."""
        return policy.floor

    def check(self, policy: "Adaptive", k: int, action: int) -> int:
        """Count the misses to expect of a round, raise the costs where they are due, and return the action as it is."""
        sums = self.sums
        chance = policy.chance
        self.zero = zero = zero_chance(policy.positive, policy.negative, policy.guess, chance)
        expect_misses(sums, self.estimated, policy.forecaster.belief, zero, chance, self.miss_rate)
        if action == OFFLOAD:
            self.rounds[policy.ticket % policy.tickets.window] = chance - 1 << 15 | zero
        if abs(sums[STAKE] - self.stake) >= NOTCH:
            self.stake = sums[STAKE]
            self.set_bounds(policy)
        return action

    def learn(self, at: int, label: int) -> None:
        """Count the label of the ticket in slot `at` where it is an event."""
        if label != self.normal:
            bet = self.rounds[at]
            count_event(self.sums, (bet >> 15) + 1, bet & 32767)
            estimate(self.sums, self.estimated)

    def settings(self) -> "tuple[int, ...]":
        """Return the options that a state depends on."""
        return (self.miss_rate,)

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "stake", 0, MAX_STAKE

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        for n in range(SUMS):
            yield self.sums, n, n + 1, LOWER_BOUNDS[n], UPPER_BOUNDS[n], 0

    def clear(self, policy: "Adaptive") -> None:
        """Forget all rounds of the policy."""
        clear_sums(self.sums, self.floor)
        self.stake = 0
        self.set_bounds(policy)
        estimate(self.sums, self.estimated)

    def report(self) -> "dict[str, int]":
        """Return the estimate in Q15, and `miss_counts`, how many times its cost a miss counts, in Q10."""
        rate = self.estimated[0]
        width = self.estimated[1]
        return {
            "miss_rate": rate,
            "miss_rate_low": max(0, rate - width),
            "miss_rate_high": min(ONE, rate + width),
            "miss_rate_limit": self.miss_rate,
            "miss_counts": (ONE << 10) // self.raised[0],
        }

    def bypass(self, policy: "Adaptive", decision: int, ticket: int = 0) -> int:
        """Take note of a sample that was decided without the policy, or whose offload had no answer; return what to act on.

        ticket: Of the offload, if its label may still come.
        """
        return decision

    def is_due(self) -> bool:
        """Return whether the policy must be saved soon, so that a power cut does not bring back what it stated."""
        return False

    def end(self) -> None:
        """Take note that the save to come ends this start."""

    def note_saved(self) -> None:
        """Take note of a save."""

    def go_on(self) -> None:
        """Take note that this start continues from a save of another start."""


def over(x: int, q15: int) -> int:
    """Return x / q15 for |x| < 2^28 / 16; q15: 2048..32768."""
    a = abs(x)
    a = (a // q15 << 15) + ((a % q15 << 15) // q15)
    return a if x > 0 else -a

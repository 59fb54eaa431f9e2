# A limit for missed events: the adaptive policy, for which a miss counts the more, the more of them it believes it makes.
#
# A miss is an event, as the remote model says, that was answered 0 without asking. How many there are is estimated from the
# labels of its own offloads, each standing for as many samples as were not asked in its place. What steers is quicker: what the
# forecaster believes of the samples that are answered 0.
#
# What works on arrays stands in functions of arrays, for the simulator compiles them as they are.
from array import array

from .adaptive import Adaptive
from .forecaster import square_root
from .numbers import ONE, exp2, times
from .policy import OFFLOAD, checked_integer
from .watch import FLOOR

# The estimate: sums over labels of events, each of weight w = 1 / P(offload), answered 0 with probability z. Every sum is
# halved when the weights come to MEMORY events.
EVENTS, MISSES = 0, 1  # w, w z; Q8
SQUARES, CROSS, MISSED = 2, 3, 4  # w^2, w^2 z, w^2 z^2; Q4
WEIGHT = 5  # w of the misses that are feared, Q12: what one that is not among the labels would weigh
STAKE = 6  # by how many octaves a miss counts more than it costs, Q20
SUMS = 7
MEMORY = 4096
MOST = 4194304  # of STAKE: 2^4 times
NOTCH = 32768  # of STAKE: what it moves by before the costs follow


def share(a: int, b: int) -> int:
    """a / b in Q15, rounded down, at most 1; 0 <= a, 0 < b < 2^21."""
    if a >= b:
        return ONE
    return (a << 9) // b << 6 | ((a << 9) % b << 6) // b


def begin(s, floor: int) -> None:
    """No label and no round yet; floor: looks()."""
    for i in range(SUMS):
        s[i] = 0
    s[WEIGHT] = (ONE << 12) // floor


def answered_zero(one: int, zero: int, guess: int, chance: int) -> int:
    """The probability, Q15, with which a round answered 0. one, zero: what its answers weighed; guess: the forecaster's."""
    if one + zero:
        return (ONE - chance) * zero // (one + zero)
    return 0 if guess else ONE - chance


def feared(s, found, p: int, high: int, zero: int, chance: int, limit: int) -> None:
    """A round: its sample is an event with probability p, at most `high`, and was answered 0 with probability `zero`, asked
    with `chance`, all Q15. The stake rises by an eighth of the misses feared and falls by an eighth of those allowed: none
    while labels say that there are more (found: of estimate()), whatever is believed."""
    if found[0] > limit + found[1]:
        limit = 0
    fear = (p + (high - p >> 1)) * zero
    x = ((ONE << 12) // chance - s[WEIGHT]) // 64
    s[WEIGHT] += times(x, fear >> 15) if x > 0 else -times(-x, fear >> 15)
    s[STAKE] = min(max(s[STAKE] + ((fear >> 10) - (p * limit >> 10) >> 3), 0), MOST)


def told(s, chance: int, zero: int) -> None:
    """The label of a round is an event: chance, zero: as feared() was told."""
    w = (ONE << 8) // chance
    s[EVENTS] += w
    s[MISSES] += w * (zero >> 2) >> 13
    w = (w >> 4) * (w >> 4) >> 4
    s[SQUARES] += w
    s[CROSS] += times(w, zero)
    s[MISSED] += times(times(w, zero), zero)
    if s[EVENTS] > MEMORY << 8:
        for i in range(WEIGHT):
            s[i] >>= 1


def estimate(s, found) -> None:
    """`found` becomes the miss rate and the width of its interval, two standard errors and a miss unseen, Q15."""
    events = s[EVENTS]
    found[0] = 0
    found[1] = ONE
    if events:
        rate = share(s[MISSES], events)
        x = s[SQUARES]
        x = max(0, s[MISSED] - 2 * times(s[CROSS], rate) + times(times(x, rate), rate))
        w = s[WEIGHT] >> 8
        found[0] = rate
        found[1] = share(square_root(x + (w * w >> 4)) << 7, events)


def stakes(stake: int, delta_fp: int, delta_fn: int, made) -> None:
    """`made` becomes 2^-stake, and what a false positive, a false negative and 1 count beside each other then; all Q15."""
    x = exp2(stake >> 6, 0) >> 14
    delta_fn = max(1, delta_fn)
    fn = (delta_fn << 14) // x << 1
    made[0] = x
    if fn > ONE:  # a miss cannot count more: what is beside it counts less
        x = (x << 14) // delta_fn << 1
        made[1] = times(delta_fp, x)
        made[2] = ONE
        made[3] = x
    else:
        made[1] = delta_fp
        made[2] = fn
        made[3] = ONE


def looks(limit: int) -> int:
    """The least probability to ask, Q15, that lets the estimate be told from so low a limit: the floor to 1/4."""
    return max(FLOOR, min(ONE >> 2, 524288 // limit))


class MissLimited(Adaptive):
    """Adaptive with a limit for the share of events that it misses, as far as its labels tell.

    Deltas and beta stay what they cost; `fp`, `fn` and `fee` are what they count. Events that are missed because an offload had
    no answer, or could not be made, are not among those it reckons.
    """

    kind = 5

    def __init__(self, miss_rate: int, **options):
        """miss_rate: the limit, Q15, 1..32768. options: Adaptive's."""
        checked_integer("miss_rate", miss_rate, 1, ONE)
        self.sums = array("i", [0] * SUMS)
        self.made = [ONE, 0, 0, ONE]
        self.found = [0, ONE]
        self.stake = 0  # in force
        self.raised = [0, 0]
        Adaptive.__init__(self, **options)
        self.limit = miss_rate
        self.floor = looks(miss_rate)
        begin(self.sums, self.floor)
        # of every ticket out: chance - 1 << 15 | the probability of the answer 0
        self.seen = array("i", [0] * self.tickets.window)

    def set_deltas(self, fp: int, fn: int) -> None:
        """As H2T2.set_deltas."""
        Adaptive.set_deltas(self, fp, fn)
        self.raised[0] = self.rates[0]
        self.raised[1] = self.rates[2]
        self._reprice()

    def _reprice(self):
        """What errors and an offload count at the stake in force."""
        made = self.made
        stakes(self.stake, self.delta_fp, self.delta_fn, made)
        self.fp = made[1]
        self.fn = made[2]
        self.cut = made[3]
        self.rates[0] = over(self.raised[0], made[0])
        self.rates[2] = over(self.raised[1], made[0])
        self.reckon()

    def decide(self, k: int) -> int:
        """As H2T2.decide."""
        action = Adaptive.decide(self, k)
        zero = answered_zero(self.one, self.zero, self.guess, self.chance)
        feared(self.sums, self.found, self.p, self.high, zero, self.chance, self.limit)
        if action == OFFLOAD:
            self.seen[self.ticket % self.tickets.window] = self.chance - 1 << 15 | zero
        if abs(self.sums[STAKE] - self.stake) >= NOTCH:
            self.stake = self.sums[STAKE]
            self._reprice()
        return action

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As H2T2.learn."""
        if not Adaptive.learn(self, ticket, label, beta):
            return False
        if label:
            x = self.seen[ticket % self.tickets.window]
            told(self.sums, (x >> 15) + 1, x & 32767)
            estimate(self.sums, self.found)
        return True

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return Adaptive.settings(self) + (self.limit,)

    def scalars(self):
        """As Policy.scalars."""
        yield from Adaptive.scalars(self)
        yield self, "stake", 0, MOST

    def arrays(self):
        """As Policy.arrays."""
        yield from Adaptive.arrays(self)
        yield (
            self.sums,
            ((0, MEMORY << 8), (0, 1 << 21), (0, 1 << 24), (0, 1 << 24), (0, 1 << 24), (1 << 12, 1 << 20), (0, MOST)),
        )

    def restored(self) -> None:
        """As Policy.restored."""
        Adaptive.restored(self)
        estimate(self.sums, self.found)

    def reset(self) -> None:
        """As Policy.reset."""
        Adaptive.reset(self)
        begin(self.sums, self.floor)
        self.stake = 0
        self._reprice()
        estimate(self.sums, self.found)

    def report(self) -> dict:
        """What it tells of itself in a node's state: Q15, but `miss_counts`, how many times its cost a miss counts, Q10."""
        rate = self.found[0]
        width = self.found[1]
        return {
            "miss_rate": rate,
            "miss_rate_low": max(0, rate - width),
            "miss_rate_high": min(ONE, rate + width),
            "miss_rate_limit": self.limit,
            "miss_counts": (ONE << 10) // self.made[0],
        }


def over(x, q15):
    """x / q15 for |x| < 2^28 / 16; q15: 2048..32768."""
    a = abs(x)
    a = (a // q15 << 15) + ((a % q15 << 15) // q15)
    return a if x > 0 else -a

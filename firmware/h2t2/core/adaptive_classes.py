# The adaptive policy for many classes: what adaptive is for two. Around the forecaster stand, in place of all pairs, experts of
# one confidence threshold each: below it they offload, from it on they say the model's own class.
from array import array

from . import defaults
from .class_forecaster import ClassForecaster, confidence, likeliest
from .h2t2 import log2e
from .numbers import ONE, ONE_Q29, divide, exp2, loss, times
from .policy import MOST, OFFLOAD, Policy, checked_integer
from .rules import checked
from .tickets import BETA, BIN, CHANCE
from .watch import AUDITS, ETA, FLOOR, GAMMA, SHARE, STEP

TOLD = 46340  # sqrt 2 in Q15: the most that a label may say an answer costs, either way
FAR = 268435455  # 2^8 octaves, Q20: more than an expert's loss ever has to count


def weights(spent, x, head: int, bin: int) -> None:
    """The experts' weights: x becomes the forecaster's share, Q15, and that of the thresholds that offload in bin, of theirs.

    spent: the losses, Q20 octaves, of the thresholds, then the forecaster's. head: octaves the forecaster began ahead of one.
    """
    last = len(spent) - 1
    least = spent[last] - head
    for i in range(last):
        least = min(least, spent[i])
    total = ask = 0
    for i in range(last):
        w = exp2(spent[i] - least >> 6, 0) >> 14
        total += w
        if bin < i:
            ask += w
    own = exp2(spent[last] - head - least >> 6, 0) >> 14
    while own + total > ONE:
        own >>= 1
        total >>= 1
        ask >>= 1
    x[0] = (own << 14) // (own + total) << 1
    x[1] = (ask << 14) // total << 1 if total else 0


def charge(spent, start: int, stop: int, octaves: int) -> None:
    """Add a loss, Q20 octaves, to experts start to stop - 1."""
    for i in range(start, stop):
        spent[i] = min(max(spent[i] + octaves, -FAR), FAR)


class AdaptiveClasses(Policy):
    """Confidence thresholds and the forecaster of many classes, each with its weight; the forecaster begins with .99 of it.

    Cells are (class of the largest score, its confidence in 2^bits bins). What the forecaster believed in the last round is in
    `forecaster`: `guess`, its `cost` and `width`. State O(K^2 2^bits), a step O(K^2 + 2^bits).
    """

    kind = 4
    name = "adaptive-classes"
    reprices = True

    def __init__(
        self,
        costs: list,
        bits: int = defaults.BITS,
        *,
        beta: int = defaults.BETA,
        seed: int = defaults.SEED,
        window: int = defaults.WINDOW,
        told=None,
    ):
        """costs: as CalibratedMulticlass takes them, K from 2 to 16. bits: 1..6, of the confidence. beta: Q15. told: what a
        label of the remote model says that answers cost, where that model errs: units.told() makes it."""
        checked_integer("bits", bits, 1, 6)
        Policy.__init__(self, seed, window)
        self.classes = n = len(checked(costs))
        self.told = told is not None
        self.costs = array("i", [0] * (n * n))
        self.set_costs([cost for row in told or costs for cost in row])
        self.bits = bits
        self.forecaster = ClassForecaster(bits, n)
        self.rate = log2e(ETA)  # octaves a unit of cost, Q26
        self.head = SHARE + (bits << 20)
        self.spent = array("i", [0] * ((1 << bits) + 2))  # thresholds 0 (never asks) to 2^bits (always), the forecaster
        self.shares = [0, 0]
        self.wishes = array("i", [0] * window)  # of every ticket out: the forecaster's chance << 4 | class
        self.want = self.chance = 0
        self.set_beta(beta)

    def set_deltas(self, fp: int, fn: int) -> None:
        """Refused, for other deltas than it has: the losses come from the cost matrix."""
        if (fp, fn) != (self.delta_fp, self.delta_fn):
            raise ValueError("policy %s has a cost matrix, not deltas" % self.name)

    def set_costs(self, costs) -> None:
        """The cost matrix, flat, for whatever is decided and learned from now on, as `costs` or `told` of its making."""
        if len(costs) != len(self.costs):
            raise ValueError("costs: %d numbers, want %d" % (len(costs), len(self.costs)))
        for cost in costs:
            checked_integer("costs", cost, -TOLD, TOLD)
        for i in range(len(costs)):
            self.costs[i] = costs[i]

    def change_costs(self, entries) -> None:
        """Other costs in some places: (true, said, Q15), of saying `said` when it is `true`; said -1: of whatever else.

        ValueError, and nothing changed, for classes it has not, the diagonal, or where costs were `told`, which hang together.
        """
        n = self.classes
        if self.told:
            raise ValueError("its costs make up for the errors of the remote model: one of them cannot be set alone")
        for true, said, cost in entries:
            if not 0 <= true < n or not -1 <= said < n or said == true:
                raise ValueError("no cost of saying %r for %r among %d classes" % (said, true, n))
            checked_integer("cost", cost, 0, ONE)
        for true, said, cost in entries:
            for j in range(n):
                if j == said or (said < 0 and j != true):
                    self.costs[true * n + j] = cost

    def blind(self) -> int:
        """The class to act on where nothing is known of a sample: the one whose mistakes cost least."""
        n = self.classes
        best = 0
        least = MOST
        for j in range(n):
            cost = 0
            for i in range(n):
                cost += self.costs[i * n + j]
            if cost < least:
                best = j
                least = cost
        return best

    def bin(self, f) -> int:
        """The bin, 0..2^bits - 1, of the largest score, which is how sure the local model is."""
        return confidence(f[likeliest(f)], self.classes, self.bits)

    def likely(self, f) -> int:
        """As Adaptive.likely, for scores f."""
        top = likeliest(f)
        k = confidence(f[top], self.classes, self.bits)
        cell = top << self.bits | k
        weights(self.spent, self.shares, self.head, k)
        if self.shares[0] < ONE - self.shares[0] or not self.forecaster.totals[cell]:  # scores of it were never seen
            return top
        self.forecaster.look(self.costs, cell)
        return self.forecaster.guess

    def decide(self, f) -> int:
        """The class, or OFFLOAD (then `ticket` is set), for scores f: K integers in Q14 that sum to at most 32767."""
        forecaster = self.forecaster
        top = likeliest(f)
        k = confidence(f[top], self.classes, self.bits)
        cell = top << self.bits | k
        forecaster.observe(f, cell)
        if not forecaster.age % 1000:
            self.forget()
        forecaster.look(self.costs, cell)
        guess = forecaster.guess
        beta = self.charged
        self.want = want = ONE if forecaster.cost + forecaster.width > beta else AUDITS[forecaster.audits]
        shares = self.shares
        weights(self.spent, shares, self.head, k)
        g = shares[0]
        self.chance = chance = max(FLOOR, (g * (want >> 1) + (ONE - g) * (shares[1] >> 1)) >> 14)
        mine = g * (ONE - want >> 1) >> 14
        theirs = (ONE - g) * (ONE - shares[1] >> 1) >> 14
        self.local = guess if g >= ONE - g else top
        psi = self.rng.draw()
        if psi < chance:
            action = OFFLOAD
            self.ticket = self.tickets.open(cell, beta, self.local, min(ONE_Q29, chance + GAMMA << 14))
            self.wishes[self.ticket % self.tickets.window] = want << 4 | guess
            if want < ONE:
                forecaster.audited()
        else:
            self.ticket = 0
            action = guess if (psi - chance) * (mine + theirs) < mine * (ONE - chance) else top
        self._ask(k, want, beta, 1)
        return action

    def _ask(self, k, want, beta, sign):
        """Charge beta, Q15, to those that offload in bin k, or take it off them: sign -1."""
        last = len(self.spent) - 1
        charge(self.spent, k + 1, last, times(self.rate >> 6, beta) * sign)
        charge(self.spent, last, last + 1, times(self.rate >> 6, (beta >> 1) * want >> 14) * sign)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As H2T2.learn; label: the class, 0..K-1."""
        if not 0 <= label < self.classes:
            raise ValueError("label %r is not in 0..%d" % (label, self.classes - 1))
        checked_integer("beta", beta, -1, ONE)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        slots = self.tickets.slots
        cell = slots[at + BIN]
        want = self.wishes[ticket % self.tickets.window] >> 4
        guess = self.wishes[ticket % self.tickets.window] & 15
        k = cell & (1 << self.bits) - 1
        if beta >= 0:
            x = beta - slots[at + BETA]
            self._ask(k, want, abs(x), 1 if x > 0 else -1)
        row = label * self.classes
        charge(self.spent, 0, k + 1, self._over(self.costs[row + (cell >> self.bits)], slots[at + CHANCE]))
        last = len(self.spent) - 1
        cost = self.costs[row + guess]
        cost = times(cost, ONE - want) if cost > 0 else -times(-cost, ONE - want)
        charge(self.spent, last, last + 1, self._over(cost, slots[at + CHANCE]))
        self.forecaster.learn(cell, label)
        self.taught += 1
        return True

    def _over(self, cost, chance):
        """The octaves, Q20, of a cost, Q15, estimated from a sample that was seen with that chance, Q29."""
        x = times(self.rate, min(abs(cost), ONE)) + times(self.rate, max(abs(cost) - ONE, 0))
        divide(x if cost > 0 else -x, chance)
        return (min(max(loss[0], -STEP), STEP) << 6) + (loss[1] >> 8)

    def forget(self) -> None:
        """Halve every loss; none of them matters but for its distance from the others."""
        spent = self.spent
        least = spent[0]
        for i in range(len(spent)):
            least = min(least, spent[i])
        for i in range(len(spent)):
            spent[i] = spent[i] - least >> 1

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return self.bits, self.classes, self.told

    def asked(self) -> int:
        """As Policy.asked."""
        return self.chance

    def scalars(self):
        """As Policy.scalars."""
        yield from Policy.scalars(self)
        yield from self.forecaster.scalars()

    def arrays(self):
        """As Policy.arrays."""
        yield self.costs, ((-TOLD, TOLD),)
        yield self.spent, ((-FAR, FAR),)
        yield from self.forecaster.arrays()

    def restored(self) -> None:
        """As Policy.restored."""
        self.set_beta(self.beta)
        self.forecaster.restored()

    def reset(self) -> None:
        """As Policy.reset."""
        Policy.reset(self)
        for i in range(len(self.spent)):
            self.spent[i] = 0
        self.forecaster.clear()

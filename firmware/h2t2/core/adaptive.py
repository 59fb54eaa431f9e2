# The adaptive policy: H2T2 with one expert more, the forecaster, which knows how often each bin holds an event and applies
# Theorem 1 to it. What needs no tuning has no option.
from array import array

from . import defaults
from .experts import ROOM
from .forecaster import Forecaster
from .h2t2 import H2T2
from .numbers import FINE, ONE, ONE_Q29, divide, exp2, loss, times
from .policy import OFFLOAD
from .tickets import BETA, BIN, CHANCE, FIELDS
from .watch import AUDITS, ETA, FLOOR, GAMMA, SHARE, STEP

FAR = 536870911  # of `lead`, 2^9 octaves


def wanted(p, low, high, count, beta, delta_fp, delta_fn, lower, upper, least):
    """The forecaster's probability to offload, Q15, doubled, and its class: chance << 1 | class.

    p, low, high: P(event) and its interval, Q15, 1..32767; count: the labels behind it, quarters. lower, upper: between them
    offloading is cheapest (Theorem 1). It offloads where the interval meets them; elsewhere by what the other class could save
    inside the interval, over what an offload costs more, and less the more labels there are; never less than `least`.
    """
    zero = p * delta_fn
    one = (ONE - p) * delta_fp
    guess = 1 if one <= zero else 0
    if lower < upper and high > lower and low < upper:
        return ONE << 1 | guess
    if guess:
        gain = ((ONE - low) * delta_fp >> 15) - (low * delta_fn >> 15)
    else:
        gain = (high * delta_fn >> 15) - ((ONE - high) * delta_fp >> 15)
    if gain > 0:
        more = max(33, beta - (min(zero, one) >> 15))
        gain = min((gain << 14) // more, 4194304) * 200 // (200 + count) << 1
        least = max(least, min(ONE, gain))
    return least << 1 | guess


def part(lead: int, unit: int) -> int:
    """1 / (1 + 2^-lead) in Q15, for a logarithm |lead| < 2^30 in units of 2^unit of its last place."""
    x = exp2(abs(lead), unit) >> 14
    return (ONE_Q29 if lead >= 0 else x << 14) // (ONE + x) << 1


class Adaptive(H2T2):
    """All pairs of thresholds and the forecaster, each with its weight; the forecaster begins with .99 of it.

    The pairs' losses are H2T2's `all` with eta = .05, divided by P(offload) + .02, and halved every 1000 rounds; the
    forecaster's are estimated the same way. It offloads with .005 at least, for ever. Costs may change at any time: the
    forecaster keeps counts, so for it they are in force at once.
    """

    kind = 3
    name = "adaptive"
    reprices = True

    def __init__(
        self,
        bits: int = defaults.BITS,
        *,
        beta: int = defaults.BETA,
        delta_fp: int = defaults.DELTA_FP,
        delta_fn: int = defaults.DELTA_FN,
        seed: int = defaults.SEED,
        window: int = defaults.WINDOW,
        rdl_fp: int = defaults.RDL_FP,
        rdl_fn: int = defaults.RDL_FN,
        prior=None,
    ):
        """bits 1..12; Q15 costs and remote error rates. prior: how often each of the 2^bits bins holds an event, as is believed
        before any label, Q15; None: as its scores say."""
        self.forecaster = Forecaster(bits, prior)
        self.lead = 0  # logarithm, Q20 octaves, of the forecaster's weight over the pair (0, 0)'s, beside what it began with
        self.ahead = SHARE + ((2 * bits - 1) << 20)
        self.want = self.guess = self.chance = 0
        self.p = self.low = self.high = 0  # of the bin looked at last
        self.sure = False  # whether it would look there no more often than it must
        self.one = self.zero = 0  # what the last round's answers 1 and 0 weighed
        self.floor = FLOOR  # the least probability to ask
        self.fp = self.fn = self.fee = 0  # what errors and an offload count for the forecaster
        self.cut = ONE  # what a cost of 1 counts beside them
        H2T2.__init__(
            self, bits, beta=beta, delta_fp=delta_fp, delta_fn=delta_fn, eta=ETA, epsilon=ONE, seed=seed, feedback="all",
            exploration="epsilon", window=window, rdl_fp=rdl_fp, rdl_fn=rdl_fn,
        )  # fmt: skip
        self.wishes = array("i", [0] * window)  # of every ticket out: the forecaster's chance << 1 | class

    def set_deltas(self, fp: int, fn: int) -> None:
        """As H2T2.set_deltas; for the forecaster they are in force at once."""
        H2T2.set_deltas(self, fp, fn)
        self.fp = fp
        self.fn = fn
        self.set_charge(self.charged)

    def set_prior(self, prior) -> None:
        """Another table, as at the start. What labels have said stays."""
        self.forecaster.set_prior(prior)

    def set_charge(self, beta: int) -> None:
        """As H2T2.set_charge."""
        H2T2.set_charge(self, beta)
        self.reckon()

    def reckon(self) -> None:
        """What an offload counts, and between which P(event) it is cheapest, Q15: `fee`, `lower`, `upper` (Theorem 1)."""
        self.fee = fee = times(self.charged, self.cut)
        self.lower = ratio(fee, self.fn)
        self.upper = ONE - ratio(fee, self.fp)

    def estimate(self, k: int) -> None:
        """What the forecaster believes of bin k: P(event) `p`, its interval `low`, `high`, Q15; a wrong remote allowed for."""
        seen = self.forecaster
        seen.look(k)
        self.p = seen.p
        self.low = seen.low
        self.high = seen.high
        if self.rdl_fp or self.rdl_fn:
            clear = ONE - self.rdl_fp - self.rdl_fn
            self.p = _clear(self.p, self.rdl_fp, clear)
            self.low = _clear(self.low, self.rdl_fp, clear)
            self.high = _clear(self.high, self.rdl_fp, clear)

    def _believe(self, k, total):
        """What the forecaster says of bin k: `guess`, `want`; then its part of the weight, Q15. total: the pairs' weight."""
        self.estimate(k)
        seen = self.forecaster
        least = max(self.floor, AUDITS[seen.audits])
        x = wanted(self.p, self.low, self.high, seen.count, self.fee, self.fp, self.fn, self.lower, self.upper, least)
        self.guess = x & 1
        self.want = x >> 1
        self.sure = self.want == least
        experts = self.experts
        return part((self.ahead + self.lead >> 6 + experts.unit) - total, experts.unit)

    def decide(self, k: int) -> int:
        """One round for a sample in bin k, 0 <= k < 2^bits: 0 or 1 (act on it), or OFFLOAD (then `ticket` is set)."""
        experts = self.experts
        if not 0 <= k < experts.n:
            raise ValueError("bin %r is not in 0..%d" % (k, experts.n - 1))
        self.forecaster.see(k)
        if not self.forecaster.age % 1000:
            self.forget()
        if experts.spent > ROOM:
            experts.coarsen()
        g = self._believe(k, experts.regions(k))
        want = self.want
        rest = ONE - g
        self.one = one = (rest * (experts.one >> 1) + (g * (ONE - want >> 1) if self.guess else 0)) >> 14
        self.zero = zero = (rest * (experts.zero >> 1) + (0 if self.guess else g * (ONE - want >> 1))) >> 14
        self.chance = chance = max(self.floor, (g * (want >> 1) + rest * (experts.offload >> 1)) >> 14)
        self.local = self.guess if g >= rest else experts.local
        psi = self.rng.draw()
        if psi < chance:
            action = OFFLOAD
            self.ticket = self.tickets.open(k, self.charged, self.local, min(ONE_Q29, chance + GAMMA << 14))
            self.wishes[self.ticket % self.tickets.window] = want << 1 | self.guess
            if self.sure:
                self.forecaster.audited()
        else:
            self.ticket = 0
            action = self.guess
            if one + zero:
                action = 1 if (psi - chance) * (one + zero) < one * (ONE - chance) else 0
        lo = self.beta_lo
        experts.charge(k, -self.beta_hi - (lo > 0), -lo & FINE, self.beta_hi, lo)
        self._move(-times(self.rate >> 6, (self.charged >> 1) * want >> 14))
        return action

    def likely(self, k: int) -> int:
        """The class to act on in bin k without asking: no draw, no charge, nothing learned."""
        if self.experts.spent > ROOM:
            self.experts.coarsen()
        g = self._believe(k, self.experts.regions(k))
        return self.guess if g >= ONE - g else self.experts.local

    def _move(self, octaves):
        """Add to `lead`."""
        self.lead = min(max(self.lead + octaves, -FAR), FAR)

    def forget(self) -> None:
        """Halve every cumulative loss of the experts."""
        H2T2.forget(self)
        self.lead -= self.lead >> 1

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As H2T2.learn."""
        if not H2T2.learn(self, ticket, label, beta):
            return False
        at = ticket % self.tickets.window
        want = self.wishes[at]
        zero = self.rates[label << 1]
        one = self.rates[label << 1 | 1]
        mine = one if want & 1 else zero
        want >>= 1
        slots = self.tickets.slots  # a ticket that is taken leaves its slot as it was
        at *= FIELDS
        if beta >= 0:
            x = times(self.rate >> 6, (abs(beta - slots[at + BETA]) >> 1) * want >> 14)
            self._move(-x if beta > slots[at + BETA] else x)
        mine = times(mine, ONE - want) if mine > 0 else -times(-mine, ONE - want)
        divide(one - mine, slots[at + CHANCE])
        self._move((min(max(loss[0], -STEP), STEP) << 6) + (loss[1] >> 8))
        self.forecaster.learn(slots[at + BIN], label)
        return True

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return self.bits, self.rdl_fp, self.rdl_fn

    def asked(self) -> int:
        """As Policy.asked."""
        return self.chance

    def scalars(self):
        """As Policy.scalars."""
        yield from H2T2.scalars(self)
        yield self, "lead", -FAR, FAR
        yield from self.forecaster.scalars()

    def arrays(self):
        """As Policy.arrays."""
        yield from H2T2.arrays(self)
        yield from self.forecaster.arrays()

    def restored(self) -> None:
        """As Policy.restored."""
        H2T2.restored(self)
        self.forecaster.restored()

    def reset(self) -> None:
        """As Policy.reset."""
        H2T2.reset(self)
        self.lead = 0
        self.forecaster.clear()


def ratio(a, b):
    """a / b in Q15, at most 1."""
    return ONE if a >= b else (a << 15) // b


def _clear(p, wrong, clear):
    """What is left of a share p of labels without those that are wrong, Q15, 1..32767."""
    return min(max((p - wrong << 14) // clear << 1, 1), ONE - 1)

# The calibrating policy: learns how often each bin holds an event, and applies Theorem 1 to what it knows of it.
# O(1) a step, no exponentials; thresholds need not be monotone, so a model whose scores are upside down is served too.
from array import array

from . import defaults
from .numbers import ONE
from .policy import MOST, OFFLOAD, Policy, checked_integer, checked_options
from .tickets import BIN

UNIT = 16  # counts are kept in sixteenths, so that halving forgets evenly
FULL = 524288  # a bin's counts are halved when they reach 2^19 / 16 = 32768 labels
ONE_Q20 = 1048576  # 1.0 in Q20, the format of p and its interval
FLOOR = 655  # .02 in Q15: how often a forgetting policy looks wherever it is


def square_root(x: int) -> int:
    """floor(sqrt(x)) for 0 <= x < 2^30, fifteen steps."""
    root = 0
    bit = 16384
    while bit:
        if (root + bit) * (root + bit) <= x:
            root += bit
        bit >>= 1
    return root


class Calibrating(Policy):
    """Per bin, n labels of which n1 were events give p = (n1 + 1/2) / (n + 1) and the interval p +- w,

        w = 3/2 (sqrt(p (1 - p) / (n + 1)) + 1 / (2 (n + 1))).

    While the interval meets the region where offloading is cheapest, beta / delta_-1 < p < 1 - beta / delta_1, it offloads.
    Elsewhere it predicts the class that is cheaper at p, and still offloads with probability min(1, G / (x (1 + n / 50))): G is
    the most the other class could save inside the interval, x what an offload costs above the prediction. Same
    decide/learn/lose as H2T2; `beta` at learn is accepted and not needed. `offload`: the probability it offloaded with, Q15.
    """

    kind = 3
    name = "calibrating"
    reprices = True  # it keeps counts, not losses

    def __init__(
        self,
        bits: int = defaults.BITS,
        beta: int = defaults.BETA,
        delta_fp: int = defaults.DELTA_FP,
        delta_fn: int = defaults.DELTA_FN,
        seed: int = defaults.SEED,
        half_life: int = defaults.HALF_LIFE,
        window: int = defaults.WINDOW,
        rdl_fp: int = defaults.RDL_FP,
        rdl_fn: int = defaults.RDL_FN,
    ):
        """bits 1..12; Q15 costs and remote error rates; half_life: 0, or rounds between two halvings of all counts."""
        checked_options(bits, beta, delta_fp, delta_fn, half_life, rdl_fp, rdl_fn)
        if rdl_fp + rdl_fn > 31129:
            raise ValueError("rdl_fp %d + rdl_fn %d leave too little to learn from" % (rdl_fp, rdl_fn))
        Policy.__init__(self, seed, window, delta_fp, delta_fn)
        self.n = 1 << bits
        self.events = array("i", [0] * self.n)  # sixteenths
        self.labels = array("i", self.events)
        self.rdl_fp = rdl_fp
        self.clear = ONE - rdl_fp - rdl_fn  # what a wrong remote leaves of the difference between the classes
        self.half_life = half_life
        self.options = (bits, half_life, rdl_fp, rdl_fn)
        self.set_beta(beta)
        self.offload = 0
        self.p = self.low = self.high = 0  # of the bin looked at last, Q20

    def set_beta(self, beta: int) -> None:
        """The cost of an offload from the next round on, Q15, 0..32768."""
        checked_integer("beta", beta, 0, ONE)
        self.beta = beta
        self.set_charge(beta)

    def set_charge(self, beta: int) -> None:
        """What offloads are charged for the time being (a link that is down), until set_beta() or another set_charge(); Q15."""
        self.charged = beta
        # the region's bounds, Q20; empty where lower >= upper
        self.lower = _divide(beta, self.delta_fn) if beta < self.delta_fn else ONE_Q20
        self.upper = ONE_Q20 - _divide(beta, self.delta_fp) if beta < self.delta_fp else 0

    def estimate(self, k: int) -> None:
        """`p` and its interval `low`, `high` for bin k, Q20."""
        n = self.labels[k] + UNIT
        p = _divide(self.events[k] + UNIT // 2, n)
        v = p >> 5
        v *= ONE - v
        v = v // n * UNIT + v % n * UNIT // n  # p (1 - p) / (n + 1), Q30
        shift = 5
        while shift and v < 268435456:
            v <<= 2
            shift -= 1
        w = 3 * ((square_root(v) << shift) + (ONE_Q20 // 2 * UNIT) // n) >> 1
        if self.clear < ONE:
            p = _clip(_over(p - (self.rdl_fp << 5), self.clear))
            w = _over(w, self.clear)
        self.p = p
        self.low = _clip(p - w)
        self.high = _clip(p + w)

    def set_deltas(self, fp: int, fn: int) -> None:
        """The costs of a false positive and a false negative from the next round on, Q15, 0..32768."""
        if not (0 <= fp <= ONE and 0 <= fn <= ONE):
            raise ValueError("deltas %r, %r are not in 0..32768" % (fp, fn))
        self.delta_fp = fp
        self.delta_fn = fn
        self.set_beta(self.beta)

    def likely(self, k: int) -> int:
        """The class to act on in bin k without asking: no draw, no charge, nothing learned."""
        self.estimate(k)
        return 1 if _cost(ONE_Q20 - self.p, self.delta_fp) <= _cost(self.p, self.delta_fn) else 0

    def decide(self, k: int) -> int:
        """One round for a sample in bin k, 0 <= k < 2^bits: 0 or 1 (act on it), or OFFLOAD (then `ticket` is set)."""
        if not 0 <= k < self.n:
            raise ValueError("bin %r is not in 0..%d" % (k, self.n - 1))
        if self.half_life:
            self.age += 1
            if self.age > self.half_life:
                self.age = 1
                self.forget()
        self.local = self.likely(k)
        zero = _cost(self.p, self.delta_fn)
        one = _cost(ONE_Q20 - self.p, self.delta_fp)
        self.offload = self._chance(k, min(zero, one))
        if self.rng.draw() < self.offload:
            self.ticket = self.tickets.open(k, self.charged, self.local, 1)
            return OFFLOAD
        self.ticket = 0
        return self.local

    def _chance(self, k, cost):
        """The probability to offload, Q15, where predicting costs `cost`."""
        if self.lower < self.upper and self.high > self.lower and self.low < self.upper:
            return ONE
        edge = self.low if self.local else self.high  # where the other class looks best
        gain = _cost(edge, self.delta_fn) - _cost(ONE_Q20 - edge, self.delta_fp)
        if self.local:
            gain = -gain
        chance = FLOOR if self.half_life else 0
        if gain > 0:
            more = (self.charged << 10) - cost
            if more <= 0 or gain // 32768 >= more:
                return ONE
            while more >= 1048576:
                more >>= 1
                gain >>= 1
            x = gain % more << 10  # long division, the Q15 fraction's first ten bits and then five
            gain = gain // more << 15 | x // more << 5 | (x % more << 5) // more
            n = self.labels[k] + 50 * UNIT
            chance = max(chance, gain // n * (50 * UNIT) + gain % n * (50 * UNIT) // n)
        return min(chance, ONE)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """The remote label (0 or 1) of a ticket. True if it taught; False, counted, for a ticket not outstanding."""
        if label != 0 and label != 1:
            raise ValueError("label %r is not 0 or 1" % label)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        k = self.tickets.slots[at + BIN]
        self.labels[k] += UNIT
        self.events[k] += UNIT * label
        if self.labels[k] >= FULL:
            self.labels[k] >>= 1
            self.events[k] >>= 1
        self.taught += 1
        return True

    def forget(self) -> None:
        """Halve every count."""
        k = self.n
        while k:
            k -= 1
            self.labels[k] >>= 1
            self.events[k] >>= 1

    def asked(self) -> int:
        """As Policy.asked."""
        return self.offload

    def parts(self):
        """As Policy.parts."""
        scalars, arrays = Policy.parts(self)
        scalars.append((self, (("delta_fp", 0, ONE), ("delta_fn", 0, ONE))))
        return scalars, arrays + [(self.labels, ((0, MOST),)), (self.events, ((0, MOST),))]

    def restored(self) -> None:
        """After restore(): what follows from the state is computed anew."""
        self.set_beta(self.beta)

    def reset(self) -> None:
        """As Policy.reset."""
        Policy.reset(self)
        for k in range(self.n):
            self.labels[k] = self.events[k] = 0


def _divide(a, b):
    """a / b in Q20, rounded down, for 0 <= a <= b < 2^20."""
    a <<= 10
    return a // b << 10 | (a % b << 10) // b


def _cost(p, delta):
    """p * delta in Q25 for p in Q20 and delta in Q15."""
    return (p >> 10) * delta + ((p & 1023) * delta >> 10)


def _clip(p):
    return min(max(p, 0), ONE_Q20)


def _over(x, clear):
    """x * 2^15 / clear for |x| <= 2^22 and 1638 <= clear <= 2^15."""
    return (x // clear << 15) + (x % clear << 15) // clear

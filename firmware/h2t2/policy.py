# H2T2 (Algorithm 1) and its options: decide, learn. The weights are in experts, the draws in rng, late labels in tickets.
from .experts import ROOM, Experts
from .fixed import FINE, ONE, WHOLE, divide, loss, scale, times
from .rng import Rng
from .tickets import BETA, BIN, CHANCE, Tickets

OFFLOAD = -1  # decide()'s other answer, beside the classes 0, 1, ...


def log2e(x):
    """x * log2(e) for 0 <= x < 2^29 / log2(e), to nearest but one: natural units to octaves."""
    return x + ((x >> 15) * 14506 + ((x & 32767) * 14506 + (x >> 15) * 7573 >> 15))


def checked_options(bits, beta, delta_fp, delta_fn, half_life, rdl_fp, rdl_fn):
    """Raise ValueError, naming it, for an option that every policy has and that is out of range."""
    for name, value, low, high in (
        ("bits", bits, 1, 12),
        ("beta", beta, 0, ONE),
        ("delta_fp", delta_fp, 0, ONE),
        ("delta_fn", delta_fn, 0, ONE),
        ("half_life", half_life, 0, 268435455),
        ("rdl_fp", rdl_fp, 0, ONE),
        ("rdl_fn", rdl_fn, 0, ONE),
    ):
        if not low <= value <= high:
            raise ValueError("%s %r is not in %d..%d" % (name, value, low, high))


def checked_cost(beta):
    """Raise ValueError for a cost above 1; below 0 it means "as charged"."""
    if beta > ONE:
        raise ValueError("beta %r is not in 0..32768" % beta)


class H2T2:
    """The two-threshold policy of the paper, learned online from the labels of offloaded samples alone.

    Costs and probabilities are Q15 integers (32768 = 1.0), eta is Q26. `decide` and `learn` are O(bits) and allocate
    nothing. Attributes to read after decide(): `ticket` (0 unless offloaded), `local` (the class to fall back to should the
    label never come), and `experts.offload`, `experts.one`, `experts.zero`: the region probabilities, Q15.
    """

    def __init__(
        self,
        bits=4,
        beta=9830,
        delta_fp=22938,
        delta_fn=ONE,
        eta=67108864,
        epsilon=2048,
        seed=1,
        feedback="explored",
        exploration="epsilon",
        half_life=0,
        window=8,
        rdl_fp=0,
        rdl_fn=0,
    ):
        """Defaults: b = 4, beta = .3, delta_1 = .7, delta_-1 = 1, eta = 1, epsilon = 1/16, Algorithm 1 as printed.

        beta, delta_fp, delta_fn: costs of an offload, a false positive, a false negative, 0..32768.
        eta: learning rate in Q26, 1..372000000 (5.5). epsilon: exploration, 1..32768.
        feedback: "explored" (the paper: phi / epsilon when explored) or "all" (phi / P(offload) on every offload).
        exploration: "epsilon" (fixed) or "anytime" (epsilon_t = 2 / floor(4 t^(1/3)), at most 1/2; `epsilon` unused).
        half_life: 0, or rounds between two halvings of all losses; t of "anytime" then stops at twice that.
        window: labels that may be outstanding. rdl_fp, rdl_fn: known error rates of the remote model, sum below 1.
        Raises ValueError, naming the argument, for a value out of range.
        """
        checked_options(bits, beta, delta_fp, delta_fn, half_life, rdl_fp, rdl_fn)
        for name, value, high in (("eta", eta, 372000000), ("epsilon", epsilon, ONE)):
            if not 1 <= value <= high:
                raise ValueError("%s %r is not in 1..%d" % (name, value, high))
        if feedback not in ("explored", "all"):
            raise ValueError("feedback %r is not explored or all" % feedback)
        if exploration not in ("epsilon", "anytime"):
            raise ValueError("exploration %r is not epsilon or anytime" % exploration)
        self.experts = Experts(bits)
        self.rng = Rng(seed)
        self.tickets = Tickets(window)
        self.all = feedback == "all"
        self.anytime = exploration == "anytime"
        self.epsilon = epsilon
        self.half_life = half_life
        self.rate = log2e(eta)  # octaves a unit of cost, Q26
        self.rdl_fp = rdl_fp
        self.rdl_fn = rdl_fn
        self.set_deltas(delta_fp, delta_fn)
        self.options = (bits, self.rate, self.all, self.anytime, half_life, window, delta_fp, delta_fn, rdl_fp, rdl_fn)
        self.cell = 0  # added to the bin in a ticket: which learner, where there are several
        self.set_beta(beta)
        self.t = 0  # rounds of "anytime", saturating
        self.age = 0  # rounds since the last halving by half_life
        self.root = 3  # floor(4 t^(1/3)) of "anytime"
        self.taught = 0
        self.ticket = self.local = 0

    def set_deltas(self, fp, fn):
        """The costs of a false positive and a false negative for the labels to come, Q15, 0..32768.

        `rates`: octaves (Q26, signed) a label charges to predicting (0 after label 0, 1 after 0, 0 after 1, 1 after 1).
        With a remote model wrong at rates e0 (says 1 for 0) and e1 (says 0 for 1), the loss estimate
        ((1 - e_other) loss(label) - e_label loss(other)) / (1 - e0 - e1) is unbiased (Natarajan et al., NeurIPS 2013).
        """
        if not (0 <= fp <= ONE and 0 <= fn <= ONE):
            raise ValueError("deltas %r, %r are not in 0..32768" % (fp, fn))
        e0 = self.rdl_fp
        e1 = self.rdl_fn
        d = ONE - e0 - e1
        if d < 1 or self.rate // d >= 16384:
            raise ValueError("rdl_fp %d + rdl_fn %d leave too little to learn from" % (e0, e1))
        self.delta_fp = fp
        self.delta_fn = fn
        fp = times(self.rate, fp)
        fn = times(self.rate, fn)
        self.rates = [-_over(fn, e0, d), _over(fp, ONE - e1, d), _over(fn, ONE - e0, d), -_over(fp, e1, d)]

    def set_beta(self, beta):
        """The offloading cost in force from the next round on, Q15, 0..32768."""
        if not 0 <= beta <= ONE:
            raise ValueError("beta %r is not in 0..32768" % beta)
        self.beta = beta
        scale(self.rate, beta)
        self.beta_hi = loss[0]
        self.beta_lo = loss[1]

    def decide(self, k):
        """One round for a sample in bin k, 0 <= k < 2^bits: 0 or 1 (act on it), or OFFLOAD (then `ticket` is set)."""
        experts = self.experts
        if not 0 <= k < experts.n:
            raise ValueError("bin %r is not in 0..%d" % (k, experts.n - 1))
        if (self.anytime or self.half_life) and self._tick():
            self.forget()
        if experts.spent > ROOM:
            experts.coarsen()
        experts.regions(k)
        self.local = experts.local
        psi = self.rng.draw()
        explore = self.rng.draw() < self.epsilon
        offload = experts.offload
        if psi < offload or explore:
            chance = 0
            if self.all:
                chance = experts.chance
                chance += times(WHOLE - chance, self.epsilon)
            elif explore:
                chance = self.epsilon << 14
            action = OFFLOAD
            self.ticket = self.tickets.open(self.cell + k, self.beta, self.local, chance)
        else:
            action = 1 if psi < offload + experts.one else 0
            self.ticket = 0
        # every round charges the offloading experts of this bin: A - B loses beta, B - C gains it
        lo = self.beta_lo
        experts.charge(k, -self.beta_hi - (lo > 0), -lo & FINE, self.beta_hi, lo)
        return action

    def likely(self, k):
        """The class to act on in bin k without asking: no draw, no charge, nothing learned."""
        if self.experts.spent > ROOM:
            self.experts.coarsen()
        self.experts.regions(k)
        return self.experts.local

    def _tick(self):
        """Count the round, for the anytime exploration and for forgetting: True when it is time to forget."""
        if self.anytime and self.t < 16777215 and not (self.half_life and self.t >= self.half_life << 1):
            self.t += 1
            while (self.root + 1) * (self.root + 1) * (self.root + 1) <= self.t << 6:
                self.root += 1
            self.epsilon = min(16384, 65536 // self.root)
        if self.half_life:
            self.age += 1
            if self.age > self.half_life:
                self.age = 1
                return True
        return False

    def forget(self):
        """Halve every cumulative loss."""
        self.experts.rebuild(not self.experts.unit, True)

    def learn(self, ticket, label, beta=-1):
        """The remote label (0 or 1) of a ticket, and the cost it really had (Q15; -1: as charged). True if it taught.

        False, and counted in `tickets.refused`, for a ticket that is unknown, expired or was used before.
        """
        if label != 0 and label != 1:
            raise ValueError("label %r is not 0 or 1" % label)
        checked_cost(beta)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        if self.experts.spent > ROOM:
            self.experts.coarsen()
        label <<= 1
        self._teach(at, beta, self.tickets.slots[at + BIN], self.rates[label], self.rates[label + 1])
        return True

    def _teach(self, at, beta, k, zero, one):
        """Charge bin k of `experts`: the cost's correction, and `zero`, `one` (octaves, Q26) to predicting 0 and 1."""
        slots = self.tickets.slots
        experts = self.experts
        if beta >= 0:
            beta -= slots[at + BETA]
            scale(self.rate if beta > 0 else -self.rate, abs(beta))
            experts.charge(k, -loss[0] - (loss[1] > 0), -loss[1] & FINE, loss[0], loss[1])
        at = slots[at + CHANCE]
        if at:
            divide(zero, at)
            zero = loss[0]
            beta = loss[1]
            divide(-one, at)
            experts.charge(k, zero, beta, loss[0], loss[1])
        self.taught += 1

    def lose(self, ticket):
        """Give up on a label: the class to act on, or -1 for a ticket not outstanding. Its beta is charged already."""
        return self.tickets.lose(ticket)


def _over(x, num, den):
    """x * num / den for Q26 x and Q15 num, den; set-up only."""
    divide(times(x, num), den << 14)
    return loss[0] << 12 | loss[1] >> 2

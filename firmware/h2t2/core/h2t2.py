# H2T2 (Algorithm 1) and its options: decide, learn. The weights are in experts, the draws in rng, late labels in tickets.
from . import defaults
from .experts import COARSEST, ROOM, Experts
from .numbers import FINE, ONE, ONE_Q29, divide, loss, scale, times
from .policy import OFFLOAD, Policy, checked_integer, checked_options
from .tickets import BETA, BIN, CHANCE


def log2e(x: int) -> int:
    """x * log2(e) for 0 <= x < 2^29 / log2(e), to nearest but one: natural units to octaves."""
    return x + ((x >> 15) * 14506 + ((x & 32767) * 14506 + (x >> 15) * 7573 >> 15))


class H2T2(Policy):
    """The two-threshold policy of the paper, learned online from the labels of offloaded samples alone.

    Costs and probabilities are Q15 integers (32768 = 1.0), eta is Q26; h2t2.units makes them from people's numbers. `decide`
    and `learn` are O(bits) and allocate nothing. `experts.offload`, `experts.one`, `experts.zero` are the region
    probabilities of the last round, Q15.
    """

    kind = 1
    name = "h2t2"

    def __init__(
        self,
        bits: int = defaults.BITS,
        *,
        beta: int = defaults.BETA,
        delta_fp: int = defaults.DELTA_FP,
        delta_fn: int = defaults.DELTA_FN,
        eta: int = defaults.ETA,
        epsilon: int = defaults.EPSILON,
        seed: int = defaults.SEED,
        feedback: str = defaults.FEEDBACK,
        exploration: str = defaults.EXPLORATION,
        half_life: int = defaults.HALF_LIFE,
        window: int = defaults.WINDOW,
        rdl_fp: int = defaults.RDL_FP,
        rdl_fn: int = defaults.RDL_FN,
    ):
        """Algorithm 1 as printed is feedback="explored", exploration="epsilon".

        beta, delta_fp, delta_fn: costs of an offload, a false positive, a false negative, 0..32768.
        eta: learning rate in Q26, 1..372000000 (5.5). epsilon: exploration, 1..32768.
        feedback: "all" (phi / P(offload) on every offload) or "explored" (the paper: phi / epsilon when explored).
        exploration: "anytime" (epsilon_t = 2 / floor(4 t^(1/3)), at most 1/2; `epsilon` unused) or "epsilon" (fixed).
        half_life: 0, or rounds between two halvings of all losses; t of "anytime" then stops at twice that.
        window: labels that may be outstanding. rdl_fp, rdl_fn: known error rates of the remote model, sum below 1.
        Raises ValueError, naming the argument, for a value out of range or a float.
        """
        checked_options(bits, beta, delta_fp, delta_fn, half_life, rdl_fp, rdl_fn)
        checked_integer("eta", eta, 1, 372000000, "q26")
        checked_integer("epsilon", epsilon, 1, ONE)
        if feedback not in ("explored", "all"):
            raise ValueError("feedback %r is not explored or all" % feedback)
        if exploration not in ("epsilon", "anytime"):
            raise ValueError("exploration %r is not epsilon or anytime" % exploration)
        Policy.__init__(self, seed, window)
        self.bits = bits
        self.experts = Experts(bits)
        self.all = feedback == "all"
        self.anytime = exploration == "anytime"
        self.epsilon = epsilon
        self.half_life = half_life
        self.rate = log2e(eta)  # octaves a unit of cost, Q26
        self.rdl_fp = rdl_fp
        self.rdl_fn = rdl_fn
        self.set_deltas(delta_fp, delta_fn)
        self.set_beta(beta)
        self.cell = 0  # added to the bin in a ticket: which learner, where there are several
        self.t = 0  # rounds of "anytime", saturating
        self.root = 3  # floor(4 t^(1/3)) of "anytime"

    def set_deltas(self, fp: int, fn: int) -> None:
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

    def set_charge(self, beta: int) -> None:
        """As Policy.set_charge."""
        Policy.set_charge(self, beta)
        scale(self.rate, beta)
        self.beta_hi, self.beta_lo = loss

    def decide(self, k: int) -> int:
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
                chance += times(ONE_Q29 - chance, self.epsilon)
            elif explore:
                chance = self.epsilon << 14
            action = OFFLOAD
            self.ticket = self.tickets.open(self.cell + k, self.charged, self.local, chance)
        else:
            action = 1 if psi < offload + experts.one else 0
            self.ticket = 0
        # every round charges the offloading experts of this bin: A - B loses beta, B - C gains it
        lo = self.beta_lo
        experts.charge(k, -self.beta_hi - (lo > 0), -lo & FINE, self.beta_hi, lo)
        return action

    def likely(self, k: int) -> int:
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

    def forget(self) -> None:
        """Halve every cumulative loss."""
        self.experts.rebuild(not self.experts.unit, True)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """The remote label (0 or 1) of a ticket, and the cost it really had (Q15; -1: as charged). True if it taught.

        False, and counted in `tickets.refused`, for a ticket that is unknown, expired or was used before.
        """
        if label != 0 and label != 1:
            raise ValueError("label %r is not 0 or 1" % label)
        checked_integer("beta", beta, -1, ONE)
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

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        return self.bits, self.rate, self.all, self.anytime, self.half_life, self.rdl_fp, self.rdl_fn

    def asked(self) -> int:
        """As Policy.asked: P(offload), or an exploration."""
        chance = self.experts.chance
        return (chance + times(ONE_Q29 - chance, self.epsilon)) >> 14

    def trees(self):
        """The expert trees it learns with."""
        return [self.experts]

    def scalars(self):
        """As Policy.scalars."""
        yield from Policy.scalars(self)
        yield self, "delta_fp", 0, ONE
        yield self, "delta_fn", 0, ONE
        for name, least, most in (("t", 0, 16777215), ("root", 3, 1024), ("epsilon", 1, ONE)):
            yield self, name, least, most
        for tree in self.trees():
            yield tree, "spent", 0, 1 << 28
            yield tree, "unit", 0, COARSEST

    def arrays(self):
        """As Policy.arrays."""
        for tree in self.trees():
            yield tree.losses, None
            yield tree.fine, ()

    def restored(self) -> None:
        """After restore(): what follows from the state is computed anew."""
        self.set_deltas(self.delta_fp, self.delta_fn)
        self.set_beta(self.beta)
        for tree in self.trees():
            tree.rebuild(False, False)

    def reset(self) -> None:
        """As Policy.reset."""
        Policy.reset(self)
        self.t = 0
        self.root = 3
        for tree in self.trees():
            tree.clear()


def _over(x, num, den):
    """x * num / den for Q26 x and Q15 num, den; set-up only."""
    divide(times(x, num), den << 14)
    return loss[0] << 12 | loss[1] >> 2

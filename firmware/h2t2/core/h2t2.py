# H2T2 (Algorithm 1) and its options: when to explore, decide and forget. Pairs has what labels teach the experts.
from . import defaults
from .experts import MAX_ROUNDS, ROOM, Pairs
from .numbers import ONE_Q29, times
from .policy import OFFLOAD, checked_integer


class H2T2(Pairs):
    """The two-threshold policy of the paper, learned online from the labels of offloaded samples alone."""

    kind = 1
    name = "h2t2"

    def __init__(
        self, bits: int = defaults.BITS, *, beta: int = defaults.BETA, delta_fp: int = defaults.DELTA_FP,
        delta_fn: int = defaults.DELTA_FN, eta: int = defaults.ETA, epsilon: int = defaults.EPSILON,
        seed: int = defaults.SEED, feedback: str = defaults.FEEDBACK, exploration: str = defaults.EXPLORATION,
        half_life: int = defaults.HALF_LIFE, window: int = defaults.WINDOW, rdl_fp: int = defaults.RDL_FP,
        rdl_fn: int = defaults.RDL_FN,
    ):  # fmt: skip
        """Algorithm 1 as printed is feedback="explored", exploration="epsilon".

        Args:
            bits: 1..12; the score has 2^bits bins.
            beta, delta_fp, delta_fn: Costs of an offload, a false positive, a false negative, 0..32768.
            eta: Learning rate in Q26, 1..372000000 (5.5).
            epsilon: Exploration rate, 1..32768.
            feedback: "all" (phi / P(offload) on every offload) or "explored" (the paper: phi / epsilon when explored).
            exploration: "anytime" (epsilon_t = 2 / floor(4 t^(1/3)), at most 1/2; `epsilon` unused) or "epsilon" (fixed).
            half_life: 0, or rounds between two halvings of all losses; t of "anytime" then stops at twice that.
            seed, window: Of the draws; number of labels that may be outstanding.
            rdl_fp, rdl_fn: Known error rates of the remote model, sum below 1.

        Raises:
            ValueError: It names an argument that is out of range or a float.
        """
        if feedback not in ("explored", "all"):
            raise ValueError("feedback %r is not explored or all" % feedback)
        if exploration not in ("epsilon", "anytime"):
            raise ValueError("exploration %r is not epsilon or anytime" % exploration)
        checked_integer("half_life", half_life, 0, 268435455)
        Pairs.__init__(
            self, bits, beta=beta, delta_fp=delta_fp, delta_fn=delta_fn, eta=eta, epsilon=epsilon, seed=seed, window=window,
            rdl_fp=rdl_fp, rdl_fn=rdl_fn,
        )  # fmt: skip
        self.learns_all = feedback == "all"
        self.anytime = exploration == "anytime"
        self.half_life = half_life

    def decide(self, k: int) -> int:
        """Play a round for a sample in bin k and return 0 or 1 (act on it), or OFFLOAD (then `ticket` is set)."""
        experts = self.experts
        if not 0 <= k < experts.n:
            raise ValueError("bin %r is not in 0..%d" % (k, experts.n - 1))
        if (self.anytime or self.half_life) and self._count_round():
            self.forget()
        if experts.bound > ROOM:
            experts.coarsen()
        experts.regions(k)
        self.local = experts.local
        psi = self.rng.draw()
        explore = self.rng.draw() < self.epsilon
        offload = experts.offload
        if psi < offload or explore:
            chance = 0
            if self.learns_all:
                chance = experts.chance
                chance += times(ONE_Q29 - chance, self.epsilon)
            elif explore:
                chance = self.epsilon << 14
            action = OFFLOAD
            self.ticket = self.tickets.open(k, self.charge, self.local, chance)
        else:
            action = 1 if psi < offload + experts.positive else 0
            self.ticket = 0
        experts.charge(k, self.offload_loss)  # every round charges the offloading experts of the bin
        return action

    def likely(self, k: int) -> int:
        """Return the local class that most weight of the pairs is for."""
        checked_integer("bin", k, 0, self.experts.n - 1)
        if self.experts.bound > ROOM:
            self.experts.coarsen()
        self.experts.regions(k)
        return self.experts.local

    def _count_round(self) -> bool:
        """Count the round for anytime exploration and half_life; return whether it is time to forget."""
        if self.anytime and self.t < MAX_ROUNDS and not (self.half_life and self.t >= self.half_life << 1):
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

    def settings(self) -> "tuple[int, ...]":
        """Return the options that the losses depend on: those of another feedback or learning rate mean something else."""
        return self.bits, self.rate, self.learns_all, self.anytime, self.half_life, self.rdl_fp, self.rdl_fn

    def offload_chance(self) -> int:
        """Return P(offload) of the last round, Q15, exploration included."""
        chance = self.experts.chance
        return (chance + times(ONE_Q29 - chance, self.epsilon)) >> 14

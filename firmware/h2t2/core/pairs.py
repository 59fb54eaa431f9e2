# What H2T2 and the adaptive policy share: the weights of all pairs of thresholds, and what labels teach them. The weights are
# in experts, the draws in rng, late labels in tickets.
from array import array

from .experts import ROOM, Experts
from .numbers import ONE, divide, log2e, scale, times
from .policy import BETA, BIN, CHANCE, Policy, checked_integer

if 0:  # for type checkers
    from ..annotations import Iterator

MAX_ROUNDS = 16777215  # at which t of "anytime" stops


class Pairs(Policy):
    """A policy whose experts are all pairs of thresholds, weighted by their losses on the labels of offloaded samples.

    Costs and probabilities are Q15 integers (32768 = 1.0), eta is Q26; h2t2.units makes them from people's numbers. `decide`
    and `learn` of its subclasses are O(bits) and allocate nothing. `experts.offload`, `experts.positive` and `experts.negative`
    are the region probabilities of the last round, Q15.

    Attributes:
        t, root, epsilon: Of H2T2's exploration; every state has them.
    """

    def __init__(
        self, bits: int, *, beta: int, delta_fp: int, delta_fn: int, eta: int, epsilon: int, seed: int, window: int,
        rdl_fp: int, rdl_fn: int,
    ):  # fmt: skip
        """Arguments as for H2T2."""
        checked_integer("bits", bits, 1, 12)
        shares = (("beta", beta), ("delta_fp", delta_fp), ("delta_fn", delta_fn), ("rdl_fp", rdl_fp), ("rdl_fn", rdl_fn))
        for name, value in shares:
            checked_integer(name, value, 0, ONE)
        checked_integer("eta", eta, 1, 372000000, "q26")
        checked_integer("epsilon", epsilon, 1, ONE)
        Policy.__init__(self, seed, window)
        self.bits = bits
        self.experts = Experts(bits)
        self.epsilon = epsilon
        self.rate = log2e(eta)  # octaves a unit of cost, Q26
        self.rdl_fp = rdl_fp
        self.rdl_fn = rdl_fn
        self.offload_loss = array("i", [0, 0, 0, 0])  # what `charge` adds to the experts of a bin, see Experts.charge
        self.label_loss = array("i", [0, 0, 0, 0])  # scratch of learn()
        self.set_deltas(delta_fp, delta_fn)
        self.set_beta(beta)
        self.t = 0  # rounds of "anytime", up to MAX_ROUNDS
        self.root = 3  # floor(4 t^(1/3)) of "anytime"

    def set_deltas(self, fp: int, fn: int) -> None:
        """Set the costs of a false positive and a false negative for the labels to come, Q15, 0..32768.

        `rates` become the octaves (Q26, signed) that a label charges to predicting (0 after label 0, 1 after 0, 0 after 1, 1
        after 1), beyond what it charges to offloading. With a remote model wrong at rates e0 (says 1 for 0) and e1 (says 0 for
        1), an offload costs e0 fp or e1 fn by its mistakes, and the estimate of a loss beyond that,
        ((1 - e_other) loss(label) - e_label loss(other)) / (1 - e0 - e1), is unbiased (Natarajan et al., NeurIPS 2013).
        """
        if not (0 <= fp <= ONE and 0 <= fn <= ONE):
            raise ValueError("deltas %r, %r are not in 0..32768" % (fp, fn))
        e0 = self.rdl_fp
        e1 = self.rdl_fn
        d = ONE - e0 - e1
        if d < 1 or self.rate // d >= (8192 if e0 + e1 else 16384):
            raise ValueError("rdl_fp %d + rdl_fn %d leave too little to learn from" % (e0, e1))
        self.delta_fp = fp
        self.delta_fn = fn
        fp = times(self.rate, fp)
        fn = times(self.rate, fn)
        wrong_0 = times(times(fp + fn, e0), ONE - e1)
        wrong_1 = times(times(fp + fn, e1), ONE - e0)
        self.rates = [
            -self._over(wrong_0, ONE, d),
            self._over(times(times(fp, ONE - e0), ONE - e1) + times(times(fn, e0), e1), ONE, d),
            self._over(times(times(fn, ONE - e0), ONE - e1) + times(times(fp, e0), e1), ONE, d),
            -self._over(wrong_1, ONE, d),
        ]

    def set_charge(self, beta: int) -> None:
        """Set what an offload is charged, and from it what a round adds to the losses of the pairs that offload."""
        Policy.set_charge(self, beta)
        scale(-self.rate, beta, self.offload_loss, 0)
        scale(self.rate, beta, self.offload_loss, 2)

    def forget(self) -> None:
        """Halve every cumulative loss."""
        self.experts.rebuild(not self.experts.unit, True)

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """Learn the label of an offload, 0 or 1, and return whether it taught something. Arguments as for Policy.learn()."""
        if label != 0 and label != 1:
            raise ValueError("label %r is not 0 or 1" % label)
        if beta != -1:
            checked_integer("beta", beta, 0, ONE)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        if self.experts.bound > ROOM:
            self.experts.coarsen()
        if beta >= 0:
            self._correct(at, beta)
        self._teach(at, label)
        self.lessons += 1
        return True

    def _correct(self, at: int, beta: int) -> None:
        """Charge the offload of the slot at index `at` what it really cost."""
        slots = self.tickets.slots
        loss = self.label_loss
        beta -= slots[at + BETA]
        rate = self.rate if beta > 0 else -self.rate
        scale(-rate, abs(beta), loss, 0)
        scale(rate, abs(beta), loss, 2)
        self.experts.charge(slots[at + BIN], loss)

    def _teach(self, at: int, label: int) -> None:
        """Charge the experts what the label of the offload in the slot at index `at` costs them."""
        slots = self.tickets.slots
        chance = slots[at + CHANCE]
        if chance:
            loss = self.label_loss
            divide(self.rates[label << 1], chance, loss, 0)
            divide(-self.rates[label << 1 | 1], chance, loss, 2)
            self.experts.charge(slots[at + BIN], loss)

    def _over(self, x: int, num: int, den: int) -> int:
        """Return x * num / den for x in Q26 and num, den in Q15."""
        divide(times(x, num), den << 14, self.label_loss, 0)
        return self.label_loss[0] << 12 | self.label_loss[1] >> 2

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of the policy, the costs, the exploration and the experts."""
        yield from Policy.number_rows(self)
        yield self, "delta_fp", 0, ONE
        yield self, "delta_fn", 0, ONE
        yield self, "t", 0, MAX_ROUNDS
        yield self, "root", 3, 1024
        yield self, "epsilon", 1, ONE
        yield from self.experts.number_rows()

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of the experts' losses."""
        return self.experts.array_rows()

    def derive(self) -> None:
        """Compute the charges and the experts' sums anew."""
        self.set_deltas(self.delta_fp, self.delta_fn)
        self.set_beta(self.beta)
        self.experts.rebuild(False, False)

    def reset(self) -> None:
        """Forget all labels, and explore as in the first round."""
        Policy.reset(self)
        self.t = 0
        self.root = 3
        self.experts.clear()

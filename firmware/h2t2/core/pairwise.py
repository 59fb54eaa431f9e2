# Pairwise H2T2: many classes for an LDL that is not calibrated, on K (K - 1) / 2 binary learners.
from . import defaults
from .experts import ROOM, Experts
from .h2t2 import H2T2
from .numbers import ONE, times
from .policy import OFFLOAD, checked_integer
from .rules import checked, expected
from .tickets import BIN, FIELDS


class Pairwise(H2T2):
    """The two classes of lowest expected cost, a < b, choose the learner; its score is e_a / (e_a + e_b).

    A label y charges it with `costs[y][a]` for a ("0") and `costs[y][b]` for b ("1"). For K = 2 it is H2T2 on that score, which
    is f itself where both errors cost the same. State O(K^2 2^bits), a step O(K^2 + bits).
    """

    kind = 2
    name = "pairwise"

    def __init__(self, costs: list, bits: int = defaults.BITS, **options):
        """costs: as CalibratedMulticlass takes them, K from 2 to 16. options: H2T2's, without delta_* and rdl_*."""
        for name in options:
            if name[:5] in ("delta", "rdl_f"):
                raise ValueError("%s: the losses come from costs" % name)
        self.costs = checked(costs)
        H2T2.__init__(self, bits=bits, **options)
        n = len(costs)
        self.learners = [Experts(bits) for _ in range(n * (n - 1) // 2)]  # one a pair
        self.loss = [[times(self.rate, cost) for cost in row] for row in costs]  # octaves, Q26
        self.pairs = [(a, b) for b in range(n) for a in range(b)]  # pair (a, b) is number b (b - 1) / 2 + a

    def decide(self, f) -> int:
        """The class, or OFFLOAD, for scores f: K integers in Q14 that sum to at most 32767 (16384 is 1)."""
        a = b = 0
        low = next_low = 1073741823  # costs of the cheapest class a and the next one b
        for k in range(len(self.costs)):
            cost = expected(self.costs, f, k)
            if cost < low:
                b = a
                next_low = low
                a = k
                low = cost
            elif cost < next_low:
                b = k
                next_low = cost
        if a > b:
            a, b = b, a
            low, next_low = next_low, low
        pair = b * (b - 1) // 2 + a
        # e_a / (e_a + e_b) in Q15; two certain zeros tie in the middle
        total = (low >> 1) + (next_low >> 1)
        low >>= 1
        while 0 < total < ONE:
            total <<= 1
            low <<= 1
        self.k = k = min((ratio(low, total) if total else ONE >> 1) << self.bits >> 15, (1 << self.bits) - 1)
        self.experts = self.learners[pair]
        self.cell = pair << self.bits
        action = H2T2.decide(self, k)
        self.local = b if self.local else a
        if action == OFFLOAD:
            return OFFLOAD
        return b if action else a

    def learn(self, ticket: int, label: int, beta: int = -1) -> bool:
        """As H2T2.learn; label: the class, 0..K-1."""
        if not 0 <= label < len(self.costs):
            raise ValueError("label %r is not in 0..%d" % (label, len(self.costs) - 1))
        checked_integer("beta", beta, -1, ONE)
        at = self.tickets.take(ticket)
        if at < 0:
            return False
        cell = self.tickets.slots[at + BIN]
        pair = cell >> self.bits
        a, b = self.pairs[pair]
        self.experts = tree = self.learners[pair]
        if tree.spent > ROOM:
            tree.coarsen()
        self._teach(at, beta, cell & (1 << self.bits) - 1, self.loss[label][a], self.loss[label][b])
        return True

    def lose(self, ticket: int) -> int:
        """As H2T2.lose: the class to act on."""
        cell = self.tickets.slots[ticket % self.tickets.window * FIELDS + BIN]
        side = self.tickets.lose(ticket)
        return side if side < 0 else self.pairs[cell >> self.bits][side]

    def settings(self) -> "tuple[int, ...]":
        """As Policy.settings."""
        made = H2T2.settings(self)
        for row in self.costs:
            made += tuple(row)
        return made

    def trees(self):
        """The expert trees it learns with, one a pair of classes."""
        return self.learners

    def scalars(self):
        """As Policy.scalars, without the deltas: the losses come from `costs`."""
        for scalar in H2T2.scalars(self):
            if scalar[1] not in ("delta_fp", "delta_fn"):
                yield scalar

    def forget(self) -> None:
        """Halve every learner's losses."""
        for tree in self.learners:
            tree.rebuild(not tree.unit, True)


def ratio(a: int, b: int) -> int:
    """a / b in Q15, to nearest, for 0 <= a <= b and 2^15 <= b < 2^30 (the low 8 bits of both are dropped)."""
    b >>= 8
    a >>= 8
    if a >= b:
        return ONE
    a <<= 8
    return ((a // b << 8 | (a % b << 8) // b) + 1) >> 1

# Experts: exponential weights of all pairs of thresholds (i <= j), a tree, in O(2^b) state and O(b) a step. Pairs: what H2T2
# and the adaptive policy share, that is what rounds and labels charge these weights. Draws and late labels are in policy.
from array import array

from .curves import CURVES
from .numbers import NONE, ONE, divide, exp2, log2e, scale, times
from .policy import BETA, BIN, CHANCE, Policy, checked_integer

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator

CAP = 134217728  # 2^27 units: prefix sums of losses beyond it need a coarser unit, see Experts.coarsen
ROOM = 167772160  # 1.25 CAP: two charges add at most 2^27 units, and the limit is 2^28
MAX_ROUNDS = 16777215  # at which t of "anytime" stops
COARSEST = 8  # unit 8 is 2^-6 octave: prefix sums to 2^21 octaves


def log_add(total: int, addend: int, unit: int) -> int:
    """Return log2(2^total + 2^addend), within .8 units of the last place.

    Args:
        total, addend: Logarithms, at most 2^28 either way; one of them may be NONE (+- 2^28).
        unit: Both count 2^unit of the last place of a logarithm, 0..9.
    """
    gap = total - addend
    if gap < 0:
        gap = -gap
        total = addend
    if gap < 262144 >> unit:
        gap <<= unit
        addend = gap >> 11 & -2  # now the parabola; a further local would move the frame to the heap of MicroPython
        if addend < 120:
            gap &= 4095
            gap = CURVES[addend] - gap * ((CURVES[addend + 1] >> 8) - (gap * (CURVES[addend + 1] & 255) >> 10)) >> 15
            total += gap + (1 << unit >> 1) >> unit
    return total


class Experts:
    """Weights w(i, j) = u_i v_j on 0 <= i <= j < N = 2^bits of Algorithm 1, as a segment tree of base-2 logarithms.

    Bin k's cumulative losses enter only as A_k - B_k (experts i > k against i <= k) and B_k - C_k (j > k against
    j <= k), so u_i = 2^-sum_{k<i}(A_k - B_k) and v_j = 2^-sum_{k<j}(B_k - C_k): prefix sums. Node n (heap order, 1..N-1;
    0 stands for every leaf) has u, v, p[n], the logarithms of U = sum u, V = sum v, P = sum_{i<=j} u v over its bins,
    *relative to its first bin*; losses[n] and losses[N + n] are A - B and B - C summed over its left half. `fine` holds their
    parts below one unit (Q28 octaves), plus half a unit, so that `losses` is rounded. All count units of 2^(unit - 14) octave:
    2^-14 at first, coarser when losses grow, up to 2^-6. With s = 2^-loss of the left half,

        U = Ul + Ur sA      V = Vl + Vr sB      P = Pl + Pr sA sB + Ul Vr sB

    A node is a function of the losses alone, so rounding never accumulates and a rebuild changes nothing.

    Attributes:
        bound: No prefix sum of either loss is larger.
        offload, positive, negative: Region probabilities of the last regions(): offload, class 1, class 0; Q15, sum ONE.
        local: The likelier local class there.
        chance: The probability `offload` in Q29.
    """

    def __init__(self, bits: int):
        """bits: b, 1..12 (boards: to 8). The state has seven integers times 2^b."""
        self.n = size = 1 << bits
        self.u = array("i", [0] * size)
        self.v = array("i", self.u)
        self.p = array("i", self.u)
        self.losses = array("i", [0] * (2 * size))
        self.fine = array("i", [8192] * (2 * size))
        self.unit = 0
        self.bound = 0
        self.offload = self.positive = self.negative = self.local = self.chance = 0
        self.rebuild(False, False)

    def clear(self) -> None:
        """Return to equal weights."""
        at = 2 * self.n
        while at:
            at -= 1
            self.losses[at] = 0
            self.fine[at] = 8192
        self.unit = self.bound = 0
        self.rebuild(False, False)

    def rebuild(self, coarser: bool, halved: bool) -> None:
        """Compute every node anew, O(2^b). A policy forgets with rebuild(not unit, True).

        Args:
            coarser: Double the unit first; losses keep their value.
            halved: Halve every loss, and with it the unit.
        """
        losses = self.losses
        fine = self.fine
        at = 2 * self.n if coarser or halved else 0
        while at:
            at -= 1
            if coarser:
                below_unit = ((losses[at] & 1) << 14 + self.unit | fine[at]) + (8192 << self.unit)
                losses[at] = (losses[at] >> 1) + (below_unit >> 15 + self.unit)
                fine[at] = below_unit & (32768 << self.unit) - 1
            if halved:
                fine[at] >>= 1
        if coarser:
            self.unit += 1
        if halved:
            self.unit -= 1
        node = self.n
        while node > 1:
            node -= 1
            self._pull(node, node)

    def coarsen(self) -> None:
        """Bound the prefix sums exactly, and double the unit if one is beyond 2^27 units. O(2^b b), once in 2^25 units.

        If the unit is 2^-6 octave already, halve every loss instead. This happens when a prefix sum is beyond 2^21 octaves
        (1.45e6 / eta of loss, millions of rounds). It keeps the order of the experts and softens the odds between them.
        """
        losses = self.losses
        size = even_bin = self.n
        top = 0
        while even_bin:
            even_bin -= 2
            node = even_bin + size >> 1
            own_lower = abs(losses[node])  # of this bin alone: the prefix sum behind it is that before it plus this
            own_upper = abs(losses[node + size])
            lower = upper = 0
            while node > 1:
                is_right = node & 1
                node >>= 1
                if is_right:
                    lower += losses[node]
                    upper += losses[node + size]
            top = max(top, own_lower + abs(lower), own_upper + abs(upper))
        self.bound = top
        if top > CAP:
            self.rebuild(True, self.unit >= COARSEST)

    def _pull(self, node: int, last: int) -> None:
        """Compute the sums of a node, and of its ancestors down to number `last`, from their children."""
        lowers = self.u
        uppers = self.v
        pairs = self.p
        losses = self.losses
        size = self.n
        unit = self.unit
        left = node << 1
        if left < size:
            right = left + 1
        else:
            left = right = 0
        while node >= last:
            lower = losses[node]
            upper = losses[node + size]
            uppers_right = uppers[right] - upper
            pairs_right = pairs[right] - lower - upper
            pairs[node] = log_add(log_add(pairs[left], pairs_right, unit), lowers[left] + uppers_right, unit)
            lowers[node] = log_add(lowers[left], lowers[right] - lower, unit)
            uppers[node] = log_add(uppers[left], uppers_right, unit)
            left = node & -2
            right = left + 1
            node >>= 1

    def charge(self, k: int, loss: "Int32s") -> None:
        """Add losses to bin k, O(b). Call it at most twice before comparing `bound` with ROOM; beyond ROOM, coarsen() first.

        Args:
            k: The bin.
            loss: A - B and B - C: octaves in Q14, |octaves| <= 2^26, and a fine word each.
        """
        lower = loss[0]
        lower_fine = loss[1]
        upper = loss[2]
        upper_fine = loss[3]
        unit = self.unit
        mask = (1 << unit) - 1
        lower_fine += (lower & mask) << 14
        upper_fine += (upper & mask) << 14
        lower >>= unit
        upper >>= unit
        self.bound += 1 + max(lower, -lower, upper, -upper)
        losses = self.losses
        fine = self.fine
        unit += 14
        mask = (1 << unit) - 1
        left = k + self.n
        while left & 1:  # nothing changes below the lowest node that has the bin in its left half
            left >>= 1
        node = left
        while node > 1:
            at = node
            node >>= 1
            if not at & 1:
                below_unit = fine[node] + lower_fine
                fine[node] = below_unit & mask
                losses[node] += lower + (below_unit >> unit)
                at = node + self.n
                below_unit = fine[at] + upper_fine
                fine[at] = below_unit & mask
                losses[at] += upper + (below_unit >> unit)
        self._pull(left >> 1, 2)  # nobody needs the root's sums

    def regions(self, k: int) -> int:
        """Set `offload`, `positive`, `negative`, `local` and `chance` for bin k (Algorithm 1, lines 5-6), O(b).

        Returns:
            The logarithm of the sum of all weights, relative to the weight of the pair (0, 0).
        """
        lowers = self.u
        uppers = self.v
        pairs = self.p
        losses = self.losses
        unit = self.unit
        size = self.n
        half = self.n >> 1
        node = 1
        lower_loss = upper_loss = 0  # A - B and B - C of the bins before the node
        lower = positive = negative = upper = NONE  # U and P of the bins before the node, P and V of those after
        while half:
            above = k & half  # the bins of the left half are before the bin, or those of the right half after it
            lower_middle = lower_loss + losses[node]  # of the bins before the right half
            upper_middle = upper_loss + losses[node + size]
            node <<= 1
            if above:
                at = node if node < size else 0
                inside = positive
                half_inside = pairs[at] - lower_loss - upper_loss
                beside = lower
                across = lower + uppers[at] - upper_loss
                half_beside = lowers[at] - lower_loss
                lower_loss = lower_middle
                upper_loss = upper_middle
                node += 1
            else:
                at = node + 1 if node < size else 0
                inside = negative
                half_inside = pairs[at] - lower_middle - upper_middle
                beside = upper
                across = upper + lowers[at] - lower_middle
                half_beside = uppers[at] - upper_middle
            inside = log_add(log_add(inside, half_inside, unit), across, unit)
            beside = log_add(beside, half_beside, unit)
            if above:
                positive = inside
                lower = beside
            else:
                negative = inside
                upper = beside
            half >>= 1
        lower = log_add(lower, -lower_loss, unit)
        positive = log_add(positive, lower - upper_loss, unit)
        self.local = 1 if positive > negative else 0
        upper += lower  # a threshold before the bin and a threshold after it: offload
        total = log_add(log_add(positive, negative, unit), upper, unit)
        self.chance = chance = exp2(total - upper, unit)
        self.offload = offload = chance + 8192 >> 14
        share = exp2(total - positive, unit) + 8192 >> 14
        if offload + share > ONE:
            share = ONE - offload
        self.positive = share
        self.negative = ONE - offload - share
        return total

    def number_rows(self) -> "Iterator[tuple[object, str, int, int]]":
        """Yield the rows of Policy.number_rows()."""
        yield self, "bound", 0, 1 << 28
        yield self, "unit", 0, COARSEST

    def array_rows(self) -> "Iterator[tuple[array[int], int, int, int, int, int]]":
        """Yield the rows of Policy.array_rows()."""
        size = self.n
        limit = 2 * self.bound + 64  # losses[n] is a difference of two prefix sums
        for start in (0, size):
            yield self.losses, start, start + 1, 0, 0, 0  # no node
            yield self.losses, start + 1, start + size, -limit, limit, 0
        yield self.fine, 0, 2 * size, 0, (16384 << self.unit) - 1, 0


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

# The expert tree: exponential weights over all pairs of thresholds (i <= j), in O(2^b) state and O(b) a step.
# Losses come in ready scaled (octaves); what they mean, draws and tickets are the policy's.
from array import array

from .fixed import FRAC, ONE, add, exp2, ratio

CAP = 134217728  # octaves (2^27) a threshold's losses may sum to before all are halved; see Experts.charge


class Experts:
    """Weights w(i, j) = u_i v_j on 0 <= i <= j < N = 2^bits of Algorithm 1, as a segment tree.

    Bin k's cumulative losses enter only as A_k - B_k (experts i > k against i <= k) and B_k - C_k (j > k against
    j <= k), so u_i = 2^-sum_{k<i}(A_k - B_k) and v_j = 2^-sum_{k<j}(B_k - C_k): prefix sums. Node n (heap order, 1..N-1; all
    leaves are alike and share slot N; slots 0 and N+1 are regions()' own) holds the block floats U = sum u, V = sum v, P = sum_{i<=j} u v over its bins, *relative
    to its first bin*, and from losses[4 n] on both losses summed over its left half (octaves, Q28 fraction, each). With s = 2^-loss of the left half:

        U = Ul + Ur sA      V = Vl + Vr sB      P = Pl + Pr sA sB + Ul Vr sB

    A node is a function of the losses alone, so rounding never accumulates and a rebuild changes nothing.
    """

    def __init__(self, bits):
        """bits: b, 1..12 (boards: to 8). State: 34 bytes times 2^b."""
        self.n = n = 1 << bits
        self.um = array("h", [16384] * (n + 2))
        self.vm = array("h", self.um)
        self.pm = array("h", self.um)
        self.ue = array("i", [0] * (n + 2))
        self.ve = array("i", self.ue)
        self.pe = array("i", self.ue)
        self.losses = array("i", [0] * (4 * n))
        self.spent = 0  # octaves charged since the last halving: bounds every sum of losses
        self.offload = self.one = self.zero = 0  # Q15 region probabilities of the last regions()
        self.local = 0  # the likelier local class there
        self.total = self.ambiguous = 0  # masses there: all experts, the offloading ones (same unit)
        self.rebuild()

    def rebuild(self):
        """Compute every node from the losses: O(2^b)."""
        losses = self.losses
        n = self.n - 1
        while n:
            self._join(n, 0, 2, losses[4 * n], losses[4 * n + 1], losses[4 * n + 2], losses[4 * n + 3])
            n -= 1

    def _join(self, to, n, side, ah, al, bh, bl):
        """Add node n to the sums in slot `to`; (ah, al), (bh, bl): the losses before n.

        side: 0 where n comes after what is there (V of the slot is left alone), 1 where it comes before (U is);
        2: node `to` anew, its left child's sums joined by its right child's (n is not read).
        """
        um = self.um
        ue = self.ue
        vm = self.vm
        ve = self.ve
        pm = self.pm
        pe = self.pe
        if side == 2:
            n = to << 1
            if n >= self.n:
                n = self.n
            um[to] = um[n]
            ue[to] = ue[n]
            vm[to] = vm[n]
            ve[to] = ve[n]
            pm[to] = pm[n]
            pe[to] = pe[n]
            if n < self.n:
                n += 1
        # pairs with one threshold in each part, the lower one in the part that comes first
        if side != 1:
            x = vm[n] * exp2(bl)
            f = ve[n] + bh
            m = um[to]
            e = ue[to] + f
        else:
            x = um[n] * exp2(al)
            f = ue[n] + ah
            m = vm[to]
            e = ve[to] + f
        if m:
            if x < 536870912:
                m *= (x + 8192) >> 14
                e += 1
            else:
                m *= (x + 16384) >> 15
            add(pm, pe, to, m, e - 1)
        if side != 0:
            add(vm, ve, to, x if side == 2 else vm[n] * exp2(bl), ve[n] + bh)
        if side != 1:
            add(um, ue, to, um[n] * exp2(al), ue[n] + ah)
        al += bl
        add(pm, pe, to, pm[n] * exp2(al & FRAC), pe[n] + ah + bh + (al >> 28))

    def charge(self, k, ah, al, bh, bl):
        """Add the losses A - B = (ah, al) and B - C = (bh, bl) to bin k: O(b).

        Once 2^27 octaves (9e7 nats / eta of loss) have been charged in all, every loss is halved, in one O(2^b) rebuild:
        sums stay below 2^28 octaves for ever, the order of the experts stays, the odds between them soften.
        """
        losses = self.losses
        n = k + self.n
        while n & 1:  # nothing changes below the lowest node that has bin k in its left half
            n >>= 1
        while n > 1:
            left = not n & 1
            n >>= 1
            at = n << 2
            if left:
                lo = losses[at + 1] + al
                losses[at + 1] = lo & FRAC
                losses[at] += ah + (lo >> 28)
                lo = losses[at + 3] + bl
                losses[at + 3] = lo & FRAC
                losses[at + 2] += bh + (lo >> 28)
            self._join(n, 0, 2, losses[at], losses[at + 1], losses[at + 2], losses[at + 3])
        self.spent += 1 + max(abs(ah), abs(bh))
        if self.spent >= CAP:
            self.halve()

    def halve(self):
        """Halve every cumulative loss (a shift) and rebuild: forgetting, O(2^b)."""
        losses = self.losses
        n = 4 * self.n
        while n:
            n -= 2
            losses[n + 1] = (losses[n] & 1) << 27 | losses[n + 1] >> 1
            losses[n] >>= 1
        self.spent >>= 1
        self.rebuild()

    def regions(self, k):
        """The masses of bin k's three regions (Algorithm 1, lines 5-6), O(b): `offload`, `one`, `zero` in Q15 (sum ONE).

        Also `local`, the likelier local class, and for `offload_share()` the masses `ambiguous` and `total`, in one unit.
        """
        n = 1
        leaf = self.n
        half = leaf >> 1
        after = leaf + 1
        losses = self.losses
        ah = al = bh = bl = 0  # losses of the bins before node n
        um = self.um
        vm = self.vm
        pm = self.pm
        um[0] = vm[0] = pm[0] = um[after] = vm[after] = pm[after] = 0
        while half:
            at = n << 2
            alo = al + losses[at + 1]
            blo = bl + losses[at + 3]
            a = ah + losses[at] + (alo >> 28)
            b = bh + losses[at + 2] + (blo >> 28)
            alo &= FRAC
            blo &= FRAC
            n <<= 1
            if k & half:
                self._join(0, n if n < leaf else leaf, 0, ah, al, bh, bl)
                ah = a
                al = alo
                bh = b
                bl = blo
                n += 1
            else:
                self._join(after, n + 1 if n < leaf else leaf, 1, a, alo, b, blo)
            half >>= 1
        self._join(0, leaf, 0, ah, al, bh, bl)
        self._shares(after)

    def _shares(self, after):
        """Probabilities from the sums in the slots 0 and `after`: the pairs before predict 1, those after 0."""
        one = self.pm[0]
        one_e = self.pe[0]
        zero = self.pm[after]
        zero_e = self.pe[after]
        both = self.um[0] * self.vm[after]  # one threshold before, one after: they offload
        both_e = self.ue[0] + self.ve[after] + 1
        self.local = 1 if not zero or one_e < zero_e or (one_e == zero_e and one > zero) else 0
        # one unit for all three: 2^-27 of the heaviest
        e = one_e
        if zero and zero_e < e:
            e = zero_e
        if both and both_e - 1 < e:
            e = both_e - 1
        one = one << 13 >> min(one_e - e, 30)
        if zero:
            zero = zero << 13 >> min(zero_e - e, 30)
        if both:
            both >>= min(both_e - e, 30)
        self.ambiguous = both
        self.total = e = zero + one + both
        self.offload = zero = ratio(both, e)
        self.one = one = min(ratio(one, e), ONE - zero)
        self.zero = ONE - zero - one

# The expert tree: exponential weights over all pairs of thresholds (i <= j), in O(2^b) state and O(b) a step.
# Losses come in ready scaled (octaves); what they mean, draws and tickets are the policy's.
from array import array

from .fixed import FRAC, ONE, add, exp2, exponent, ratio

CAP = 134217728  # octaves (2^27) a threshold's losses may sum to before all are halved; see Experts.charge


class Experts:
    """Weights w(i, j) = u_i v_j on 0 <= i <= j < N = 2^bits of Algorithm 1, as a segment tree.

    Bin k's cumulative losses enter only as A_k - B_k (experts i > k against i <= k) and B_k - C_k (j > k against
    j <= k), so u_i = 2^-sum_{k<i}(A_k - B_k) and v_j = 2^-sum_{k<j}(B_k - C_k): prefix sums. Node n (heap order, leaves
    N..2N-1, bins left to right) holds the block floats U = sum u, V = sum v, P = sum_{i<=j} u v over its bins, *relative
    to its first bin*, and `ah/al`, `bh/bl`: the two losses summed over its left half. With s = 2^-loss of the left half:

        U = Ul + Ur sA      V = Vl + Vr sB      P = Pl + Pr sA sB + Ul Vr sB

    A node is a function of the losses alone, so rounding never accumulates and a rebuild changes nothing.
    """

    def __init__(self, bits):
        """bits: b, 1..12 (boards: to 8). State: 2^b (36 + 16) bytes."""
        self.n = n = 1 << bits
        self.um = array("h", [16384] * (2 * n))
        self.vm = array("h", self.um)
        self.pm = array("h", self.um)
        self.ue = array("i", [0] * (2 * n))
        self.ve = array("i", self.ue)
        self.pe = array("i", self.ue)
        self.ah = array("i", [0] * n)  # octaves, signed
        self.al = array("i", self.ah)  # Q28 fraction
        self.bh = array("i", self.ah)
        self.bl = array("i", self.ah)
        self.spent = 0  # octaves charged since the last halving: bounds every sum of losses
        self.offload = self.one = self.zero = 0  # Q15 region probabilities of the last regions()
        self.local = 0  # the likelier local class there
        self.total = self.ambiguous = 0  # masses there: all experts, the offloading ones (same unit)
        self.rebuild()

    def rebuild(self):
        """Compute every node from the losses: O(2^b)."""
        n = self.n - 1
        while n:
            self._pull(n)
            n -= 1

    def _pull(self, n):
        """Node n from its children."""
        left = n << 1
        right = left | 1
        ah = self.ah[n]
        al = self.al[n]
        m = self.um
        es = self.ue
        u = m[left]
        ue = es[left]
        m[n] = add(u, ue, m[right] * exp2(al), es[right] + ah)
        es[n] = exponent[0]
        bl = self.bl[n]
        m = self.vm
        es = self.ve
        x = m[right] * exp2(bl)
        e = es[right] + self.bh[n]
        m[n] = add(m[left], es[left], x, e)
        es[n] = exponent[0]
        m = self.pm
        es = self.pe
        if x < 536870912:
            x <<= 1
            e += 1
        x = add(m[left], es[left], u * ((x + 16384) >> 15), ue + e - 1)
        e = exponent[0]
        al += bl
        m[n] = add(x, e, m[right] * exp2(al & FRAC), es[right] + ah + self.bh[n] + (al >> 28))
        es[n] = exponent[0]

    def charge(self, k, ah, al, bh, bl):
        """Add the losses A - B = (ah, al) and B - C = (bh, bl) to bin k: O(b).

        Once 2^27 octaves (9e7 nats / eta of loss) have been charged in all, every loss is halved, in one O(2^b) rebuild:
        sums stay below 2^28 octaves for ever, the order of the experts stays, the odds between them soften.
        """
        n = k + self.n
        while n & 1:  # nothing changes below the lowest node that has bin k in its left half
            n >>= 1
        while n > 1:
            left = not n & 1
            n >>= 1
            if left:
                lo = self.al[n] + al
                self.al[n] = lo & FRAC
                self.ah[n] += ah + (lo >> 28)
                lo = self.bl[n] + bl
                self.bl[n] = lo & FRAC
                self.bh[n] += bh + (lo >> 28)
            self._pull(n)
        self.spent += 1 + max(abs(ah), abs(bh))
        if self.spent >= CAP:
            self.halve()

    def halve(self):
        """Halve every cumulative loss (a shift) and rebuild: forgetting, O(2^b)."""
        for hi, lo in ((self.ah, self.al), (self.bh, self.bl)):
            n = self.n - 1
            while n:
                lo[n] = (hi[n] & 1) << 27 | lo[n] >> 1
                hi[n] >>= 1
                n -= 1
        self.spent >>= 1
        self.rebuild()

    def regions(self, k):
        """The masses of bin k's three regions (Algorithm 1, lines 5-6), O(b): `offload`, `one`, `zero` in Q15 (sum ONE).

        Also `local`, the likelier local class, and for `offload_share()` the masses `ambiguous` and `total`, in one unit.
        """
        n = 1
        half = self.n >> 1
        ah = al = bh = bl = 0  # losses summed over the bins before node n
        u = v = one = zero = 0  # block floats: sum of u before n, of v after n; sum of P before n, after n
        ue = ve = onee = zeroe = 0
        while half:
            fa = al + self.al[n]
            fb = bl + self.bl[n]
            ea = ah + self.ah[n] + (fa >> 28)
            eb = bh + self.bh[n] + (fb >> 28)
            fa &= FRAC
            fb &= FRAC
            n <<= 1
            if k & half:  # the left child joins what lies before
                e = al + bl
                one = add(one, onee, self.pm[n] * exp2(e & FRAC), self.pe[n] + ah + bh + (e >> 28))
                onee = exponent[0]
                if u:
                    x = self.vm[n] * exp2(bl)
                    e = self.ve[n] + bh
                    if x < 536870912:
                        x <<= 1
                        e += 1
                    one = add(one, onee, u * ((x + 16384) >> 15), ue + e - 1)
                    onee = exponent[0]
                u = add(u, ue, self.um[n] * exp2(al), self.ue[n] + ah)
                ue = exponent[0]
                n |= 1
                ah = ea
                al = fa
                bh = eb
                bl = fb
            else:  # the right child joins what lies after
                n |= 1
                e = fa + fb
                zero = add(zero, zeroe, self.pm[n] * exp2(e & FRAC), self.pe[n] + ea + eb + (e >> 28))
                zeroe = exponent[0]
                if v:
                    x = self.um[n] * exp2(fa)
                    e = self.ue[n] + ea
                    if x < 536870912:
                        x <<= 1
                        e += 1
                    zero = add(zero, zeroe, v * ((x + 16384) >> 15), ve + e - 1)
                    zeroe = exponent[0]
                v = add(v, ve, self.vm[n] * exp2(fb), self.ve[n] + eb)
                ve = exponent[0]
                n ^= 1
            half >>= 1
        fb = exp2(bl)  # the leaf: bin k itself, u = 2^-a, v = 2^-b
        e = al + bl
        one = add(one, onee, 16384 * exp2(e & FRAC), ah + bh + (e >> 28))
        onee = exponent[0]
        if u:
            one = add(one, onee, u * fb >> 1, ue + bh - 1)
            onee = exponent[0]
        u = add(u, ue, 16384 * exp2(al), ah)
        u *= v
        ue = exponent[0] + ve - 1
        self.local = 1 if not zero or onee < zeroe or (onee == zeroe and one > zero) else 0
        # one unit for all three: 2^-28 of the largest
        e = onee
        if zero and zeroe < e:
            e = zeroe
        if u and ue + 1 < e:
            e = ue + 1
        one = one << 13 >> min(onee - e, 30)
        zero = zero << 13 >> min(zeroe - e, 30) if zero else 0
        u = u >> min(ue + 2 - e, 30) if u else 0
        self.ambiguous = u
        self.total = zero + one + u
        self.offload = ratio(u, self.total)
        self.one = min(ratio(one, self.total), ONE - self.offload)
        self.zero = ONE - self.offload - self.one

# The expert tree: exponential weights over all pairs of thresholds (i <= j), in O(2^b) state and O(b) a step.
# Losses come in ready scaled (octaves); what they mean, draws and tickets are the policy's.
#
# A *block float* is a mantissa m in [2^14, 2^15), or 0, and a whole exponent e: value m * 2^-(14 + e).
from .fixed import EXP2, FRAC, ONE, ratio

CAP = 134217728  # octaves (2^27) charged in all before every loss is halved; see Experts.regions


class Experts:
    """Weights w(i, j) = u_i v_j on 0 <= i <= j < N = 2^bits of Algorithm 1, as a segment tree.

    Bin k's cumulative losses enter only as A_k - B_k (experts i > k against i <= k) and B_k - C_k (j > k against
    j <= k), so u_i = 2^-sum_{k<i}(A_k - B_k) and v_j = 2^-sum_{k<j}(B_k - C_k): prefix sums. Node n (heap order, 1..N-1;
    all leaves are alike and share slot N; slots 0 and N+1 are regions()' own) holds, at 3 n of `m` (mantissas) and `e`
    (exponents), the block floats U = sum u, V = sum v, P = sum_{i<=j} u v over its bins, *relative to its first bin*;
    losses[4 n] and on: both losses summed over its left half (octaves, Q28 fraction, each). With s = 2^-loss of that half:

        U = Ul + Ur sA      V = Vl + Vr sB      P = Pl + Pr sA sB + Ul Vr sB

    A node is a function of the losses alone, so rounding never accumulates and a rebuild changes nothing.
    """

    def __init__(self, bits):
        """bits: b, 1..12 (boards: to 8). State: ten integers times 2^b."""
        self.n = n = 1 << bits
        self.m = [16384] * (3 * n + 6)  # lists: on a board as small as arrays, and faster
        self.e = [0] * (3 * n + 6)
        self.losses = [0] * (4 * n)
        self.spent = 0  # octaves charged since the last halving: bounds every sum of losses
        self.offload = self.one = self.zero = 0  # Q15 region probabilities of the last regions()
        self.local = 0  # the likelier local class there
        self.total = self.ambiguous = 0  # masses there: all experts, the offloading ones (same unit)
        self.rebuild(0)

    def rebuild(self, shift):
        """Compute every node anew, O(2^b), with all losses as they are (shift 0) or halved (shift 1): forgetting."""
        losses = self.losses
        self.spent >>= shift
        n = 4 * self.n - 4
        while n:
            if shift:
                losses[n + 1] = (losses[n] & 1) << 27 | losses[n + 1] >> 1
                losses[n] >>= 1
                losses[n + 3] = (losses[n + 2] & 1) << 27 | losses[n + 3] >> 1
                losses[n + 2] >>= 1
            self._join(n, 0, 3, losses[n], losses[n + 1], losses[n + 2], losses[n + 3])
            n -= 4

    def _join(self, to, n, side, ah, al, bh, bl):
        """Add the sums at n to those at `to` of `m` and `e`; (ah, al), (bh, bl): the losses before n.

        side: 1 where n comes after what is there (V there is left alone), 0 where it comes before (U is); 3: node to / 4
        anew, its left child's sums joined by its right child's (n is not read).
        """
        m = self.m
        e = self.e
        if side == 3:
            n = to >> 1
            to -= to >> 2
            if n < self.n:
                n *= 3
                d = n + 3
            else:
                n = d = 3 * self.n
            m[to] = m[n]
            e[to] = e[n]
            m[to + 1] = m[n + 1]
            e[to + 1] = e[n + 1]
            m[to + 2] = m[n + 2]
            e[to + 2] = e[n + 2]
            n = d
        part = 4
        while part:
            part -= 1
            i = to + part
            if part == 3:  # pairs with one threshold in each part, the lower one in the part that comes first
                i -= 1
                if not side:
                    x = m[to + 1] * m[n]
                    f = e[to + 1] + e[n] + ah
                    lo = al
                else:
                    x = m[to] * m[n + 1]
                    f = e[to] + e[n + 1] + bh
                    lo = bl
                if not x:
                    continue
                if x < 536870912:
                    x = (x + 8192) >> 14
                else:
                    x = (x + 16384) >> 15
                    f -= 1
                x -= x >> 15
            else:
                if part == side:
                    continue
                x = m[n + part]
                f = e[n + part]
                if part == 2:
                    lo = al + bl
                    f += ah + bh + (lo >> 28)
                    lo &= FRAC
                elif part:
                    f += bh
                    lo = bl
                else:
                    f += ah
                    lo = al
            # add the block float x * 2^-(14 + f) * 2^-(lo / 2^28) to (m[i], e[i]); what is below 2^-29 of it is dropped
            old = m[i]
            d = f - e[i]
            if old and d > 29:
                continue
            c = EXP2[lo >> 21]  # 2^-(lo / 2^28) in Q15, within 1.1 units: table and linear interpolation
            x *= c - (((c * (lo >> 8 & 8191) >> 13) * 177 + 16384) >> 15)
            if not old:
                x >>= 1
            elif d >= 0:
                x = (old << 14) + (x >> d + 1)
                f -= d
            elif d > -31:
                x = (x >> 1) + (old << 14 >> -d)
            else:
                x >>= 1
            # normalise, and round once, to nearest
            if x > 536870911:
                x = (x + 16384) >> 15
                f -= 1
            else:
                while x < 268435456:
                    x <<= 1
                    f += 1
                x = (x + 8192) >> 14
            if x > 32767:
                x = 16384
                f -= 1
            m[i] = x
            e[i] = f

    def charge(self, k, ah, al, bh, bl):
        """Add the losses A - B = (ah, al) and B - C = (bh, bl) to bin k: O(b)."""
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
            self._join(at, 0, 3, losses[at], losses[at + 1], losses[at + 2], losses[at + 3])
        self.spent += 2 + (ah if ah > 0 else -ah) + (bh if bh > 0 else -bh)

    def regions(self, k):
        """The masses of bin k's three regions (Algorithm 1, lines 5-6), O(b): `offload`, `one`, `zero` in Q15 (sum ONE).

        Once 2^27 octaves (9e7 nats / eta of loss) have been charged in all, every loss is halved first, in one O(2^b)
        rebuild: sums stay below 2^28 octaves for ever, the order of the experts stays, the odds between them soften.
        Also `local`, the likelier local class, and the masses `ambiguous` (the offloading experts') and `total`, in one unit.
        """
        if self.spent >= CAP:
            self.rebuild(1)
        n = 1
        leaf = self.n
        half = leaf >> 1
        after = 3 * leaf + 3
        losses = self.losses
        ah = al = bh = bl = 0  # losses of the bins before node n
        m = self.m
        m[0] = m[1] = m[2] = m[after] = m[after + 1] = m[after + 2] = 0
        while half:
            at = n << 2
            alo = al + losses[at + 1]
            blo = bl + losses[at + 3]
            a = ah + losses[at] + (alo >> 28)
            b = bh + losses[at + 2] + (blo >> 28)
            alo &= FRAC
            blo &= FRAC
            n <<= 1
            at = 3 * n
            if k & half:
                self._join(0, at if n < leaf else after - 3, 1, ah, al, bh, bl)
                ah = a
                al = alo
                bh = b
                bl = blo
                n += 1
            else:
                self._join(after, at + 3 if n < leaf else after - 3, 0, a, alo, b, blo)
            half >>= 1
        self._join(0, after - 3, 1, ah, al, bh, bl)
        self._shares(after)

    def _shares(self, after):
        """Probabilities from the sums in the slots 0 and `after`: the pairs before predict 1, those after 0."""
        m = self.m
        e = self.e
        one = m[2]
        one_e = e[2]
        zero = m[after + 2]
        zero_e = e[after + 2]
        both = m[0] * m[after + 1]  # one threshold before, one after: they offload
        both_e = e[0] + e[after + 1] + 1
        self.local = 1 if not zero or one_e < zero_e or (one_e == zero_e and one > zero) else 0
        # one unit for all three: 2^-27 of the heaviest
        e = one_e
        if zero and zero_e < e:
            e = zero_e
        if both and both_e - 1 < e:
            e = both_e - 1
        one = one << 13 >> (one_e - e if one_e < e + 30 else 30)
        if zero:
            zero = zero << 13 >> (zero_e - e if zero_e < e + 30 else 30)
        if both:
            both >>= both_e - e if both_e < e + 30 else 30
        self.ambiguous = both
        self.total = e = zero + one + both
        self.offload = zero = ratio(both, e)
        one = ratio(one, e)
        if one > ONE - zero:
            one = ONE - zero
        self.one = one
        self.zero = ONE - zero - one

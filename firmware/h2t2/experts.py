# The expert tree: exponential weights over all pairs of thresholds (i <= j), in O(2^b) state and O(b) a step.
# Losses come in ready scaled (octaves); what they mean, draws and tickets are the policy's.
from array import array

from .fixed import FINE, NONE, ONE, exp2, log_add

CAP = 134217728  # 2^13 octaves, Q14: prefix sums of losses beyond it are halved, see Experts.full
ROOM = 201326592  # 1.5 CAP; a charge adds 2^12 octaves at most, and 2^14 are the end


class Experts:
    """Weights w(i, j) = u_i v_j on 0 <= i <= j < N = 2^bits of Algorithm 1, as a segment tree of base-2 logarithms.

    Bin k's cumulative losses enter only as A_k - B_k (experts i > k against i <= k) and B_k - C_k (j > k against
    j <= k), so u_i = 2^-sum_{k<i}(A_k - B_k) and v_j = 2^-sum_{k<j}(B_k - C_k): prefix sums. Node n (heap order, 1..N-1;
    0 stands for every leaf) has u, v, p[n], the logarithms of U = sum u, V = sum v, P = sum_{i<=j} u v over its bins,
    *relative to its first bin*; losses[n] and losses[N + n] are A - B and B - C summed over its left half, with their fine
    words in `fine`, half a unit up, so that what is in `losses` is rounded. With s = 2^-loss of the left half,

        U = Ul + Ur sA      V = Vl + Vr sB      P = Pl + Pr sA sB + Ul Vr sB

    A node is a function of the losses alone, so rounding never accumulates and a rebuild changes nothing.
    """

    def __init__(self, bits):
        """bits: b, 1..12 (boards: to 8). State: seven integers times 2^b."""
        self.n = n = 1 << bits
        self.u = array("i", [0] * n)
        self.v = array("i", self.u)
        self.p = array("i", self.u)
        self.losses = array("i", [0] * (2 * n))
        self.fine = array("i", [8192] * (2 * n))
        self.spent = 0  # no prefix sum of either loss is larger
        self.offload = self.one = self.zero = 0  # Q15 region probabilities of the last regions()
        self.local = 0  # the likelier local class there
        self.chance = 0  # the probability `offload`, Q29
        self.rebuild(0)

    def rebuild(self, shift):
        """Compute every node anew, O(2^b), with all losses as they are (shift 0) or halved (shift 1): forgetting."""
        losses = self.losses
        fine = self.fine
        n = 2 * self.n if shift else 0
        while n:
            n -= 1
            x = ((losses[n] & 1) << 14 | fine[n]) + 8192 >> 1
            losses[n] = (losses[n] >> 1) + (x >> 14)
            fine[n] = x & FINE
        self.spent >>= shift
        n = self.n
        while n > 1:
            n -= 1
            self._pull(n, n)

    def full(self):
        """True when the losses should be halved: when the sum of the first bins' goes beyond 2^13 octaves (5678 / eta units
        of loss) somewhere. Never needed again for at least 2^12 octaves charged, so O(2^b b) once in a while.

        Halving keeps the order of the experts and softens the odds between them.
        """
        losses = self.losses
        size = k = self.n
        top = 0
        while k:
            k -= 1
            n = k + size
            a = b = 0
            while n > 1:
                at = n & 1
                n >>= 1
                if at:
                    a += losses[n]
                    b += losses[n + size]
            top = max(top, a, -a, b, -b)
        self.spent = top
        return top > CAP

    def _pull(self, n, last):
        """The sums of node n, and of those above it down to number `last`, from their children's."""
        u = self.u
        v = self.v
        p = self.p
        losses = self.losses
        size = self.n
        left = n << 1
        if left < size:
            right = left + 1
        else:
            left = right = 0
        while n >= last:
            a = losses[n]
            b = losses[n + size]
            y = v[right] - b
            p[n] = log_add(log_add(p[left], p[right] - a - b), u[left] + y)
            u[n] = log_add(u[left], u[right] - a)
            v[n] = log_add(v[left], y)
            left = n & -2
            right = left + 1
            n >>= 1

    def charge(self, k, ah, al, bh, bl):
        """Add the losses A - B = (ah, al) and B - C = (bh, bl) to bin k: O(b). |ah|, |bh| <= 2^26."""
        if self.spent > ROOM and self.full():
            self.rebuild(1)
        self.spent += 1 + max(ah, -ah, bh, -bh)
        losses = self.losses
        fine = self.fine
        k += self.n
        while k & 1:  # nothing changes below the lowest node that has the bin in its left half
            k >>= 1
        n = k
        while n > 1:
            at = n
            n >>= 1
            if not at & 1:
                lo = fine[n] + al
                fine[n] = lo & FINE
                losses[n] += ah + (lo >> 14)
                at = n + self.n
                lo = fine[at] + bl
                fine[at] = lo & FINE
                losses[at] += bh + (lo >> 14)
        self._pull(k >> 1, 2)  # nobody needs the root's sums

    def regions(self, k):
        """The masses of bin k's three regions (Algorithm 1, lines 5-6), O(b): `offload`, `one`, `zero` in Q15 (sum ONE).

        Also `local`, the likelier local class, and `chance`.
        """
        u = self.u
        v = self.v
        p = self.p
        losses = self.losses
        half = size = self.n
        n = 1
        a = b = 0  # losses of the bins before node n
        lower = one = zero = upper = NONE  # U and P of the bins before node n, P and V of those after
        half >>= 1
        while half:
            x = a + losses[n]
            y = b + losses[n + size]
            n <<= 1
            if k & half:
                at = n if n < size else 0
                z = v[at] - b
                one = log_add(log_add(one, p[at] - a - b), lower + z)
                lower = log_add(lower, u[at] - a)
                a = x
                b = y
                n += 1
            else:
                at = n + 1 if n < size else 0
                zero = log_add(log_add(zero, p[at] - x - y), upper + u[at] - x)
                upper = log_add(upper, v[at] - y)
            half >>= 1
        lower = log_add(lower, -a)
        one = log_add(one, lower - b)
        self.local = 1 if one > zero else 0
        upper += lower  # one threshold before, one after: they offload
        total = log_add(log_add(one, zero), upper)
        self.chance = x = exp2(total - upper)
        self.offload = x = x + 8192 >> 14
        y = exp2(total - one) + 8192 >> 14
        if x + y > ONE:
            y = ONE - x
        self.one = y
        self.zero = ONE - x - y

# The expert tree: exponential weights over all pairs of thresholds (i <= j), in O(2^b) state and O(b) a step. The policy scales
# the losses (to octaves), draws, and keeps the tickets.
from array import array

from .curves import CURVES
from .numbers import NONE, ONE, exp2

if 0:  # for type checkers
    from ..annotations import Int32s, Iterator

CAP = 134217728  # 2^27 units: prefix sums of losses beyond it need a coarser unit, see Experts.coarsen
ROOM = 167772160  # 1.25 CAP: two charges add at most 2^27 units, and the limit is 2^28
COARSEST = 8  # unit 8 is 2^-6 octave: prefix sums to 2^21 octaves


def log_add(x: int, y: int, unit: int) -> int:
    """Return log2(2^x + 2^y), within .8 units of the last place.

    Args:
        x, y: Logarithms, |x|, |y| <= 2^28; one of them may be NONE (+- 2^28).
        unit: x and y count 2^unit of the last place of a logarithm, 0..9.
    """
    d = x - y
    if d < 0:
        d = -d
        x = y
    if d < 262144 >> unit:
        d <<= unit
        y = d >> 11 & -2  # the parabola; a further local would move the frame to the heap of MicroPython
        if y < 120:
            d &= 4095
            d = CURVES[y] - d * ((CURVES[y + 1] >> 8) - (d * (CURVES[y + 1] & 255) >> 10)) >> 15
            x += d + (1 << unit >> 1) >> unit
    return x


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
        self.n = n = 1 << bits
        self.u = array("i", [0] * n)
        self.v = array("i", self.u)
        self.p = array("i", self.u)
        self.losses = array("i", [0] * (2 * n))
        self.fine = array("i", [8192] * (2 * n))
        self.unit = 0
        self.bound = 0
        self.offload = self.positive = self.negative = self.local = self.chance = 0
        self.rebuild(False, False)

    def clear(self) -> None:
        """Return to equal weights."""
        n = 2 * self.n
        while n:
            n -= 1
            self.losses[n] = 0
            self.fine[n] = 8192
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
        n = 2 * self.n if coarser or halved else 0
        while n:
            n -= 1
            if coarser:
                x = ((losses[n] & 1) << 14 + self.unit | fine[n]) + (8192 << self.unit)
                losses[n] = (losses[n] >> 1) + (x >> 15 + self.unit)
                fine[n] = x & (32768 << self.unit) - 1
            if halved:
                fine[n] >>= 1
        if coarser:
            self.unit += 1
        if halved:
            self.unit -= 1
        n = self.n
        while n > 1:
            n -= 1
            self._pull(n, n)

    def coarsen(self) -> None:
        """Bound the prefix sums exactly, and double the unit if one is beyond 2^27 units. O(2^b b), once in 2^25 units.

        If the unit is 2^-6 octave already, halve every loss instead. This happens when a prefix sum is beyond 2^21 octaves
        (1.45e6 / eta of loss, millions of rounds). It keeps the order of the experts and softens the odds between them.
        """
        losses = self.losses
        size = k = self.n
        top = 0
        while k:
            k -= 2
            n = k + size >> 1
            a = abs(losses[n])  # of bin k alone: prefix sum k + 1 is prefix sum k plus this
            b = abs(losses[n + size])
            x = y = 0
            while n > 1:
                at = n & 1
                n >>= 1
                if at:
                    x += losses[n]
                    y += losses[n + size]
            top = max(top, a + abs(x), b + abs(y))
        self.bound = top
        if top > CAP:
            self.rebuild(True, self.unit >= COARSEST)

    def _pull(self, n: int, last: int) -> None:
        """Compute the sums of node n, and of its ancestors down to number `last`, from their children."""
        u = self.u
        v = self.v
        p = self.p
        losses = self.losses
        size = self.n
        unit = self.unit
        lower = n << 1
        if lower < size:
            upper = lower + 1
        else:
            lower = upper = 0
        while n >= last:
            a = losses[n]
            b = losses[n + size]
            y = v[upper] - b
            p[n] = log_add(log_add(p[lower], p[upper] - a - b, unit), u[lower] + y, unit)
            u[n] = log_add(u[lower], u[upper] - a, unit)
            v[n] = log_add(v[lower], y, unit)
            lower = n & -2
            upper = lower + 1
            n >>= 1

    def charge(self, k: int, loss: "Int32s") -> None:
        """Add losses to bin k, O(b). Call it at most twice before comparing `bound` with ROOM; beyond ROOM, coarsen() first.

        Args:
            k: The bin.
            loss: A - B and B - C: octaves in Q14, |octaves| <= 2^26, and a fine word each.
        """
        ah = loss[0]
        al = loss[1]
        bh = loss[2]
        bl = loss[3]
        unit = self.unit
        mask = (1 << unit) - 1
        al += (ah & mask) << 14
        bl += (bh & mask) << 14
        ah >>= unit
        bh >>= unit
        self.bound += 1 + max(ah, -ah, bh, -bh)
        losses = self.losses
        fine = self.fine
        unit += 14
        mask = (1 << unit) - 1
        k += self.n
        while k & 1:  # nothing changes below the lowest node that has the bin in its left half
            k >>= 1
        n = k
        while n > 1:
            at = n
            n >>= 1
            if not at & 1:
                lo = fine[n] + al
                fine[n] = lo & mask
                losses[n] += ah + (lo >> unit)
                at = n + self.n
                lo = fine[at] + bl
                fine[at] = lo & mask
                losses[at] += bh + (lo >> unit)
        self._pull(k >> 1, 2)  # nobody needs the root's sums

    def regions(self, k: int) -> int:
        """Set `offload`, `positive`, `negative`, `local` and `chance` for bin k (Algorithm 1, lines 5-6), O(b).

        Returns:
            The logarithm of the sum of all weights, relative to the weight of the pair (0, 0).
        """
        u = self.u
        v = self.v
        p = self.p
        losses = self.losses
        unit = self.unit
        size = self.n
        half = self.n >> 1
        n = 1
        a = b = 0  # losses of the bins before node n
        lower = positive = negative = upper = NONE  # U and P of the bins before node n, P and V of those after
        while half:
            above = k & half  # the bins of the left half are before the bin, or those of the right half after it
            x = a + losses[n]
            y = b + losses[n + size]
            n <<= 1
            if above:
                at = n if n < size else 0
                inside = positive
                whole = p[at] - a - b
                beside = lower
                across = lower + v[at] - b
                one = u[at] - a
                a = x
                b = y
                n += 1
            else:
                at = n + 1 if n < size else 0
                inside = negative
                whole = p[at] - x - y
                beside = upper
                across = upper + u[at] - x
                one = v[at] - y
            inside = log_add(log_add(inside, whole, unit), across, unit)
            beside = log_add(beside, one, unit)
            if above:
                positive = inside
                lower = beside
            else:
                negative = inside
                upper = beside
            half >>= 1
        lower = log_add(lower, -a, unit)
        positive = log_add(positive, lower - b, unit)
        self.local = 1 if positive > negative else 0
        upper += lower  # a threshold before the bin and a threshold after it: offload
        total = log_add(log_add(positive, negative, unit), upper, unit)
        self.chance = x = exp2(total - upper, unit)
        self.offload = x = x + 8192 >> 14
        y = exp2(total - positive, unit) + 8192 >> 14
        if x + y > ONE:
            y = ONE - x
        self.positive = y
        self.negative = ONE - x - y
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

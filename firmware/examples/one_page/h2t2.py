# H2T2 on one page: Algorithm 1 of "Inference Offloading for Cost-Sensitive Binary Classification at the Edge" (AAAI 2026).
# Line numbers are the paper's; line 19 computes the estimated loss. Integers of 31 bits: the same on CPython and MicroPython.
from array import array

BINS = 16  # 2^b score bins, b = 4. An expert is a pair of thresholds, 0 <= lower <= upper < BINS
OFFLOAD = -1  # an action; the others are the classes 0 and 1. What goes by action lies in the order 0, 1, OFFLOAD
BEST = 1 << 21  # weight of the expert with the least loss; the weights of the others are fractions of it
LIMIT = 1 << 24  # largest loss: 4096 octaves, in Q12 (4096 is one octave, which halves a weight)
POWERS = array("H", (  # 2^-(n / 32) for n = 0..32, in Q15 (32768 is 1.0)
    32768, 32066, 31379, 30706, 30048, 29405, 28774, 28158, 27554, 26964, 26386,
    25821, 25268, 24726, 24196, 23678, 23170, 22674, 22188, 21713, 21247, 20792,
    20347, 19911, 19484, 19066, 18658, 18258, 17867, 17484, 17109, 16743, 16384))  # fmt: skip


def times(x, fraction):
    """x * fraction, where 0 <= x < 2^29 and the fraction is Q15."""
    return (x >> 15) * fraction + ((x & 32767) * fraction >> 15)


def weaken(weight, loss):
    """weight * 2^-loss, where the loss is Q12: the exponential, linear between the entries of its table."""
    n = loss >> 7 & 31
    power = POWERS[n] - ((POWERS[n] - POWERS[n + 1]) * (loss & 127) >> 7)
    return times(weight, power) >> (loss >> 12)


class H2T2:
    """The two-threshold policy, which learns from the labels of offloaded samples. An expert predicts 0 in the bins below
    `lower`, offloads from there to below `upper`, and predicts 1 from `upper` on. Its weight is 2^-(sum over the bins of
    the loss of its action there), so that three losses a bin stand for all 136 weights."""

    def __init__(self, *, beta, delta_fp, delta_fn, eta, epsilon, seed, feedback):
        """beta, delta_fp, delta_fn: costs of an offload, a false positive, a false negative, Q15. eta: learning rate, Q10, at
        most 4.0. epsilon: exploration, Q15, at least 1/128. feedback: which offloads teach, "explored" (the paper) or "all"."""
        self.charges = array("i")  # by action, the octaves (Q20) of its cost: e^(-eta cost) = 2^-(eta cost log2(e))
        for cost in (delta_fn, delta_fp, beta):
            cost = cost * eta >> 5
            self.charges.append(cost + times(cost, 14506) + (cost >> 17))  # log2(e) = 1 + 14506 / 2^15 + 2^-17
        self.epsilon = epsilon
        self.all = feedback == "all"
        self.losses = array("i", [0] * 48)  # line 2: Q12 octaves by action and bin, at BINS * action + bin
        self.state = array("i", (1 + seed % 30268, 1 + seed // 30268 % 30306, 1, 0, 0))  # draw: 3, charge: 1, last ticket
        self.masses = [0, 0, 0]  # by action: the weight of all experts that take it in the bin of this round
        self.ticket = self.bin = self.local = self.chance = 0  # last offload: number, bin, likelier class, P(it teaches) in Q15

    def draw(self):
        """Uniform on 0..32767, by the generator of Wichmann and Hill (1982)."""
        state = self.state
        state[0] = 171 * state[0] % 30269
        state[1] = 172 * state[1] % 30307
        state[2] = 170 * state[2] % 30323
        return (state[0] << 15) // 30269 + (state[1] << 15) // 30307 + (state[2] << 15) // 30323 & 32767

    def weigh(self, k):
        """Lines 5 and 6: the masses of the three regions of bin k, in one pass over the upper thresholds.
        But for a constant, the loss of an expert is left(lower) + right(upper), sums over the bins below. `weight` sums
        2^(low - left) over the lower thresholds so far. Beyond bin k it begins anew, with those that predict 0; those up to k,
        weight_k, offload. A better expert weakens the masses of the others by its advantage."""
        losses = self.losses
        masses = self.masses
        masses[0] = masses[1] = masses[OFFLOAD] = 0
        left = right = low = least = weight = low_k = weight_k = 0
        for upper in range(BINS):
            if upper == k + 1:
                low_k = low
                weight_k = weight
                low = left
                weight = 0
            if left < low:
                weight = weaken(weight, low - left)
                low = left
            weight += weaken(BEST, left - low)
            advantage = least - min(low, low_k) - right
            if advantage > 0:
                for action in range(3):
                    masses[action] = weaken(masses[action], advantage)
                least -= advantage
            masses[upper <= k] += weaken(weight, low + right - least)
            masses[OFFLOAD] += weaken(weight_k, low_k + right - least)
            left += losses[upper] - losses[upper + 2 * BINS]
            right += losses[upper + 2 * BINS] - losses[upper + BINS]

    def decide(self, k):
        """A round for a score in bin k: 0 or 1 to act on, or OFFLOAD; learn() then takes the label that belongs to `ticket`."""
        self.weigh(k)
        zero, one, offload = self.masses
        total = zero + one + offload
        point = times(total, self.draw())  # line 7: psi, on the three masses laid end to end
        explored = self.draw() < self.epsilon  # line 8
        self.charge(OFFLOAD, k, self.charges[OFFLOAD])  # line 19, first case: in every round
        if point >= offload and not explored:
            return int(point < offload + one)  # lines 12 to 15
        self.chance = self.epsilon if explored else 0
        if self.all:  # q + (1 - q) epsilon, by long division
            part = offload + times(total - offload, self.epsilon)
            self.chance = (part // (total >> 7) << 8) + (part % (total >> 7) << 8) // (total >> 7)
        self.bin = k
        self.local = int(one > zero)
        self.state[4] = self.ticket = self.state[4] % 268435455 + 1
        return OFFLOAD  # line 10

    def learn(self, ticket, label):
        """Line 19, second case, for the label of the last offload. It teaches once; that of an older offload does not."""
        if ticket == self.ticket and self.chance:  # phi / chance, by long division
            cost = self.charges[1 - label]
            self.charge(1 - label, self.bin, (cost // self.chance << 15) + (cost % self.chance << 15) // self.chance)
            self.chance = 0

    def charge(self, action, k, octaves):
        """Line 19: charge Q20 octaves to an action in bin k; the next charge takes over what Q12 cannot hold of them."""
        octaves += self.state[3]
        self.state[3] = octaves & 255
        self.losses[BINS * action + k] += octaves >> 8
        if self.losses[BINS * action + k] > LIMIT:  # halve all losses: slow forgetting, for years of rounds
            for n in range(48):
                self.losses[n] >>= 1

    def snapshot(self):
        """What it has learned, its draws and its last ticket: 53 integers."""
        return self.state + self.losses

    def restore(self, integers):
        """Go on from a snapshot. ValueError, and nothing changes, for integers that are none."""
        limits = (30268, 30306, 30322, 255, 268435455)
        for n in range(53):
            if len(integers) != 53 or not int(n < 3) <= integers[n] <= (limits[n] if n < 5 else LIMIT):
                raise ValueError("not a snapshot")
        self.state = array("i", integers[:5])
        self.losses = array("i", integers[5:])
        self.chance = 0

"""Float64 references, which share only the random draws with the core.

They are Algorithm 1 as printed, on the dense matrix of experts; the same with factorised weights, for matrices that are too
large to sum in every round; and the adaptive policy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from h2t2.core.policy import OFFLOAD

NEAR = 2e-2  # if the sides of a comparison are closer than this, integers may decide either way
WORTH, PARENT = (4, 128), (1, 8)  # weights, in labels, of a cell's prior and of its parent's mean


class DenseH2T2:
    """H2T2 over the (N, N) matrix of experts (i, j), i <= j, N = 2^bits, with logarithms of the weights.

    Costs, eta and epsilon are plain numbers. The other options are those of h2t2.core.h2t2.H2T2.
    """

    def __init__(
        self,
        *,
        bits: int,
        beta: float,
        delta_fp: float,
        delta_fn: float,
        eta: float,
        epsilon: float,
        feedback: str = "explored",
        exploration: str = "epsilon",
        half_life: int = 0,
        rdl_fp: float = 0.0,
        rdl_fn: float = 0.0,
    ) -> None:
        self._start(2**bits)
        self.beta, self.delta_fp, self.delta_fn = beta, delta_fp, delta_fn
        self.eta, self.epsilon = eta, epsilon
        self.feedback, self.exploration, self.half_life = feedback, exploration, half_life
        self.rdl_fp, self.rdl_fn = rdl_fp, rdl_fn
        self.t = 0

    def _start(self, n: int) -> None:
        self.lower, self.upper = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        self.valid = self.lower <= self.upper
        self.loss = np.zeros((n, n))  # cumulative estimated loss of each expert

    def charge(self, k: int, zero: float, offload: float, positive: float) -> None:
        """Add to the loss of the experts that predict 0, offload, or predict 1 in bin k."""
        predict0, predict1 = self.lower > k, self.upper <= k
        self.loss[predict0] += zero
        self.loss[~predict0 & ~predict1] += offload
        self.loss[predict1] += positive

    def forget(self) -> None:
        """Halve every loss."""
        self.loss /= 2

    def regions(self, k: int) -> tuple[float, float]:
        """Return (q_t, p_t): the probabilities of region 2 (offload) and region 3 (predict 1) for a score in bin k."""
        w: np.ndarray = np.where(self.valid, np.exp(-self.eta * (self.loss - np.min(self.loss[self.valid]))), 0.0)
        offload, positive = w[: k + 1, k + 1 :], w[: k + 1, : k + 1]
        total = float(w.sum())
        return float(offload.sum()) / total, float(positive.sum()) / total

    def start(self) -> None:
        """Begin a round: forget, and set epsilon_t of the anytime exploration."""
        if self.half_life and self.t and self.t % self.half_life == 0:
            self.forget()
        self.t += 1
        if self.exploration == "anytime":
            t = min(self.t, 2 * self.half_life or 2**24 - 1, 2**24 - 1)
            root = int(round((64 * t) ** (1 / 3)))
            root -= root**3 > 64 * t
            root += (root + 1) ** 3 <= 64 * t
            self.epsilon = min(0.5, math.floor(65536 / root) / 32768)  # epsilon is compared with 15-bit draws

    def decide(self, k: int, psi: float, zeta: bool) -> tuple[int, float, float]:
        """Return (action, q_t, p_t) for the draws psi in (0, 1) and zeta; lines 4 to 17 of Algorithm 1."""
        q, p = self.regions(k)
        if psi <= q or zeta:
            return OFFLOAD, q, p
        return int(psi <= q + p), q, p

    def update(self, k: int, q: float, offloaded: bool, zeta: bool, label: int) -> None:
        """Charge each expert its estimated loss (lines 18 to 20), as the paper has it or in its `all` form."""
        chance = self.epsilon if self.feedback == "explored" else q + (1 - q) * self.epsilon
        learns = offloaded and (zeta or self.feedback == "all")
        self.charge(
            k, self._phi(0, label) / chance if learns else 0.0, self.beta, self._phi(1, label) / chance if learns else 0.0
        )

    def _phi(self, prediction: int, label: int) -> float:
        """Return the loss of a prediction beyond that of an offload.

        It is corrected for an erring remote model, so that its mean is that of the true losses.
        """
        flip = [self.rdl_fp, self.rdl_fn]  # flip[truth]: P(label != truth)
        asked = [self.rdl_fp * self.delta_fp, self.rdl_fn * self.delta_fn]  # by the mistakes of the remote model
        cost = [[-asked[0], self.delta_fp - asked[0]], [self.delta_fn - asked[1], -asked[1]]]  # cost[truth][prediction]
        opposite = 1 - label
        return ((1 - flip[opposite]) * cost[label][prediction] - flip[label] * cost[opposite][prediction]) / (1 - sum(flip))


class FactoredH2T2(DenseH2T2):
    """The same policy in O(2^bits) a round: w(i, j) = u_i v_j (docs/algorithm.md). Tests compare it with the dense matrix."""

    def _start(self, n: int) -> None:
        self.bins = np.zeros((3, n))  # losses charged in each bin to predicting 0, offloading, predicting 1

    def charge(self, k: int, zero: float, offload: float, positive: float) -> None:
        self.bins[:, k] += zero, offload, positive

    def forget(self) -> None:
        self.bins /= 2

    def regions(self, k: int) -> tuple[float, float]:
        zero, offload, positive = self.bins
        u = -self.eta * np.concatenate([[0.0], np.cumsum(zero - offload)[:-1]])  # logarithms
        v = -self.eta * np.concatenate([[0.0], np.cumsum(offload - positive)[:-1]])
        lower = np.logaddexp.accumulate(u)  # of the sum of u up to i
        pairs = lower + v  # of all pairs with upper threshold j
        sums = [_log_sum(terms) for terms in (lower[k] + v[k + 1 :], pairs[: k + 1], pairs) if len(terms)]
        self.total = total = sums[-1]
        return math.exp(sums[0] - total) if len(sums) == 3 else 0.0, math.exp(sums[-2] - total)


def _log_sum(logarithms: np.ndarray) -> float:
    """Return log sum exp."""
    top = float(np.max(logarithms))
    return top + math.log(float(np.sum(np.exp(logarithms - top))))


class FloatWatch:
    """The part of a forecaster that needs no label: it fades counts on schedule and after drift of the scores.

    It rounds only what the device halves: counts to quarters, histograms to 64ths.
    """

    HALF_LIVES = (0, 4000, 1000, 250)
    FLOOR = 164 / 32768
    AUDITS = tuple(x / 32768 for x in (13107, 1638, 485, 205))

    def __init__(self, cells: int, shape: tuple[int, ...]) -> None:
        self.counts = np.zeros((len(self.HALF_LIVES), *shape))
        self.fast, self.slow = np.zeros(cells, int), np.zeros(cells, int)
        self.t = self.quiet = self.audits = 0

    def watch(self, k: int) -> None:
        """Begin a round with a score in cell k."""
        self.t += 1
        self.fast[k] += 64
        self.slow[k] += 64
        self.quiet = min(self.quiet + 1, 128)
        if self.t % 32 == 0:
            if self.quiet >= 128:
                a, b = self.fast / self.fast.sum(), self.slow / self.slow.sum()
                if float(((a - b) ** 2 / ((a + b) / 2 + 4 / 4096)).sum()) > 1285 / 4096 * max(1, len(a) // 16):
                    self.restart()
            self.fast -= self.fast >> 2
            self.slow -= self.slow >> 6
        for m, half_life in enumerate(self.HALF_LIVES):
            if half_life and self.t % half_life == 0:
                self.counts[m] = np.floor(self.counts[m] * 2) / 4

    def restart(self) -> None:
        """Let the past count less, after a drift."""
        self.counts = np.floor(self.counts) / 4
        self.slow, self.audits, self.quiet = self.fast.copy(), min(self.audits, 1), 0

    def floor(self) -> float:
        """Return the smallest probability to offload."""
        return self.AUDITS[self.audits] if self.audits < len(self.AUDITS) else self.FLOOR


def _tree_forecasts(labels: np.ndarray, events: np.ndarray, leaf: int, prior: float) -> list[float]:
    """Return the probabilities of an event at a leaf of a tree of counts: by its prior, then by the means of its parents."""
    probabilities = [(events[leaf] + worth * prior) / (labels[leaf] + worth) for worth in WORTH]
    for worth in PARENT:
        p = 0.5
        for shift in range(leaf.bit_length() - 1, -1, -1):
            p = (events[leaf >> shift] + worth * p) / (labels[leaf >> shift] + worth)
        probabilities.append(p)
    return probabilities


class FloatAdaptive(FactoredH2T2, FloatWatch):
    """The adaptive policy of docs/algorithm.md in float64, the reference of h2t2.core.adaptive.Adaptive.

    answers: The class beyond an offload's part of the draw, and the one after it.
    """

    answers = 1, 0
    BEHIND = (2, 80, 0.5, 4)  # their weights in the interval

    def __init__(
        self, *, bits: int, beta: float, delta_fp: float, delta_fn: float, rdl_fp: float = 0.0, rdl_fn: float = 0.0
    ) -> None:
        FactoredH2T2.__init__(
            self, bits=bits, beta=beta, delta_fp=delta_fp, delta_fn=delta_fn, eta=0.05, epsilon=0.0, feedback="all",
            rdl_fp=rdl_fp, rdl_fn=rdl_fn,
        )  # fmt: skip
        n = 2**bits
        self.bits = bits
        self.prior = (np.arange(n) + 0.5) / n
        FloatWatch.__init__(self, n, (2, 2 * n))  # counts: labels and events of every node, by memory
        self.losses = np.zeros((len(self.HALF_LIVES), 4))  # Brier, of every forecast
        self.lead = 0.0  # natural logarithm of the forecaster's weight relative to the pair (0, 0), without its share
        self.ahead = math.log(2) * (6950945 / 2**20 + 2 * bits - 1)
        self.want, self.guess = 0.0, 0

    def forecasts(self) -> np.ndarray:
        """Return the probabilities of an event in the round's bin, (memories, 4)."""
        leaf = len(self.prior) + self.k
        return np.array([_tree_forecasts(labels, events, leaf, self.prior[self.k]) for labels, events in self.counts])

    def believe(self) -> tuple[float, float, float, float]:
        """Return (p, low, high, labels) of the round's bin."""
        w = np.exp2(-6 * (self.losses - np.min(self.losses)))
        w /= w.sum()
        each = self.forecasts()
        p = float((w * each).sum())
        behind = float((w * (self.counts[:, 0, len(self.prior) + self.k][:, None] + np.array(self.BEHIND))).sum()) + 1
        width = math.sqrt(p * (1 - p) / behind + float((w * (each - p) ** 2).sum())) + 0.5 / behind
        clear = 1 - self.rdl_fp - self.rdl_fn
        p, low, high = (min(1.0, max(0.0, (x - self.rdl_fp) / clear)) for x in (p, p - width, p + width))
        return p, low, high, behind

    def observe(self, sample: Any) -> None:
        """Begin a round with a sample: the bin of its score."""
        self.k = int(sample)
        self.watch(self.k)
        if self.t % 1000 == 0:
            self.forget()
            self.lead /= 2

    def chance(self) -> tuple[float, float, float]:
        """Return (P(offload), P(1 | not offloaded), distance from the boundary at which the forecaster's wish jumps)."""
        q, positive = self.regions(self.k)
        p, low, high, labels = self.believe()
        zero_costs, one_costs = p * self.delta_fn, (1 - p) * self.delta_fp
        self.guess = int(one_costs <= zero_costs)
        floor = self.floor()
        asked_0, asked_1 = self.rdl_fp * self.delta_fp, self.rdl_fn * self.delta_fn
        lower = _quotient(self.beta + asked_0, self.delta_fn - asked_1 + asked_0)
        upper = 1 - _quotient(self.beta + asked_1, self.delta_fp - asked_0 + asked_1)
        near = abs(zero_costs - one_costs)
        self.want = floor
        if lower < upper:
            near = min(near, abs(high - lower), abs(low - upper))
        if lower < upper and high > lower and low < upper:
            self.want = 1.0
        else:
            edge = low if self.guess else high
            gain = (edge * self.delta_fn - (1 - edge) * self.delta_fp) * (-1 if self.guess else 1)
            if gain > 0:
                scale = max(33 / 32768, self.beta - min(zero_costs, one_costs))
                self.want = max(floor, min(1.0, gain / scale / (1 + labels / 50)))
        self.sure = self.want == floor
        g = 1 / (1 + math.exp(min(700.0, self.total - self.ahead - self.lead)))
        zeros = g * (1 - self.want) * (1 - self.guess) + (1 - g) * max(0.0, 1 - q - positive)
        positives = g * (1 - self.want) * self.guess + (1 - g) * positive
        certain = positives / (positives + zeros) if positives + zeros > 1e-4 else float(self.guess)
        return max(self.FLOOR, g * self.want + (1 - g) * q), certain, near

    def charged(self) -> None:
        """Charge the round's beta to the offloading experts and to the forecaster's part."""
        self.charge(self.k, 0.0, self.beta, 0.0)
        self.lead -= self.eta * self.beta * self.want

    def learn(self, chance: float, label: int) -> None:
        """Learn from the label of this round's offload, which was made with probability `chance`."""
        self.audits = min(self.audits + self.sure, len(self.AUDITS))
        divisor = min(1.0, chance + 655 / 32768)
        zero, positive = self._phi(0, label) / divisor, self._phi(1, label) / divisor
        self.charge(self.k, zero, 0.0, positive)
        self.lead += self.eta * (positive - (1 - self.want) * (positive if self.guess else zero))
        self.losses += (label - self.forecasts()) ** 2 - self.losses * 5 / 1024
        self.count(len(self.prior) + self.k, label)

    def count(self, leaf: int, label: int) -> None:
        """Count a label at a leaf and at the nodes above it."""
        for shift in range(leaf.bit_length()):
            node = leaf >> shift
            self.counts[:, 0, node] += 1
            self.counts[:, 1, node] += label
            full = self.counts[:, 0, node] >= 8000
            self.counts[full, :, node] = np.floor(self.counts[full, :, node] * 2) / 4


def _quotient(a: float, b: float) -> float:
    """Return a / b, at most 1."""
    return 1.0 if a >= b else a / b

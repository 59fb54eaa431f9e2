"""Float references in float64, which share only the draws with the core: Algorithm 1 as printed, on the dense matrix of
experts; the same with factorised weights, for matrices too large to sum every round; and the calibrating policy."""

from __future__ import annotations

import math

import numpy as np

from h2t2.core.policy import OFFLOAD


class DenseH2T2:
    """H2T2 over the (N, N) matrix of experts (i, j), i <= j, N = 2^bits: w(i, j) kept as its logarithm.

    Costs, eta and epsilon are plain numbers. feedback, exploration, half_life, rdl_fp, rdl_fn: as in h2t2.core.h2t2.H2T2.
    """

    def __init__(
        self,
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

    def charge(self, k: int, zero: float, offload: float, one: float) -> None:
        """Add to the loss of the experts that predict 0, offload, or predict 1 in bin k."""
        predict0, predict1 = self.lower > k, self.upper <= k
        self.loss[predict0] += zero
        self.loss[~predict0 & ~predict1] += offload
        self.loss[predict1] += one

    def forget(self) -> None:
        """Halve every loss."""
        self.loss /= 2

    def regions(self, k: int) -> tuple[float, float]:
        """(q_t, p_t): the probabilities of region 2 (offload) and region 3 (predict 1) for a score in bin k."""
        w: np.ndarray = np.where(self.valid, np.exp(-self.eta * (self.loss - np.min(self.loss[self.valid]))), 0.0)
        offload, one = w[: k + 1, k + 1 :], w[: k + 1, : k + 1]
        total = float(w.sum())
        return float(offload.sum()) / total, float(one.sum()) / total

    def start(self) -> None:
        """A round begins: forgetting, and epsilon_t of the anytime exploration."""
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
        """(action, q_t, p_t) for the draws psi in (0, 1) and zeta; lines 4-16 of Algorithm 1."""
        q, p = self.regions(k)
        if psi <= q or zeta:
            return OFFLOAD, q, p
        return int(psi <= q + p), q, p

    def update(self, k: int, q: float, offloaded: bool, zeta: bool, label: int) -> None:
        """Lines 17-20: every expert's estimated loss, equation (9), or its `all` form; label is read on an offload only."""
        chance = self.epsilon if self.feedback == "explored" else q + (1 - q) * self.epsilon
        learns = offloaded and (zeta or self.feedback == "all")
        self.charge(
            k, self._phi(0, label) / chance if learns else 0.0, self.beta, self._phi(1, label) / chance if learns else 0.0
        )

    def _phi(self, prediction: int, label: int) -> float:
        """Loss of a prediction, corrected for a remote model that errs: its expectation is the loss against the truth."""
        cost = [[0.0, self.delta_fp], [self.delta_fn, 0.0]]  # cost[truth][prediction]
        flip = [self.rdl_fp, self.rdl_fn]  # flip[truth]: P(label != truth)
        other = 1 - label
        return ((1 - flip[other]) * cost[label][prediction] - flip[label] * cost[other][prediction]) / (1 - sum(flip))


class FactoredH2T2(DenseH2T2):
    """The same policy in O(2^bits) a round: w(i, j) = u_i v_j (docs/algorithm.md). tests/ hold it to the dense matrix."""

    def _start(self, n: int) -> None:
        self.bins = np.zeros((3, n))  # losses charged in each bin to predicting 0, offloading, predicting 1

    def charge(self, k: int, zero: float, offload: float, one: float) -> None:
        self.bins[:, k] += zero, offload, one

    def forget(self) -> None:
        self.bins /= 2

    def regions(self, k: int) -> tuple[float, float]:
        zero, offload, one = self.bins
        u = -self.eta * np.concatenate([[0.0], np.cumsum(zero - offload)[:-1]])  # logarithms
        v = -self.eta * np.concatenate([[0.0], np.cumsum(offload - one)[:-1]])
        lower = np.logaddexp.accumulate(u)  # of the sum of u up to i
        pairs = lower + v  # of all pairs with upper threshold j
        sums = [_log_sum(part) for part in (lower[k] + v[k + 1 :], pairs[: k + 1], pairs) if len(part)]
        total = sums[-1]
        return math.exp(sums[0] - total) if len(sums) == 3 else 0.0, math.exp(sums[-2] - total)


def _log_sum(logarithms: np.ndarray) -> float:
    """log sum exp."""
    top = float(np.max(logarithms))
    return top + math.log(float(np.sum(np.exp(logarithms - top))))


class FloatCalibrating:
    """The calibrating policy as its documentation says it, in float64: h2t2.core.calibrating.Calibrating's reference."""

    def __init__(
        self, bits: int, beta: float, delta_fp: float, delta_fn: float, half_life: int, rdl_fp: float, rdl_fn: float
    ) -> None:
        self.counts = np.zeros((2**bits, 2))
        self.beta, self.delta_fp, self.delta_fn = beta, delta_fp, delta_fn
        self.half_life, self.rdl_fp, self.rdl_fn = half_life, rdl_fp, rdl_fn
        self.t = 0

    def start(self) -> None:
        """A round begins: forgetting, in sixteenths as the device counts."""
        if self.half_life and self.t and self.t % self.half_life == 0:
            total = np.floor(self.counts.sum(1) * 8) / 16
            self.counts[:, 1] = np.floor(self.counts[:, 1] * 8) / 16
            self.counts[:, 0] = total - self.counts[:, 1]
        self.t += 1

    def chance(self, k: int) -> tuple[float, int, float]:
        """(probability to offload, local class, distance of the interval or the costs from where that would change)."""
        n = self.counts[k].sum()
        p = (self.counts[k, 1] + 0.5) / (n + 1)
        w = 1.5 * (math.sqrt(p * (1 - p) / (n + 1)) + 1 / (2 * (n + 1)))
        clear = 1 - self.rdl_fp - self.rdl_fn
        p, w = min(1.0, max(0.0, (p - self.rdl_fp) / clear)), w / clear
        low, high = max(0.0, p - w), min(1.0, p + w)
        zero, one = p * self.delta_fn, (1 - p) * self.delta_fp
        local = int(one <= zero)
        lower = self.beta / self.delta_fn if self.delta_fn else 1.0
        upper = 1 - self.beta / self.delta_fp if self.delta_fp else 0.0
        margin = min(abs(high - lower), abs(low - upper), abs(zero - one)) if lower < upper else abs(zero - one)
        if lower < upper and high > lower and low < upper:
            return 1.0, local, margin
        edge = low if local else high
        gain = edge * self.delta_fn - (1 - edge) * self.delta_fp
        gain = -gain if local else gain
        chance = 655 / 32768 if self.half_life else 0.0
        if gain > 0:
            more = self.beta - min(zero, one)
            chance = 1.0 if more <= 0 else max(chance, gain / (more * (1 + n / 50)))
        return min(1.0, chance), local, margin

    def learn(self, k: int, label: int) -> None:
        """One label of bin k."""
        self.counts[k, label] += 1
        if self.counts[k].sum() >= 32768:
            self.counts[k] /= 2

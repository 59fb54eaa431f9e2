"""Policies that do not learn online: never or always asking, fixed filters and thresholds, and the best in hindsight."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....common.calibrated import decide_binary, decide_multiclass
from ..stream import Costs, Stream
from .base import Policy


def local(stream: Stream, costs: Costs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return max f, argmax f and the cost of that class, (T,) each. In a binary tie the class is 1."""
    if stream.score.ndim == 1:
        guess = (stream.score >= 0.5).astype(np.int64)
        confidence = np.maximum(stream.score, 1 - stream.score)
    else:
        guess = stream.score.argmax(1)
        confidence = stream.score.max(1)
    return confidence, guess, np.array(costs.matrix)[stream.label, guess]


@dataclass(frozen=True)
class NoOffload(Policy):
    """Always takes the local model's class."""

    name = "no offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return stream.q14.argmax(1) if stream.score.ndim == 2 else (stream.score >= 0.5).astype(np.int64)


@dataclass(frozen=True)
class FullOffload(Policy):
    """Offloads every sample."""

    name = "full offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return -1 - NoOffload().act(stream, costs, seed)


@dataclass(frozen=True)
class Calibrated(Policy):
    """Applies Theorem 1 (Theorem 3 to class scores) to the scores. It is optimal if the local model is calibrated."""

    name = "calibrated rule"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        if stream.score.ndim == 1:
            return decide_binary(stream.q14[:, 1], stream.beta_q15, costs.q15[0, 1], costs.q15[1, 0])
        return decide_multiclass(stream.q14, stream.beta_q15, costs.q15)


@dataclass(frozen=True)
class OfflinePair(Policy):
    """theta-star: the best of all pairs of thresholds in hindsight, on 2^bits bins, in O(N + 2^bits).

    limit: Largest share of events that it may miss; 1: no limit.
    """

    bits: int = 4
    limit: float = 1.0
    may_ask_in_last_bin: ClassVar[bool] = True
    name = "offline pair θ*"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        bins = stream.bins(self.bits)
        i, j = thresholds(stream, costs, self.bits, self.limit, 2**self.bits - (not self.may_ask_in_last_bin))
        return np.where(bins < i, 0, np.where(bins < j, -1, 1))


def thresholds(stream: Stream, costs: Costs, bits: int, limit: float = 1.0, last: int | None = None) -> tuple[int, int]:
    """Return the best pair (i, j): 0 below bin i, offload from i to j - 1, 1 from j on.

    Args:
        stream, costs, bits: As above.
        limit: Largest share of events that the pair may miss.
        last: Largest j; None: 2^bits.
    """
    n = 2**bits
    bins = stream.bins(bits)
    miss = np.bincount(bins, weights=costs.delta_fn * (stream.label == 1), minlength=n)
    alarm = np.bincount(bins, weights=costs.delta_fp * (stream.label == 0), minlength=n)
    offload = np.bincount(bins, weights=stream.beta, minlength=n)
    end = (n if last is None else last) + 1
    lower = np.concatenate([[0.0], np.cumsum(miss - offload)])[:end]  # for each i, relative to offloading every bin below it
    missed = np.concatenate([[0], np.cumsum(np.bincount(bins, stream.label == 1, n))])[:end]
    lower[missed > limit * (stream.label == 1).sum()] = np.inf
    upper = np.concatenate([[0.0], np.cumsum(offload - alarm)])[:end]
    best_i = np.array([int(np.argmin(lower[: j + 1])) for j in range(end)])
    j = int(np.argmin(lower[best_i] + upper))
    return int(best_i[j]), j


@dataclass(frozen=True)
class OfflineSingle(Policy):
    """theta-dagger: the best single threshold on the confidence in hindsight, in O(N log N). Equal confidences act alike."""

    name = "offline single θ†"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, _ = local(stream, costs)
        return np.where(confidence < threshold(stream, costs), -1 - guess, guess)


def threshold(stream: Stream, costs: Costs) -> float:
    """Return theta: the policy offloads lower confidences. 2.0 offloads everything."""
    confidence, _, wrong = local(stream, costs)
    order = np.argsort(confidence, kind="stable")
    total = wrong.sum() + np.concatenate([[0.0], np.cumsum((stream.beta - wrong)[order])])
    ordered = confidence[order]
    cut = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])
    m = int(np.argmin(np.where(cut, total, np.inf)))
    return float(ordered[m]) if m < len(ordered) else 2.0


@dataclass(frozen=True)
class FixedPair(Policy):
    """The best pair of thresholds for the first `samples` of `labelled`, or of the stream itself. It never changes."""

    samples: int = 200
    bits: int = 4
    labelled: Stream | None = None

    @property
    def name(self) -> str:
        return f"best pair of {self.samples} samples, kept"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        labelled = self.labelled or stream
        n = min(self.samples, len(labelled))
        i, j = thresholds(Stream(labelled.score[:n], labelled.label[:n], np.full(n, costs.beta)), costs, self.bits)
        bins = stream.bins(self.bits)
        return np.where(bins < i, 0, np.where(bins < j, -1 - (stream.score >= 0.5), 1))

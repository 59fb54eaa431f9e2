"""The best policies in hindsight."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .local import local


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


@dataclass(frozen=True)
class PaperPair(OfflinePair):
    """The paper's theta-star: the best pair of the grid that H2T2's experts are. None of it offloads the last bin."""

    may_ask_in_last_bin: ClassVar[bool] = False
    name = "offline pair, the paper's grid"


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
class OfflineBin(Policy):
    """Takes the cheapest action of each bin in hindsight. No policy that sees only the bin can cost less on average."""

    bits: int = 4
    name = "offline optimum a bin"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        bins = stream.bins(self.bits)
        n = 2**self.bits
        cost = [
            np.bincount(bins, weights=weights, minlength=n)
            for weights in (costs.delta_fn * (stream.label == 1), costs.delta_fp * (stream.label == 0), stream.beta)
        ]
        actions: np.ndarray = np.array([0, 1, -1])[np.argmin(cost, 0)][bins]
        return actions


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

"""The learners by confidence, compiled, the paper's fixed pair, Sedna's filters, and pairwise H2T2. They need numba."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from h2t2 import units
from h2t2_tools.common.corollary import optimal_rates
from h2t2_tools.common.policies import DEFAULTS
from h2t2_tools.replay.simulation.player import play
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair, local
from h2t2_tools.replay.simulation.stream import Costs, Stream

from .bounds import one_sided, two_sided
from .hedge import single_threshold
from .pairwise import Pairwise as PairwiseLearner

BINS = 16


@dataclass(frozen=True)
class HiLcb(Policy):
    """HI-LCB in our form (see bounds): one confidence bound for each bin of the local class's confidence."""

    alpha: float = 0.52
    monotone: bool = True
    name = "HI-LCB (our statement)"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, wrong = local(stream, costs)
        minimum = 1 / len(costs.matrix)
        bins = np.clip(((confidence - minimum) / (1 - minimum) * BINS).astype(np.int64), 0, BINS - 1)
        offloaded = np.zeros(len(stream), np.int64)
        one_sided(bins, wrong, stream.beta, float(np.max(costs.matrix)), self.alpha, self.monotone, offloaded)
        return np.where(offloaded == 1, -1 - guess, guess)


@dataclass(frozen=True)
class TwoSidedBound(Policy):
    """An interval for P(event) of each score bin, for unequal errors. It is ours, not the published HI-LCB-2D."""

    alpha: float = 0.52
    bits: int = 4
    name = "two-sided bound, ours"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        actions = np.zeros(len(stream), np.int64)
        deltas = max(costs.delta_fp, 1e-9), max(costs.delta_fn, 1e-9)
        two_sided(stream.bins(self.bits), stream.label, stream.beta, *deltas, self.alpha, actions)
        return np.where(actions == 2, -1 - (stream.score >= 0.5), actions)


@dataclass(frozen=True)
class SingleThreshold(Policy):
    """HI with a single threshold, learned online over a continuum (the paper's baseline). epsilon 0: Corollary 1's for T."""

    eta: float = DEFAULTS["eta"]
    epsilon: float = 0.0
    name = "HI single threshold"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, wrong = local(stream, costs)
        values, ranks = np.unique(confidence, return_inverse=True)
        edges = np.concatenate([[0.0], values, [1.0]])
        rng = np.random.default_rng([seed, 2])
        epsilon = self.epsilon or optimal_rates(4, len(stream), max(1e-3, costs.beta))[0]
        offloaded = np.zeros(len(stream), np.int64)
        psi, zeta = rng.random(len(stream)), rng.random(len(stream))
        single_threshold(
            ranks.astype(np.int64), np.diff(edges), (wrong, stream.beta), (self.eta, epsilon), (psi, zeta), offloaded
        )
        return np.where(offloaded == 1, -1 - guess, guess)


@dataclass(frozen=True)
class PaperPair(OfflinePair):
    """The paper's theta-star: the best pair of the grid that H2T2's experts are. None of it offloads the last bin."""

    may_ask_in_last_bin: ClassVar[bool] = False
    name = "offline pair, the paper's grid"


@dataclass(frozen=True)
class Filter(Policy):
    """KubeEdge Sedna's filters of hard samples (sedna.algorithms.hard_example_mining), applied to a classifier.

    "threshold" offloads a confidence below .9, the value in Sedna's documentation. "entropy" offloads if 1 - (entropy in nats)
    is below .5, Sedna's default. The third filter, IBT, counts the boxes of a detector. With one box a picture it is a
    threshold of .5, which two classes always reach, so it would never offload.
    """

    kind: str = "threshold"

    @property
    def name(self) -> str:
        return f"Sedna's {self.kind} filter"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        confidence, guess, _ = local(stream, costs)
        if self.kind == "threshold":
            hard = confidence < 0.9
        else:
            f = np.clip(stream.q14 / 16384, 1e-9, 1)
            hard = 1 + (f * np.log(f)).sum(1) < 0.5
        return np.where(hard, -1 - guess, guess)


@dataclass(frozen=True)
class Pairwise(Policy):
    """Pairwise H2T2 for many classes, compiled."""

    bits: int = 4
    eta: float = DEFAULTS["eta"]
    feedback: str = DEFAULTS["feedback"]
    exploration: str = DEFAULTS["exploration"]
    half_life: int = 0
    name = "pairwise H2T2"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        epsilon = optimal_rates(self.bits, len(stream), max(1e-3, costs.beta))[0]
        numbers = units.policy(**vars(self), beta=costs.beta, epsilon=epsilon, seed=seed)
        return play(PairwiseLearner(costs.q15.tolist(), **numbers), stream.q14, stream)

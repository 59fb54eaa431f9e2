from dataclasses import dataclass

import numpy as np

from ....common.corollary import optimal_rates
from ..hedge import single_threshold
from ..stream import Costs, Stream
from .base import Policy
from .confidence import local


@dataclass(frozen=True)
class SingleThreshold(Policy):
    """HI with a single threshold, learned online over a continuum (the paper's baseline). epsilon 0: Corollary 1's for T."""

    eta: float = 1.0
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

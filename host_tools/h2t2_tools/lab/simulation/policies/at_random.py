from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .no_offload import NoOffload


@dataclass(frozen=True)
class AtRandom(Policy):
    """Offloads a random share of the samples and follows the local model in the others."""

    share: float
    name = "at random"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        local = NoOffload().act(stream, costs, seed)
        offloaded = np.random.default_rng([seed, 5]).random(len(stream)) < self.share
        return np.where(offloaded, -1 - local, local)

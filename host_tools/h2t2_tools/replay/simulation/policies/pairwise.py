from dataclasses import dataclass

import numpy as np

from h2t2 import units

from ....common.corollary import optimal_rates
from ....common.policies import DEFAULTS
from ..pairwise import Pairwise as Learner
from ..player import play
from ..stream import Costs, Stream
from .base import Policy


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
        return play(Learner(costs.q15.tolist(), **numbers), stream.q14, stream)

from dataclasses import dataclass

import numpy as np

from h2t2.core.pairwise import Pairwise as Device
from h2t2.units import q15

from ....common.corollary import optimal_rates
from .. import twin
from ..stream import Costs, Stream
from .base import Policy
from .h2t2 import options


@dataclass(frozen=True)
class Pairwise(Policy):
    """The device's pairwise H2T2 for many classes, compiled."""

    bits: int = 4
    eta: float = 1.0
    feedback: str = "all"
    exploration: str = "anytime"
    half_life: int = 0
    name = "pairwise H2T2"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        matrix = costs.q15
        epsilon = optimal_rates(self.bits, len(stream), max(1e-3, costs.beta))[0]
        made = Device(
            matrix.tolist(),
            bits=self.bits,
            beta=q15(costs.beta, "beta"),
            eta=round(self.eta * 2**26),
            epsilon=q15(epsilon, "epsilon"),
            seed=seed,
            feedback=self.feedback,
            exploration=self.exploration,
            half_life=self.half_life,
        )
        a, b, bins = twin.pairs_of(stream.q14, matrix, self.bits)
        rates = np.array([[[row[a], row[b]] for row in made.loss] for a, b in made.pairs], np.int64)
        actions = np.zeros(len(stream), np.int64)
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        trees = b * (b - 1) // 2 + a
        twin.h2t2(trees, bins, stream.label, stream.beta_q15, rates, options(made), twin.seeded(seed), *late, actions)
        chosen = np.where(actions & 1, b, a)
        return np.where(actions >= twin.ASKED, -1 - chosen, chosen)

from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy


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

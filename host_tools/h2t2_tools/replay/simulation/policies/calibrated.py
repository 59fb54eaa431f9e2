from dataclasses import dataclass

import numpy as np

from ....common.calibrated import decide_binary, decide_multiclass
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Calibrated(Policy):
    """Applies Theorem 1 (Theorem 3 to class scores) to the scores. It is optimal if the local model is calibrated."""

    name = "calibrated rule"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        if stream.score.ndim == 1:
            return decide_binary(stream.q14[:, 1], stream.beta_q15, costs.q15[0, 1], costs.q15[1, 0])
        return decide_multiclass(stream.q14, stream.beta_q15, costs.q15)

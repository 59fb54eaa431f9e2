from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .no_offload import NoOffload


@dataclass(frozen=True)
class FullOffload(Policy):
    """Offloads every sample."""

    name = "full offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return -1 - NoOffload().act(stream, costs, seed)

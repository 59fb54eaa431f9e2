from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy
from .no_offload import NoOffload


@dataclass(frozen=True)
class FullOffload(Policy):
    """Every sample goes to the remote model."""

    name = "full offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return -1 - NoOffload().act(stream, costs, seed)

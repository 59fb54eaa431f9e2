"""What every policy of the simulator is: a name, and actions for a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream


@dataclass(frozen=True)
class Policy(ABC):
    """A policy is data: it can be sent to another process, and a run of it is a function of its arguments alone."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As in tables and legends."""

    @abstractmethod
    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        """(T,) the class acted on, or -1 - c for an offload with class c to fall back to, of every sample in turn.

        seed: of the policy's own draws.
        """

from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Named(Policy):
    """Another policy under a name of its own."""

    policy: Policy
    label: str

    @property
    def name(self) -> str:
        return self.label

    @property
    def bits(self) -> int:
        """Score bits of theta-star, which the policy is compared with."""
        return getattr(self.policy, "bits", 4)

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return self.policy.act(stream, costs, seed)

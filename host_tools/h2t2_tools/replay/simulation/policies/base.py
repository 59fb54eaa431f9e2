"""The interface of the simulator's policies."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..stream import Costs, Stream


@dataclass(frozen=True)
class Policy(ABC):
    """A policy is data that can be sent to another process. The result of act() depends on its arguments alone."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in tables and legends."""

    def numbers(self, costs: Costs, seed: int, **others: Any) -> dict[str, Any]:
        """Return its fields as options of the device's policy, with these costs. others: in place of fields, or beside them."""
        prices = {"beta": costs.beta, "delta_fp": costs.delta_fp, "delta_fn": costs.delta_fn}
        return {**vars(self), **prices, "seed": seed, **others}

    @abstractmethod
    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        """Play the policy on a stream.

        Args:
            stream: The samples.
            costs: Costs of offloads and errors.
            seed: Seed of the policy's own draws.

        Returns:
            (T,) the class acted on, or -1 - c for an offload with fallback class c.
        """


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

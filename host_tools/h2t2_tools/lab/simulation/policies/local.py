"""Policies that follow the local model, and never, always or at random ask."""

from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class NoOffload(Policy):
    """Always takes the local model's class."""

    name = "no offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return stream.q14.argmax(1) if stream.score.ndim == 2 else (stream.score >= 0.5).astype(np.int64)


@dataclass(frozen=True)
class FullOffload(Policy):
    """Offloads every sample."""

    name = "full offload"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return -1 - NoOffload().act(stream, costs, seed)


@dataclass(frozen=True)
class AtRandom(Policy):
    """Offloads a random share of the samples and follows the local model in the others."""

    share: float
    name = "at random"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        local = NoOffload().act(stream, costs, seed)
        offloaded = np.random.default_rng([seed, 5]).random(len(stream)) < self.share
        return np.where(offloaded, -1 - local, local)

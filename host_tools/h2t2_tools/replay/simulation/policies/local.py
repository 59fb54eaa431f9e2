"""The local model's class and confidence, and policies that follow it and ask never or always."""

from dataclasses import dataclass

import numpy as np

from ..stream import Costs, Stream
from .base import Policy


def local(stream: Stream, costs: Costs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return max f, argmax f and the cost of that class, (T,) each. In a binary tie the class is 1."""
    if stream.score.ndim == 1:
        guess = (stream.score >= 0.5).astype(np.int64)
        confidence = np.maximum(stream.score, 1 - stream.score)
    else:
        guess = stream.score.argmax(1)
        confidence = stream.score.max(1)
    return confidence, guess, np.array(costs.matrix)[stream.label, guess]


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

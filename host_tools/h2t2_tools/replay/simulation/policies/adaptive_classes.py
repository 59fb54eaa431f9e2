from dataclasses import dataclass

import numpy as np

from h2t2 import units
from h2t2.core.adaptive_classes import AdaptiveClasses as Device

from ..player import play
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class AdaptiveClasses(Policy):
    """The device's adaptive policy for many classes, compiled.

    Attributes:
        confusion: How often the remote model answers each class, a row per true class; (): it makes no errors.
    """

    bits: int = 4
    window: int = 8
    confusion: tuple[tuple[float, ...], ...] = ()
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        errors = units.label_costs(costs.matrix, self.confusion) if self.confusion else None
        beta = units.q15(costs.beta, "beta")
        device = Device(costs.q15.tolist(), self.bits, beta=beta, seed=seed, window=self.window, label_costs=errors)
        return play(device, stream.q14, stream)

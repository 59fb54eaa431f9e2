from dataclasses import dataclass

import numpy as np

from h2t2.core.adaptive_classes import AdaptiveClasses as Device
from h2t2.units import label_costs, q15

from .. import class_twin, twin
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class AdaptiveClasses(Policy):
    """The device's adaptive policy for many classes, compiled. confusion: what the remote model says, a row a class; (): it
    does not err."""

    bits: int = 4
    window: int = 8
    confusion: tuple[tuple[float, ...], ...] = ()
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        errors = label_costs(costs.matrix, self.confusion) if self.confusion else None
        made = Device(
            costs.q15.tolist(), self.bits, beta=q15(costs.beta, "beta"), seed=seed, window=self.window, label_costs=errors
        )
        actions = np.zeros(len(stream), np.int64)
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        matrix = np.array(made.costs, np.int64)
        numbers = (self.bits, made.rate, self.window, twin.seeded(seed))
        class_twin.play(stream.q14, stream.label, stream.beta_q15, matrix, *numbers, *late, actions)
        asked = class_twin.ASKED * class_twin.MOST
        return np.where(actions >= asked, asked - 1 - actions, actions)

from dataclasses import dataclass

import numpy as np

from h2t2.units import q15

from .. import twin
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Calibrating(Policy):
    """The device's calibrating policy, compiled."""

    bits: int = 4
    half_life: int = 0
    window: int = 8
    rdl_fp: float = 0.0
    rdl_fn: float = 0.0

    @property
    def name(self) -> str:
        return "calibrating" + (f" half-life {self.half_life}" if self.half_life else "")

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        actions = np.zeros(len(stream), np.int64)
        deltas = q15(costs.delta_fp, "delta-fp"), q15(costs.delta_fn, "delta-fn")
        rates = q15(self.rdl_fp, "rdl-fp"), q15(self.rdl_fn, "rdl-fn")
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        options = (self.bits, *deltas, self.half_life, self.window, *rates)
        bins = stream.bins(self.bits)
        twin.calibrate(bins, stream.label, stream.beta_q15, options, twin.seeded(seed), *late, actions)
        return twin.signed(actions)

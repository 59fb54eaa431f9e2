from dataclasses import dataclass

import numpy as np

from h2t2.core.adaptive import Adaptive as Device
from h2t2.units import q15

from ....common.budget import share_arguments
from .. import adaptive_twin, twin
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Adaptive(Policy):
    """The device's adaptive policy, compiled. miss_rate: the most events it may miss, as a share, 0: any. prior: P(event) of
    every bin, or (): the scores. budget: the share of samples that it may offload, 0: any; priced: as a node does it, else it
    asks as before until the bucket is empty."""

    bits: int = 4
    window: int = 8
    rdl_fp: float = 0.0
    rdl_fn: float = 0.0
    miss_rate: float = 0.0
    prior: tuple[float, ...] = ()
    budget: float = 0.0
    priced: bool = True
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        deltas = q15(costs.delta_fp, "delta-fp"), q15(costs.delta_fn, "delta-fn")
        rates = q15(self.rdl_fp, "rdl-fp"), q15(self.rdl_fn, "rdl-fn")
        prior = [q15(p, "prior") for p in self.prior] or None
        made = Device(
            self.bits, beta=0, delta_fp=deltas[0], delta_fn=deltas[1], seed=seed, window=self.window, rdl_fp=rates[0],
            rdl_fn=rates[1], prior=prior,
        )  # fmt: skip
        table = np.array(made.forecaster.prior, np.int64)
        actions = np.zeros(len(stream), np.int64)
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        options = (self.bits, made.rate, self.window, *rates, q15(self.miss_rate, "miss-rate"))
        learned = np.array(made.rates, np.int64)
        bins = stream.bins(self.bits)
        bucket = (0, 0, False)
        if self.budget:
            tokens = share_arguments(self.budget)
            bucket = (tokens["capacity"], tokens["per_sample"], self.priced)
        draws = twin.seeded(seed)
        adaptive_twin.play(bins, stream.label, stream.beta_q15, deltas, learned, options, table, bucket, draws, *late, actions)
        return twin.signed(actions)

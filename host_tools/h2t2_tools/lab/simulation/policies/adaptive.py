from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies
from h2t2.core.budget import Budget

from ....common.budget import share_arguments
from ..player import play
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Adaptive(Policy):
    """The device's adaptive policy, compiled.

    Attributes:
        miss_rate: Largest share of events that it may miss; 0: no limit.
        prior: P(event) of every bin; (): the scores themselves.
        budget: Share of samples that it may offload; 0: no budget.
        priced: A token has a price, as in a node; otherwise it offloads until the bucket is empty.
    """

    bits: int = 4
    _: KW_ONLY
    window: int = 8
    rdl_fp: float = 0.0
    rdl_fn: float = 0.0
    miss_rate: float = 0.0
    prior: tuple[float, ...] = ()
    budget: float = 0.0
    priced: bool = True
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        limit: dict[str, Any] = {"miss_rate": self.miss_rate} if self.miss_rate else {}
        numbers = units.policy(
            bits=self.bits,
            beta=costs.beta,
            delta_fp=costs.delta_fp,
            delta_fn=costs.delta_fn,
            seed=seed,
            window=self.window,
            rdl_fp=self.rdl_fp,
            rdl_fn=self.rdl_fn,
            prior=list(self.prior) or None,
            **limit,
        )
        budget = Budget(**share_arguments(self.budget)) if self.budget else None
        device = policies.make("adaptive", numbers)
        return play(device, stream.bins(self.bits), stream, budget, self.priced and budget is not None)

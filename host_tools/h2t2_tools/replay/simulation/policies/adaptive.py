from dataclasses import KW_ONLY, dataclass

import numpy as np

from h2t2.core.budget import Budget

from ....common import policies
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
        ordered: Samples come in the order of time, so the policy reads its past.
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
    ordered: bool = False
    budget: float = 0.0
    priced: bool = True
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        device = policies.make("adaptive", self.numbers(costs, seed, prior=list(self.prior) or None))
        budget = Budget(**share_arguments(self.budget)) if self.budget else None
        return play(device, stream.bins(8 if self.ordered else self.bits), stream, budget, self.priced and budget is not None)


@dataclass(frozen=True)
class WithPast(Adaptive):
    """The adaptive policy that reads its past."""

    ordered: bool = True
    name = "adaptive with its past"

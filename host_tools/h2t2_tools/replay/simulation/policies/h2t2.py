from dataclasses import KW_ONLY, dataclass

import numpy as np

from h2t2.core.h2t2 import H2T2 as Device

from ....common import policies
from ....common.corollary import optimal_rates
from ....common.policies import DEFAULTS
from ..player import play
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class H2T2(Policy):
    """The device's H2T2, compiled, with the device's options.

    Attributes:
        eta: Learning rate; 0: Corollary 1's.
        epsilon: Exploration rate; 0: Corollary 1's for the length of the stream and epsilon_beta, or beta if that is 0.
        label: Name in tables; "": derived from the options.
    """

    bits: int = 4
    _: KW_ONLY
    eta: float = DEFAULTS["eta"]
    epsilon: float = 0.0
    epsilon_beta: float = 0.0
    feedback: str = "explored"
    exploration: str = "epsilon"
    half_life: int = 0
    window: int = 8
    rdl_fp: float = 0.0
    rdl_fn: float = 0.0
    label: str = ""

    @property
    def name(self) -> str:
        options = ["all"] * (self.feedback == "all") + ["anytime"] * (self.exploration == "anytime")
        options += [f"half-life {self.half_life}"] * (self.half_life > 0)
        return self.label or " ".join(["H2T2", " + ".join(options)]).strip()

    def device(self, stream: Stream, costs: Costs, seed: int) -> Device:
        """Return the device's policy in its first state."""
        epsilon, eta = optimal_rates(self.bits, len(stream), self.epsilon_beta or max(1e-3, costs.beta))
        rates = {"eta": self.eta or eta, "epsilon": self.epsilon or epsilon}
        device: Device = policies.make("h2t2", self.numbers(costs, seed, **rates))
        return device

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return play(self.device(stream, costs, seed), stream.bins(self.bits), stream)

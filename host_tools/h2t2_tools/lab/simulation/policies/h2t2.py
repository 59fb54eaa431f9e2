from dataclasses import dataclass

import numpy as np

from h2t2 import units
from h2t2.core.h2t2 import H2T2 as Device

from ....common.corollary import optimal_rates
from .. import twin
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class H2T2(Policy):
    """The device's H2T2, compiled. epsilon 0: Corollary 1's for T and beta (epsilon_beta, where that is given); eta 0:
    Corollary 1's too. Options: as the device's."""

    bits: int = 4
    eta: float = 1.0
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
        """The device's own object, in its first state, for this run."""
        epsilon, eta = optimal_rates(self.bits, len(stream), self.epsilon_beta or max(1e-3, costs.beta))
        arguments = units.policy(
            bits=self.bits,
            beta=costs.beta,
            delta_fp=costs.delta_fp,
            delta_fn=costs.delta_fn,
            eta=self.eta or eta,
            epsilon=self.epsilon or epsilon,
            seed=seed,
            feedback=self.feedback,
            exploration=self.exploration,
            half_life=self.half_life,
            window=self.window,
            rdl_fp=self.rdl_fp,
            rdl_fn=self.rdl_fn,
        )
        return Device(**arguments)

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        made = self.device(stream, costs, seed)
        actions = np.zeros(len(stream), np.int64)
        trees = np.zeros(len(stream), np.int64)
        rates = np.array(made.rates, np.int64).reshape(1, 2, 2)
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        twin.h2t2(
            trees,
            stream.bins(self.bits),
            stream.label,
            stream.beta_q15,
            rates,
            options(made),
            twin.seeded(seed),
            *late,
            actions,
        )
        return twin.signed(actions)


def options(made: Device) -> tuple[int, ...]:
    """A device policy's options as the twin takes them."""
    return made.bits, made.rate, int(made.all), int(made.anytime), made.epsilon, made.half_life, made.tickets.window

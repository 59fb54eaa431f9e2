"""The learners of devices, compiled: the core's policies. They need numba."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from h2t2 import units
from h2t2.core import policies as core
from h2t2.core.budget import Budget
from h2t2.core.h2t2 import H2T2 as H2T2Device

from ....common import policies
from ....common.budget_text import share_arguments
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

    def device(self, stream: Stream, costs: Costs, seed: int) -> H2T2Device:
        """Return the device's policy in its first state."""
        epsilon, eta = optimal_rates(self.bits, len(stream), self.epsilon_beta or max(1e-3, costs.beta))
        rates = {"eta": self.eta or eta, "epsilon": self.epsilon or epsilon}
        device: H2T2Device = policies.make("h2t2", self.numbers(costs, seed, **rates))
        return device

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        return play(self.device(stream, costs, seed), stream.bins(self.bits), stream)


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


@dataclass(frozen=True)
class AdaptiveClasses(Policy):
    """The device's adaptive policy for many classes, compiled.

    Attributes:
        confusion: How often the remote model answers each class, a row per true class; (): it makes no errors.
        miss_rate: As of Adaptive. An event is every class but costs.normal.
    """

    bits: int = 4
    window: int = 8
    confusion: tuple[tuple[float, ...], ...] = ()
    miss_rate: float = 0.0
    name = "adaptive"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        rates = units.confusion(self.confusion) if self.confusion else None
        beta = units.q15(costs.beta, "beta")
        limit = {"miss_rate": units.q15(self.miss_rate, "miss_rate"), "normal": costs.normal} if self.miss_rate else {}
        given = {"costs": costs.q15.tolist(), "bits": self.bits, "beta": beta, "seed": seed, "window": self.window, **limit}
        return play(core.make("adaptive", {**given, "confusion": rates}), stream.q14, stream)

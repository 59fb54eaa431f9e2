from dataclasses import dataclass

import numpy as np

from h2t2.core import defaults
from h2t2.core.adaptive_classes import checked_costs
from h2t2.core.h2t2 import log2e
from h2t2.core.numbers import times
from h2t2.units import q15

from ....common.corollary import optimal_rates
from .. import twin
from ..stream import Costs, Stream
from .base import Policy


@dataclass(frozen=True)
class Pairwise(Policy):
    """H2T2 for many classes: a binary learner for each of the K (K - 1) / 2 pairs of classes.

    The two classes of lowest expected cost, a < b, choose the learner; its score is e_a / (e_a + e_b). A label y charges it
    with costs[y][a] for a ("0") and costs[y][b] for b ("1"). For K = 2 this is H2T2 on that score.
    """

    bits: int = 4
    eta: float = 1.0
    feedback: str = "all"
    exploration: str = "anytime"
    half_life: int = 0
    name = "pairwise H2T2"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        matrix = checked_costs(costs.q15.tolist())
        rate = log2e(round(self.eta * 2**26))
        epsilon = q15(optimal_rates(self.bits, len(stream), max(1e-3, costs.beta))[0], "epsilon")
        options = (
            self.bits, rate, int(self.feedback == "all"), int(self.exploration == "anytime"), epsilon, self.half_life,
            defaults.WINDOW,
        )  # fmt: skip
        a, b, bins = twin.pairs_of(stream.q14, costs.q15, self.bits)
        pairs = [(a, b) for b in range(len(matrix)) for a in range(b)]  # pair (a, b) is number b (b - 1) / 2 + a
        rates = np.array([[[times(rate, row[a]), times(rate, row[b])] for row in matrix] for a, b in pairs], np.int64)
        actions = np.zeros(len(stream), np.int64)
        late = twin.AT_ONCE if stream.delay is None else twin.arrivals(stream.delay)
        trees = b * (b - 1) // 2 + a
        twin.h2t2(trees, bins, stream.label, stream.beta_q15, rates, options, twin.seeded(seed), *late, actions)
        chosen = np.where(actions & 1, b, a)
        return np.where(actions >= twin.ASKED, -1 - chosen, chosen)

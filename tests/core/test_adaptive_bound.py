"""The guarantee that docs/algorithm.md derives for the weights of the adaptive policy, on streams that deceive it."""

import numpy as np
import pytest

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD

ETA, GAMMA, FLOOR, HALVING = 0.05, 0.02, 0.005, 1000
BETA, FP, FN, BITS = 0.2, 0.7, 1.0, 4
N = 1 << BITS
PAIRS = [(i, j) for i in range(N) for j in range(i, N)]
LOWER, UPPER = np.array(PAIRS).T


def pair_losses(k, label):
    wrong = np.where(k < LOWER, FN * label, FP * (1 - label))
    return np.where((k >= LOWER) & (k < UPPER), BETA, wrong)


@pytest.mark.parametrize("flips", [0, 700])
def test_recent_cost_stays_below_that_of_every_pair_plus_the_constant(flips):
    rng = np.random.default_rng(flips)
    policy = Adaptive(**units.policy(bits=BITS, beta=BETA, delta_fp=FP, delta_fn=FN, seed=3))
    own, pairs = 0.0, np.zeros(len(PAIRS))
    closest = np.inf
    for t in range(1, 3001):
        if t % HALVING == 0:
            own, pairs = own / 2, pairs / 2
        k = int(rng.integers(N))
        upside_down = flips and t // flips % 2
        label = int(rng.random() < ((N - k if upside_down else k) + 0.5) / (N + 1))
        action = policy.decide(k)
        if action == OFFLOAD:
            policy.learn(policy.ticket, label)
        q = policy.chance / ONE
        answers = policy.positive + policy.negative
        mistake = (policy.negative * FN if label else policy.positive * FP) / answers * (1 - q) if answers else 0.0
        largest = ETA * max(BETA, max(FP, FN) / (q + GAMMA))
        kappa = (1 - np.exp(-largest)) / largest
        own += kappa * (BETA * (q - FLOOR) + q / (q + GAMMA) * mistake)
        pairs += pair_losses(k, label)
        closest = min(closest, (pairs.min() + np.log(100 * len(PAIRS)) / ETA) - own)
    assert closest > 0
    assert own < 1.05 * pairs.min() + 20  # far below what the guarantee allows

"""Heads that devices have taught, and their snapshots."""

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.node.keeper import Keeper
from h2t2.node.store import file_store
from h2t2_tools.cli.main import main

BETA = 6554  # .2


def live(policy, samples, labels):
    """(T,) cost of every round, at BETA; of two classes a miss costs 1, every other mistake .7."""
    paid = np.zeros(len(labels))
    for n, (sample, label) in enumerate(zip(samples, labels)):
        action = policy.decide(sample)
        if action == OFFLOAD:
            paid[n] = BETA / ONE
            policy.learn(policy.ticket, label)
        elif action != label:
            paid[n] = 1.0 if policy.classes == 2 and label else 0.7
    return paid


def sample(policy, rng):
    """Return a sample whose score tells nothing."""
    scores = [9000, 12000, *[11000] * (policy.classes - 2)] if policy.classes > 2 else [120]
    return [*scores, *rng.integers(-60, 61, policy.features).tolist()]


def taught(policy, path, seed, model, rounds=300):
    """Teach a policy that the first feature tells the class, and save it as a node does."""
    rng = np.random.default_rng(seed)
    policy.adopt(model)
    for _ in range(rounds):
        read = sample(policy, rng)
        if policy.decide(read) < 0:
            policy.learn(policy.ticket, int(read[-policy.features] > 0))
    Keeper(policy, file_store(str(path))).save()
    return policy


def averaged(folder, make, model, seeds=(1, 2, 3)):
    """Return taught policies, and the file of their mean in a folder."""
    policies = [taught(make(seed=seed), folder / f"s{seed}", seed, model) for seed in seeds]
    assert main(["head", *(str(folder / f"s{seed}") for seed in seeds), "--out", str(folder / "head.h2h")]) == 0
    return policies, folder / "head.h2h"


def learners(policy):
    """Return the Heads of each class; of two classes one."""
    heads = policy.forecaster.heads
    return heads.of_class if policy.classes > 2 else [heads]


def numbers(policy):
    """Return all weights and roots in the order of the file."""
    return [n for heads in learners(policy) for values in (heads.weights, heads.roots) for n in values]

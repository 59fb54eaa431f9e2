"""`reacting`: what the pairs of thresholds are worth beside the forecaster, in worlds that react to what the policy does."""

from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2.core.adaptive import FAR
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2_tools.common import plots, policies
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair
from h2t2_tools.replay.simulation.stream import Costs, Stream, charged

from .setting import Setting

BETAS = (0.1, 0.3)
BINS = 16
SCORES = {"one score": (3,), "six scores": (1, 2, 3, 4, 5, 6)}
SELDOM = 0.1  # a liar contradicts where the forecaster wants to ask less often
WITHOUT = ", no pairs"


World = Callable[[Any, int, int], int]  # (policy, score as it takes it, rounds since it asked) -> the label of the next sample


def liar(policy: Any, k: int, quiet: int) -> int:
    """Contradict the forecaster where it is certain, and agree with it where it asks."""
    policy.likely(k)
    return int(policy.guess) ^ int(policy.wish < SELDOM * ONE)


def thief(patience: int) -> World:
    """Return a world whose events occur where nobody has asked for so many rounds."""
    return lambda policy, k, quiet: int(quiet >= patience)


WORLDS: dict[str, World] = {"a liar": liar, **{f"a thief, {n} rounds": thief(n) for n in (5, 20, 100)}}
POLICIES: dict[str, dict[str, Any]] = {"without its past": {}, "with its past": {"ordered": True}}


def perform(setting: Setting) -> None:
    samples, runs = (500, 1) if setting.quick else (5000, 3)
    rows: list[dict[str, Any]] = []
    for title, world in WORLDS.items():
        for scores, bins in SCORES.items():
            row: dict[str, Any] = {"stream": f"{title}, {scores}"}
            for name, options in POLICIES.items():
                for pairs in (True, False):
                    excess = [
                        np.mean([_excess(options, world, bins, beta, samples, seed, pairs) for beta in BETAS])
                        for seed in range(1, runs + 1)
                    ]
                    column = name if pairs else name + WITHOUT
                    row |= {column: round(float(np.mean(excess)), 4), f"{column}_sd": round(float(np.std(excess)), 4)}
            rows.append(row)
    names = [name + end for name in POLICIES for end in ("", WITHOUT)]
    setting.csv("reacting", rows, shown=True)
    worth = {name: max(row[name + WITHOUT] - row[name] for row in rows) for name in POLICIES}
    plots.row_marks(
        setting.png("reacting"),
        rows,
        "stream",
        names,
        "excess cost a sample over the best fixed pair",
        "Where the world reacts to what is asked, the pairs save up to "
        + " and ".join(f"{x:.2f} ({n})" for n, x in worth.items()),
        f"mean of β = {', '.join(map(str, BETAS))}, {samples:,} rounds, {runs} runs; bars: standard deviation over the runs",
    )


def _excess(
    options: dict[str, Any], world: World, bins: tuple[int, ...], beta: float, samples: int, seed: int, pairs: bool
) -> float:
    """What a policy pays a sample above the best fixed pair for the same labels. pairs: whether they have their weight."""
    costs = Costs.binary(beta, 1.0, 1.0)
    policy: Any = policies.make("adaptive", {"beta": beta, "delta_fp": 1.0, "delta_fn": 1.0, "seed": seed, **options})
    scores = (np.random.default_rng(seed).choice(bins, samples) + 0.5) / BINS
    labels, actions = np.zeros((2, samples), np.int64)
    quiet = 0
    for n, k in enumerate((scores * policy.steps()).astype(int).tolist()):
        if not pairs:
            policy.lead = FAR
        labels[n] = label = world(policy, k, quiet)
        action = policy.decide(k)
        quiet += 1
        if action == OFFLOAD:
            policy.learn(policy.ticket, label)
            quiet = 0
        actions[n] = -1 if action == OFFLOAD else action
    stream = Stream(scores, labels, np.full(samples, beta))
    own, best = (charged(each, stream, costs)[0].mean() for each in (actions, OfflinePair().act(stream, costs, 0)))
    return float(own - best)

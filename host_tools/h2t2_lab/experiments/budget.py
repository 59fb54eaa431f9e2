"""`budget`: how much more a device pays with a budget than without one.

It compares three ways to keep the budget: the price of a token rises as the bucket empties, the policy stops offloading when
the bucket is empty, and random samples are offloaded.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.baselines import NoOffload
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import Costs, Stream
from h2t2_tools.replay.simulation.sweep import Result, sweep

from ..lab_plots import compared
from .setting import Setting

BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the offloads that the policy makes without a budget
WAYS = ("a price", "cut off when empty", "at random")


def perform(setting: Setting) -> None:
    traces = setting.traces()
    betas, shares = (BETAS[::3], SHARES[1::3]) if setting.quick else (BETAS, SHARES)
    cells = [(name, beta) for name in traces for beta in betas]
    free = {result.job.key: result for result in sweep([setting.job(Adaptive(), traces, cell) for cell in cells])}
    rows: list[dict[str, Any]] = []
    for share in shares:
        row: dict[str, Any] = {"share": share}
        for way in WAYS:
            jobs = [setting.job(_policy(way, share * free[cell].mean("offload")), traces, cell) for cell in cells]
            runs = np.mean([_above(result, free[result.job.key]) for result in sweep(jobs)], 0)
            row[way], row[f"{way}_sd"] = float(runs.mean()), float(runs.std(ddof=1))
        rows.append({**row, "price / cut off": row[WAYS[0]] / row[WAYS[1]]})
    setting.csv("budget", rows)
    price, cut_off = (float(np.mean([row[way] for row in rows if row["share"] < 1])) for way in WAYS[:2])
    plots.curves(
        setting.png("budget"),
        {way: [{"share": row["share"], "cost": row[way], "cost_sd": row[f"{way}_sd"]} for row in rows] for way in WAYS},
        ("share", "cost"),
        ("budget, as a share of what is offloaded without one", "cost a sample above no budget"),
        f"With a price for each question a budget costs {compared(price, cut_off)} than one that only cuts off",
        f"mean of {len(traces)} traces and {len(betas)} β, {setting.samples:,} samples, {setting.runs} runs; "
        "band: standard deviation over the runs",
    )


def _above(result: Result, free: Result) -> list[float]:
    """Return the cost of each run above that of the same run without a budget."""
    return [with_budget.cost - without.cost for with_budget, without in zip(result.outcomes, free.outcomes)]


def _policy(way: str, share: float) -> Policy:
    if way == WAYS[2]:
        return AtRandom(share)
    return Adaptive(budget=share, priced=way == WAYS[0])


@dataclass(frozen=True)
class AtRandom(Policy):
    """Offloads a random share of the samples and follows the local model in the others."""

    share: float
    name = "at random"

    def act(self, stream: Stream, costs: Costs, seed: int) -> np.ndarray:
        local = NoOffload().act(stream, costs, seed)
        offloaded = np.random.default_rng([seed, 5]).random(len(stream)) < self.share
        return np.where(offloaded, -1 - local, local)

"""`past`: what a policy saves that reads its past (`ordered = true`), and what it pays where the past misleads.

The constants of the past were chosen on other chains than these.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2_tools.replay import trace_names
from h2t2_tools.replay.simulation.policies.base import Named
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import Stream, ordered
from h2t2_tools.replay.simulation.sweep import grid, sweep

from . import hostile
from .chains import FOOLING, chain, fooling, shuffled
from .in_order import STREAMS
from .setting import MATRIX, Setting

BETAS = (0.1, 0.2, 0.3, 0.45)
FIRST_CHAIN, CHAINS = 80, 24  # the chains before the first one chose the constants
WINDOW = 1024  # labels that a policy can await; a late stream keeps 500 offloads in flight
FIELDS = ("streams", "stream", "adaptive", "ordered", "ratio", "shuffled ratio", "excess of adaptive", "excess of ordered")


def perform(setting: Setting) -> None:
    runs, betas = (1, BETAS[1:2]) if setting.quick else (3, BETAS)
    chosen = range(FIRST_CHAIN, FIRST_CHAIN + (3 if setting.quick else CHAINS))
    rows = [_row(("chains", f"chain {n}"), n, chain, 0, runs, betas) for n in chosen]
    for name in STREAMS[-1:] if setting.quick else STREAMS:
        trace = trace_names.find(name, setting.data)
        rows.append(_row(("recorded", name), trace, ordered, len(trace.label), runs, betas))
    samples = 2000 if setting.quick else 10000
    for kind, names, make in (("against a memory", FOOLING, fooling), ("hostile", hostile.STREAMS, hostile.make)):
        rows += [_row((kind, name), name, make, samples, runs, betas) for name in list(names)[: 1 if setting.quick else None]]
    for kind in dict.fromkeys(row["streams"] for row in rows):
        mine = [row for row in rows if row["streams"] == kind]
        mean = {name: float(np.mean([row[name] for row in mine])) for name in ("adaptive", "ordered", "shuffled ratio")}
        worst = {name: max(row[name] for row in mine) for name in FIELDS[-2:]}
        summary = {"stream": "mean (worst excess)", "ratio": mean["ordered"] / mean["adaptive"]}
        rows.append({"streams": kind, **summary, **mean, **worst})
    setting.csv("past", [{k: _cut(v) for k, v in row.items()} for row in rows], FIELDS, shown=True)


def _cut(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float) else value


def _row(
    where: tuple[str, str], source: Any, make: Callable[..., Stream], samples: int, runs: int, betas: tuple[float, ...]
) -> dict[str, Any]:
    """Return the costs of both policies on a stream in its order, and the ratio of costs in random order."""
    policies = (Named(Adaptive(window=WINDOW), "adaptive"), Named(Adaptive(window=WINDOW, ordered=True), "ordered"))
    cost: dict[tuple[str, str], float] = {}
    excess: dict[str, float] = {}
    for way, maker in (("in order", make), ("shuffled", shuffled(make))):
        results = sweep(grid(source, policies, betas, MATRIX, samples=samples, runs=runs, make=maker))
        for name in ("adaptive", "ordered"):
            mine = [result for result in results if result.job.policy.name == name]
            cost[way, name] = float(np.mean([result.mean("cost") for result in mine]))
            if way == "in order":
                excess[name] = float(np.mean([result.regret for result in mine]))
    return {
        "streams": where[0],
        "stream": where[1],
        "adaptive": cost["in order", "adaptive"],
        "ordered": cost["in order", "ordered"],
        "ratio": cost["in order", "ordered"] / cost["in order", "adaptive"],
        "shuffled ratio": cost["shuffled", "ordered"] / cost["shuffled", "adaptive"],
        "excess of adaptive": excess["adaptive"],
        "excess of ordered": excess["ordered"],
    }

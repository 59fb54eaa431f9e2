"""`in-order`: excess cost over the best fixed pair in hindsight on recorded streams, in their order and shuffled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots
from .. import catalogue
from ..replay import over_time, write_csv
from ..simulation.policies.adaptive import Adaptive
from ..simulation.policies.base import Policy
from ..simulation.policies.full_offload import FullOffload
from ..simulation.policies.no_offload import NoOffload
from ..simulation.stream import Costs, draw, ordered
from ..simulation.sweep import Job, sweep
from .setting import BASELINES, DELTA_FN, DELTA_FP, MODES, PAPER, PAPER_1, Setting

STREAMS = ("weather", "occupancy")
PIECES = 50  # points of a line in the picture
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
POLICIES: tuple[Policy, ...] = (Adaptive(), MODES, PAPER, PAPER_1, *BASELINES, FullOffload(), NoOffload())
WAYS = {"in order": ordered, "shuffled": draw}


def perform(setting: Setting) -> list[Path]:
    rows: list[dict[str, Any]] = []
    for name in STREAMS:
        trace = catalogue.find(name, setting.data)
        samples = min(2000, len(trace.label)) if setting.quick else len(trace.label)
        for way, make in WAYS.items():
            jobs = [
                Job(
                    policy,
                    trace,
                    Costs.binary(beta, DELTA_FP, DELTA_FN),
                    samples,
                    0,
                    setting.runs,
                    key=(policy.name,),
                    make=make,
                )
                for policy in POLICIES
                for beta in (BETAS[3:4] if setting.quick else BETAS)
            ]
            excess: dict[str, list[float]] = {}
            for result in sweep(jobs):
                excess.setdefault(result.job.key[0], []).append(result.regret)
            rows += [
                {
                    "stream": name,
                    "way": way,
                    "samples": samples,
                    "policy": policy.name,
                    "excess": float(np.mean(excess[policy.name])),
                    "worst": max(excess[policy.name]),
                }
                for policy in POLICIES
            ]
    write_csv(setting.out / "in_order.csv", tuple(rows[0]), rows)
    return [_draw(setting), setting.out / "in_order.csv"]


def _draw(setting: Setting) -> Path:
    """Draw the cost a sample over time for the longer stream."""
    trace = catalogue.find(STREAMS[0], setting.data)
    costs = Costs.binary(0.3, DELTA_FP, DELTA_FN)
    stream = ordered(trace, 2000 if setting.quick else len(trace.label), 0, costs.beta)
    policies = (Adaptive(), MODES, PAPER, BASELINES[-1], FullOffload())
    lines = {policy.name: over_time(policy, stream, costs, range(setting.runs), PIECES) for policy in policies}
    figure = setting.out / "in_order.png"
    axes = ("days since the start", "cost a sample")
    plots.curves(
        figure, lines, ("n", "cost"), axes, f"{trace.name} in its order, β = {costs.beta}, mean of {setting.runs} runs"
    )
    return figure

"""`adversary`: how much each policy pays above the best fixed pair on streams that are built to fool it."""

from dataclasses import replace
from typing import Any

from h2t2_tools.common import plots
from h2t2_tools.replay.simulation.policies.base import Policy
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.sweep import grid, sweep

from .hostile import STREAMS, make
from .setting import BASELINES, DRAWN, MATRIX, MODES, PAPER, PAPER_1, Setting, excess

BETAS = (0.1, 0.3, 0.5)
WINDOW = 1024  # labels that a policy can await; a late stream keeps 500 offloads in flight
LEARNERS = tuple(replace(learner, window=WINDOW) for learner in (PAPER, PAPER_1, MODES, replace(MODES, half_life=500)))
POLICIES: tuple[Policy, ...] = (*LEARNERS, Adaptive(window=WINDOW), *BASELINES)


def perform(setting: Setting) -> None:
    samples = 3000 if setting.quick else 20000
    runs = 1 if setting.quick else 5
    rows: list[dict[str, Any]] = []
    for name in STREAMS:
        results = sweep(grid(name, POLICIES, BETAS, MATRIX, samples=samples, runs=runs, make=make))
        row: dict[str, Any] = {"stream": name}
        for policy in POLICIES:
            row[policy.name], row[f"{policy.name}_sd"] = excess([r for r in results if r.job.policy.name == policy.name])
        rows.append(row)
    names = [policy.name for policy in POLICIES]
    worst = {name: max(row[name] for row in rows) for name in names}
    rows.append({"stream": "worst", **worst, **{f"{name}_sd": 0.0 for name in names}})
    setting.csv("adversary", rows, ("stream", *names, *(f"{name}_sd" for name in names)))
    baselines = [worst[name] for name in DRAWN if name not in (Adaptive.name, MODES.name, PAPER.name)]
    plots.row_marks(
        setting.png("adversary"),
        rows,
        "stream",
        DRAWN,
        "excess cost a sample over the best fixed pair",
        f"At worst the adaptive policy pays {worst[Adaptive.name]:.3f} above the best fixed pair, "
        f"the paper's {worst[PAPER.name]:.3f}, other baselines {min(baselines):.2f} to {max(baselines):.2f}",
        f"mean of β = {', '.join(map(str, BETAS))}, {samples:,} rounds, {runs} runs; bars: standard deviation over the runs",
    )

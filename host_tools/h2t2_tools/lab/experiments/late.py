"""`late`: average cost if labels arrive some rounds late, and if a share of them never arrives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...common import plots
from .. import catalogue
from ..replay import row, write_csv
from ..simulation.policies.adaptive import Adaptive
from ..simulation.stream import WIDEST, Costs, Making
from ..simulation.sweep import Job, sweep
from .setting import MATRIX, MODES, PAPER, Setting

BETA = 0.2
TRACES = ("phishing_weak", "chest_xray", "resnet_dogs")


def perform(setting: Setting) -> list[Path]:
    delays = [0, 10, 1000] if setting.quick else [0, 1, 3, 10, 30, 100, 300, 1000]
    losses = [0.0, 0.5] if setting.quick else [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    policies = (replace(PAPER, window=WIDEST), replace(MODES, window=WIDEST), Adaptive(window=WIDEST))
    rows: list[dict[str, Any]] = []
    for kind, values in (("delay", delays), ("lost", losses)):
        for value in values:
            for policy in policies:
                jobs = []
                for name in TRACES:
                    longest, lost = (int(value), 0.0) if kind == "delay" else (0, value)
                    trace, making = catalogue.find(name, setting.data), Making(False, longest, lost)
                    key = (policy.name, BETA)
                    jobs.append(Job(policy, trace, Costs(BETA, MATRIX), setting.samples, 0, setting.runs, key=key, make=making))
                each = [row(result) for result in sweep(jobs)]
                mean = {key: float(np.mean([r[key] for r in each])) for key in ("cost", "cost_sd", "regret")}
                rows.append({"kind": kind, "value": value, "policy": policy.name, **mean})
    write_csv(setting.out / "late.csv", tuple(rows[0]), rows)
    figure = setting.out / "late.png"
    plots.panels(
        figure,
        {
            title: {
                policy.name: [
                    {"x": r["value"] + (kind == "delay"), "cost": r["cost"], "cost_sd": r["cost_sd"]}
                    for r in rows
                    if (r["kind"], r["policy"]) == (kind, policy.name)
                ]
                for policy in policies
            }
            for kind, title in (("delay", "labels 0 to x - 1 rounds late"), ("lost", "a share x of the labels lost"))
        },
        ("x", "cost"),
        ("x", "average cost a sample"),
        f"Late and lost labels: mean of {len(TRACES)} traces, β = {BETA}, {setting.samples:,} samples, {setting.runs} runs",
    )
    return [figure, setting.out / "late.csv"]

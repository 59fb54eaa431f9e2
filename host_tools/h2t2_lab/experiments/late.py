"""`late`: average cost if labels arrive some rounds late, and if a share of them never arrives."""

from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.common import plots
from h2t2_tools.replay import trace_names
from h2t2_tools.replay.replay import row
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import WIDEST, Making
from h2t2_tools.replay.simulation.sweep import Job, sweep

from ..lab_plots import compared
from .setting import MODES, PAPER, Setting, paper_costs

BETA = 0.2
TRACES = ("phishing_weak", "chest_xray", "resnet_dogs")


def perform(setting: Setting) -> None:
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
                    trace, making = trace_names.find(name, setting.data), Making(False, longest, lost)
                    key = (policy.name, BETA)
                    jobs.append(Job(policy, trace, paper_costs(BETA), setting.samples, 0, setting.runs, key=key, make=making))
                each = [row(result) for result in sweep(jobs)]
                mean = {key: float(np.mean([r[key] for r in each])) for key in ("cost", "cost_sd", "regret")}
                rows.append({"kind": kind, "value": value, "policy": policy.name, **mean})
    setting.csv("late", rows)
    note = f"mean of {len(TRACES)} traces, β = {BETA}, {setting.samples:,} samples, {setting.runs} runs"
    draw_figures(setting, rows, note)


def draw_figures(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the cost with late labels and the cost with lost labels."""
    for kind, name, label in (
        ("delay", "late", "longest delay of a label in rounds, plus 1"),
        ("lost", "lost", "share of labels lost"),
    ):
        mine = [row for row in rows if row["kind"] == kind]
        lines = {
            policy: [{"x": float(r["value"]) + (kind == "delay"), **r} for r in mine if r["policy"] == policy]
            for policy in dict.fromkeys(row["policy"] for row in mine)
        }
        ours = [float(row["cost"]) for row in lines[Adaptive.name]]
        others = {policy: float(points[-1]["cost"]) for policy, points in lines.items() if policy != Adaptive.name}
        rival = min(others, key=others.__getitem__)
        trouble = "labels up to 1,000 rounds late" if kind == "delay" else "half of the labels lost"
        plots.curves(
            setting.png(name),
            lines,
            ("x", "cost"),
            (label, "average cost a sample"),
            f"With {trouble} the adaptive policy costs {compared(ours[-1], ours[0])}, "
            f"and {compared(ours[-1], others[rival])} than {rival}",
            f"{note}; band: standard deviation over the runs",
            log="x" if kind == "delay" else "",
        )

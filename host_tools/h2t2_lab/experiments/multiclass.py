"""`multiclass`: the policies for many classes on digits of 3, 4 and 10 classes.

It compares the adaptive policy and pairwise H2T2 with the single threshold and the calibrated rule: for each cost of an
offload, after 1,000 and 10,000 samples, and with labels that change midway.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.replay import trace_names
from h2t2_tools.replay.replay import FIELDS, costs, row
from h2t2_tools.replay.simulation.policies.baselines import Calibrated, FullOffload, NoOffload, OfflineSingle
from h2t2_tools.replay.simulation.policies.learners import AdaptiveClasses
from h2t2_tools.replay.simulation.stream import Stream, draw
from h2t2_tools.replay.simulation.sweep import grid, sweep
from h2t2_tools.replay.traces import Trace

from .. import lab_plots
from ..lab_plots import compared
from ..rivals.policies import Pairwise, SingleThreshold
from .setting import DELTA_FN, DELTA_FP, Setting, by_trace

POLICIES = (NoOffload(), FullOffload(), SingleThreshold(), OfflineSingle(), Calibrated(), Pairwise(), AdaptiveClasses())
ONLINE = (OfflineSingle(), SingleThreshold(), Pairwise(), AdaptiveClasses())
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
CLASSES = (3, 4, 10)


def perform(setting: Setting) -> None:
    rows = []
    for classes in CLASSES:
        trace = trace_names.find(f"digits_{classes}", setting.data)
        matrix = costs(classes, DELTA_FP, DELTA_FN)
        for result in sweep(grid(trace, POLICIES, setting.betas, matrix, samples=setting.samples, runs=setting.runs)):
            rows.append({"trace": f"{classes} classes", **row(result)})
    setting.csv("multiclass", rows, ("trace", *FIELDS))
    setting.csv("classes", _in_time(setting), ("stream", "policy", *map(str, CLASSES)))
    note = (
        f"digits, {setting.samples:,} samples, {setting.runs} runs; errors cost {DELTA_FP}, missing the last class {DELTA_FN:g}"
    )
    draw_figure(setting, rows, note)


def draw_figure(setting: Setting, rows: list[dict[str, Any]], note: str) -> None:
    """Draw the cost of each policy for each number of classes."""
    mean = {p.name: float(np.mean([float(r["cost"]) for r in rows if r["policy"] == p.name])) for p in POLICIES}
    ours, single, pairwise = (mean[policy.name] for policy in (AdaptiveClasses(), OfflineSingle(), Pairwise()))
    lab_plots.grid(
        setting.png("multiclass"),
        by_trace(rows, [policy.name for policy in POLICIES]),
        ("beta", "cost"),
        ("cost of an offload, β", "average cost a sample"),
        f"With many classes the adaptive policy costs {compared(ours, pairwise)} than pairwise H2T2, "
        f"{compared(ours, single)} than the best threshold in hindsight",
        f"{note}; band: standard deviation over the runs",
    )


def _in_time(setting: Setting) -> list[dict[str, Any]]:
    """Return the mean cost over BETAS for each stream and policy, with a column for each number of classes."""
    rows: list[dict[str, Any]] = []
    for title, samples, make in (
        ("1,000 samples", 1000, draw),
        ("10,000 samples", 10000, draw),
        ("10,000, every label the next class from the middle on", 10000, shifted),
    ):
        rows_of: dict[str, dict[str, Any]] = {policy.name: {"stream": title, "policy": policy.name} for policy in ONLINE}
        for classes in CLASSES:
            trace = trace_names.find(f"digits_{classes}", setting.data)
            results = sweep(
                grid(trace, ONLINE, BETAS, costs(classes, DELTA_FP, DELTA_FN), samples=samples, runs=setting.runs, make=make)
            )
            for name, line in rows_of.items():
                line[str(classes)] = float(np.mean([r.mean("cost") for r in results if r.job.policy.name == name]))
        rows += rows_of.values()
    return rows


def shifted(source: Trace, samples: int, seed: int, beta: float) -> Stream:
    """Draw samples from a trace. From the middle on, each label is the next class."""
    stream = draw(source, samples, seed, beta)
    label = stream.label.copy()
    label[samples // 2 :] = (label[samples // 2 :] + 1) % source.classes
    return replace(stream, label=label)

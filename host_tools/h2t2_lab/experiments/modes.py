"""`modes`: excess cost over the best pair in hindsight for the paper's setting, `all`, `anytime` and the adaptive policy."""

import numpy as np

from h2t2_tools.replay.replay import FIELDS
from h2t2_tools.replay.simulation.policies.learners import H2T2, Adaptive

from .. import lab_plots
from .setting import MODES, PAPER, Setting, by_trace

POLICIES = (PAPER, H2T2(feedback="all"), H2T2(exploration="anytime"), MODES, Adaptive())


def perform(setting: Setting) -> None:
    traces = setting.traces()
    rows = setting.table(traces, POLICIES, setting.betas)
    setting.csv("modes", rows, ("trace", *FIELDS))
    names = [policy.name for policy in POLICIES]
    means = []
    for title in [*traces, "mean"]:
        excess = {
            name: float(np.mean([r["regret"] for r in rows if r["policy"] == name and title in (r["trace"], "mean")]))
            for name in names
        }
        means.append({"trace": title, **excess, **{f"{name} / paper": excess[name] / excess[PAPER.name] for name in names[1:]}})
    setting.csv("modes_mean", means)
    lab_plots.grid(
        setting.png("modes"),
        by_trace(rows, names),
        ("beta", "regret"),
        ("cost of an offload, β", "excess cost a sample over θ*"),
        f"The adaptive policy's excess over the best fixed pair is {means[-1][f'{Adaptive.name} / paper']:.0%} of the paper's",
        f"{setting.samples:,} samples, {setting.runs} runs; band: standard deviation over the runs",
    )

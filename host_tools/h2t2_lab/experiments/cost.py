"""`cost`: average cost for each cost of an offload on every data set (the paper's main figure), and a table of the models."""

import numpy as np

from h2t2_tools.replay import synthetic
from h2t2_tools.replay.replay import FIELDS
from h2t2_tools.replay.scoring import summary
from h2t2_tools.replay.simulation.policies.baselines import FullOffload, NoOffload, OfflinePair, OfflineSingle

from .. import lab_plots
from ..lab_plots import compared
from ..rivals.policies import PaperPair, SingleThreshold
from .setting import PAPER, Setting, by_trace

POLICIES = (NoOffload(), FullOffload(), SingleThreshold(), OfflineSingle(), OfflinePair(), PaperPair(), PAPER)


def perform(setting: Setting) -> None:
    traces = setting.traces()
    rows = setting.table(traces, POLICIES, setting.betas)
    setting.csv("cost", rows, ("trace", *FIELDS))
    models = []
    for title, trace in traces.items():
        paper = next(at for at in synthetic.ROWS if title.split(",")[0].split(" (")[0] == at.title)
        printed = {f"paper_{key}": getattr(paper, key) for key in ("samples", "accuracy", "fp", "fn")}
        models.append({"trace": title, **summary(trace), **printed})
    setting.csv("models", models)
    names = [policy.name for policy in POLICIES]
    mean = {name: float(np.mean([r["cost"] for r in rows if r["policy"] == name])) for name in names}
    ours, full, single = (mean[name] for name in (PAPER.name, FullOffload.name, SingleThreshold.name))
    lab_plots.grid(
        setting.png("cost"),
        by_trace(rows, names),
        ("beta", "cost"),
        ("cost of an offload, β", "average cost a sample"),
        f"The paper's H2T2 costs {compared(ours, full)} than always asking, {compared(ours, single)} than one threshold",
        f"{setting.samples:,} samples, {setting.runs} runs; band: standard deviation over the runs",
    )

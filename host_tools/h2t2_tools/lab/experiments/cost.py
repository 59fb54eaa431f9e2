"""`cost`: average cost for each cost of an offload on every data set (the paper's main figure), and a table of the models."""

from __future__ import annotations

from pathlib import Path

from ...common import plots
from .. import catalogue
from ..replay import FIELDS, write_csv
from ..scoring import summary
from ..simulation.policies.full_offload import FullOffload
from ..simulation.policies.no_offload import NoOffload
from ..simulation.policies.offline_pair import OfflinePair
from ..simulation.policies.offline_single import OfflineSingle
from ..simulation.policies.single_threshold import SingleThreshold
from .setting import PAPER, Setting, lines

POLICIES = (NoOffload(), FullOffload(), SingleThreshold(), OfflineSingle(), OfflinePair(), PAPER)


def perform(setting: Setting) -> list[Path]:
    traces = setting.traces()
    rows = setting.table(traces, POLICIES, setting.betas)
    write_csv(setting.out / "cost.csv", ("trace", *FIELDS), rows)
    models = []
    for title, trace in traces.items():
        paper = next(at for at in catalogue.ROWS if title.split(",")[0].split(" (")[0] == at.title)
        printed = {f"paper_{key}": getattr(paper, key) for key in ("samples", "accuracy", "fp", "fn")}
        models.append({"trace": title, **summary(trace), **printed})
    write_csv(setting.out / "models.csv", tuple(models[0]), models)
    figure = setting.out / "cost.png"
    names = [policy.name for policy in POLICIES]
    plots.panels(
        figure,
        {title: lines([r for r in rows if r["trace"] == title], names) for title in traces},
        ("beta", "cost"),
        ("cost of an offload, β", "average cost a sample"),
        f"Average cost, {setting.samples:,} samples, {setting.runs} runs (band: one standard deviation)",
    )
    return [figure, setting.out / "cost.csv", setting.out / "models.csv"]

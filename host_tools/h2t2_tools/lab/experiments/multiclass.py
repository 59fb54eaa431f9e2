"""`multiclass`: pairwise H2T2 against the single threshold and the calibrated rule, on 3, 4 and 10 classes of digits."""

from __future__ import annotations

from pathlib import Path

from ...common import plots
from .. import catalogue
from ..replay import FIELDS, costs, row, write_csv
from ..simulation.policies.calibrated import Calibrated
from ..simulation.policies.full_offload import FullOffload
from ..simulation.policies.no_offload import NoOffload
from ..simulation.policies.offline_single import OfflineSingle
from ..simulation.policies.pairwise import Pairwise
from ..simulation.policies.single_threshold import SingleThreshold
from ..simulation.sweep import grid, sweep
from .setting import DELTA_FN, DELTA_FP, Setting, lines

POLICIES = (NoOffload(), FullOffload(), SingleThreshold(), OfflineSingle(), Calibrated(), Pairwise())


def perform(setting: Setting) -> list[Path]:
    rows = []
    for classes in (3, 4, 10):
        trace = catalogue.find(f"digits_{classes}", setting.data)
        matrix = costs(classes, DELTA_FP, DELTA_FN)
        for result in sweep(grid(trace, POLICIES, setting.betas, matrix, setting.samples, setting.runs, 0)):
            rows.append({"trace": f"{classes} classes", **row(result)})
    write_csv(setting.out / "multiclass.csv", ("trace", *FIELDS), rows)
    figure = setting.out / "multiclass.png"
    names = [policy.name for policy in POLICIES]
    plots.panels(
        figure,
        {title: lines([r for r in rows if r["trace"] == title], names) for title in dict.fromkeys(r["trace"] for r in rows)},
        ("beta", "cost"),
        ("cost of an offload, β", "average cost a sample"),
        f"Digits, {setting.samples:,} samples, {setting.runs} runs; errors cost {DELTA_FP}, missing the last {DELTA_FN:g}",
    )
    return [figure, setting.out / "multiclass.csv"]

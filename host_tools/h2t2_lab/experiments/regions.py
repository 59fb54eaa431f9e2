"""`regions`: the decision of the calibrated rule (Theorem 3) for every output of a three-class model."""

from pathlib import Path

import numpy as np

from h2t2.core.numbers import ONE
from h2t2_tools.common.calibrated import decide_multiclass
from h2t2_tools.replay.replay import write_csv

from .. import plots
from .setting import Setting

BETA = 0.4
COSTS = ((0.0, 0.7, 0.9), (1.0, 0.0, 0.5), (0.8, 1.0, 0.0))  # costs[i][j]: predicting j when the class is i


def perform(setting: Setting) -> list[Path]:
    steps = 60 if setting.quick else 200
    matrix = np.round(np.array(COSTS) * ONE).astype(np.int64)
    f = [(a, b, steps - a - b) for a in range(steps + 1) for b in range(steps + 1 - a)]
    scores = np.round(np.array(f) / steps * 16384).astype(np.int64)
    actions = decide_multiclass(scores, round(BETA * ONE), matrix)
    rows = [{"f0": a / steps, "f1": b / steps, "action": int(at)} for (a, b, _), at in zip(f, actions)]
    write_csv(setting.out / "regions.csv", tuple(rows[0]), rows)
    asked = float(np.mean([row["action"] < 0 for row in rows]))
    figure = plots.simplex(
        setting.out / "regions.png",
        rows,
        f"With three classes a calibrated model asks on {asked:.0%} of the outputs, where no class is cheap",
        f"calibrated rule (Theorem 3), β = {BETA}, costs of the errors from {min(c for r in COSTS for c in r if c):g} to 1",
    )
    return [figure, setting.out / "regions.csv"]

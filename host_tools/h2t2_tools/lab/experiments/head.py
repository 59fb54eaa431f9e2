"""`head`: the adaptive policy without and with a head, on streams whose features are there, in their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies

from ...common.errors import UserError
from ..datasets import featured
from ..datasets.featured import Featured
from ..replay import write_csv
from ..simulation.player import play
from ..simulation.stream import Costs, Stream, charged
from ..simulation.sweep import device_seed
from .setting import DELTA_FN, DELTA_FP, Setting

BETAS = (0.1, 0.2, 0.3, 0.45)
BITS = 4
NOISE = 1.02  # what features that tell nothing, and a good local model, may cost
GOALS = {  # the largest mean cost
    "weather": 0.158, "x_ract": 0.128, "pneumonia": 0.0488, "pneumonia, labels inverted half-way": 0.084,
}  # fmt: skip
FIELDS = ("stream", "samples", "without", "with", "ratio", "goal", "missing")
TABLE = "head.csv"  # which the command prints


def perform(setting: Setting) -> list[Path]:
    rows: list[dict[str, Any]] = []
    for name, stream in featured.streams():
        if isinstance(stream, UserError):
            rows.append({**dict.fromkeys(FIELDS, ""), "stream": name, "missing": str(stream)})
            continue
        rows += [_row(title, variant, setting.runs) for title, variant in _variants(name, stream).items()]
    write_csv(setting.out / TABLE, FIELDS, rows)
    return [setting.out / TABLE]


def _variants(name: str, stream: Featured) -> dict[str, Featured]:
    """The stream, and what else is asked of it, by title."""
    variants = {name: stream}
    if name in ("x_ract", "pneumonia"):
        variants[f"{name}, features of noise"] = stream.with_noise(5)
    if name == "pneumonia":
        variants[f"{name}, labels inverted half-way"] = stream.inverted()
    return variants


def _row(title: str, stream: Featured, runs: int) -> dict[str, Any]:
    without, having = (_mean_cost(stream, features, runs) for features in (0, stream.features.shape[1]))
    goal = GOALS.get(title, NOISE * without)
    costs = {"without": f"{without:.4f}", "with": f"{having:.4f}", "ratio": f"{having / without:.3f}", "goal": f"{goal:.4f}"}
    return {"stream": title, "samples": len(stream.label), **costs, "missing": ""}


def _mean_cost(source: Featured, features: int, runs: int) -> float:
    """The cost a sample, the mean over BETAS and the runs. features: their number; 0: without a head."""
    samples = source.samples()
    paid = []
    for beta in BETAS:
        costs = Costs.binary(beta, DELTA_FP, DELTA_FN)
        stream = Stream(source.score, source.label, np.full(len(source.label), beta))
        numbers = units.policy(beta=beta, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS)
        if features:
            numbers["features"] = features
        for run in range(runs):
            policy = policies.make("adaptive", {**numbers, "seed": device_seed(run, beta)})
            actions = play(policy, samples if features else samples[:, 0] >> 8 - BITS, stream)
            paid.append(charged(actions, stream, costs)[0].mean())
    return float(np.mean(paid))

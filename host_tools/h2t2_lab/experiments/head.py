"""`head`: the adaptive policy without and with a head, on streams whose features are there, in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies
from h2t2_tools.common.errors import UserError
from h2t2_tools.replay.replay import costs as class_costs
from h2t2_tools.replay.simulation.player import play
from h2t2_tools.replay.simulation.stream import Costs, Stream, charged
from h2t2_tools.replay.simulation.sweep import device_seed

from ..datasets import featured
from ..datasets.featured import Featured
from .setting import DELTA_FN, DELTA_FP, Setting, paper_costs

BETAS = (0.1, 0.2, 0.3, 0.45)
BITS = 4
DRAWN = 10_000  # samples that are drawn of 10 digits
NOISE = 1.02  # what features that tell nothing, and a good local model, may cost
GOALS = {  # the largest mean cost
    "weather": 0.158, "x_ract": 0.128, "pneumonia": 0.0488, "pneumonia, labels inverted half-way": 0.084,
    "10 digits, every label the next class from the middle on": 0.155,
}  # fmt: skip
FIELDS = ("stream", "samples", "without", "with", "ratio", "goal", "missing")


def perform(setting: Setting) -> None:
    rows: list[dict[str, Any]] = []
    for name, stream in featured.streams():
        if isinstance(stream, UserError):
            rows.append({"stream": name, "missing": str(stream)})
            continue
        rows += [_row(title, variant, setting.runs) for title, variant in _variants(name, stream).items()]
    rows += _ten_digits(setting.runs)
    setting.csv("head", rows, FIELDS, shown=True)


def _variants(name: str, stream: Featured) -> dict[str, Featured]:
    """The stream, and what else is asked of it, by title."""
    variants = {name: stream}
    if name in ("x_ract", "pneumonia"):
        variants[f"{name}, features of noise"] = stream.with_noise(5)
    if name == "pneumonia":
        variants[f"{name}, labels inverted half-way"] = stream.shifted()
    return variants


def _ten_digits(runs: int) -> list[dict[str, Any]]:
    """Rows of 10 digits, drawn for each run."""
    try:
        digits = featured.ten_digits()
    except UserError as error:
        return [{"stream": "10 digits", "missing": str(error)}]
    noise = digits.with_noise(5)
    draws = [digits.draw(DRAWN, run) for run in range(runs)]
    variants = {
        "10 digits": draws,
        "10 digits, features of noise": [noise.draw(DRAWN, run) for run in range(runs)],
        "10 digits, every label the next class from the middle on": [stream.shifted() for stream in draws],
    }
    return [_row(title, streams, runs) for title, streams in variants.items()]


def _row(title: str, stream: Featured | list[Featured], runs: int) -> dict[str, Any]:
    """A row of a stream that every run plays, or of one for each run."""
    streams = stream if isinstance(stream, list) else [stream] * runs
    without, having = (_mean_cost(streams, having) for having in (False, True))
    goal = GOALS.get(title, NOISE * without)
    costs = {"without": f"{without:.4f}", "with": f"{having:.4f}", "ratio": f"{having / without:.3f}", "goal": f"{goal:.4f}"}
    return {"stream": title, "samples": len(streams[0].label), **costs, "missing": ""}


def _mean_cost(streams: list[Featured], having: bool) -> float:
    """The cost a sample, the mean over BETAS and the runs. streams: Of each run. having: With a head."""
    paid = []
    for beta in BETAS:
        for run, source in enumerate(streams):
            numbers, cells, costs = _game(source, beta, having)
            stream = Stream(source.score, source.label, np.full(len(source.label), beta))
            policy = policies.make("adaptive", {**numbers, "seed": device_seed(run, beta)})
            paid.append(charged(play(policy, cells, stream), stream, costs)[0].mean())
    return float(np.mean(paid))


def _game(source: Featured, beta: float, having: bool) -> tuple[dict[str, Any], np.ndarray, Costs]:
    """Return the arguments of a policy, what it reads of each sample, and the costs. having: With a head."""
    samples = source.samples()
    size = source.features.shape[1]
    if source.score.ndim == 2:
        costs = Costs.of(beta, class_costs(source.score.shape[1], DELTA_FP, DELTA_FN))
        numbers = units.policy(beta=beta, costs=costs.matrix, bits=BITS)
        cells = samples if having else samples[:, :-size]
    else:
        costs = paper_costs(beta)
        numbers = units.policy(beta=beta, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS)
        cells = samples if having else samples[:, 0] >> 8 - BITS
    return {**numbers, "features": size} if having else numbers, cells, costs

"""`over-time`: four ways to run a device through 47 years of weather, in their order.

The first days train a logistic regression, and the device meets the others: with the paper's policy, with the adaptive one,
with a head on the eight measurements beside it, and with a local model that is trained again on its offloads after each
quarter. As in the paper, the remote model's answer counts as right.
"""

from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies
from h2t2_tools.common import plots
from h2t2_tools.common.errors import UserError
from h2t2_tools.replay.simulation.player import play
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import Stream, charged
from h2t2_tools.replay.simulation.sweep import device_seed

from ..datasets import featured
from ..datasets.featured import Days
from ..lab_plots import compared
from .flywheel import CAP, RETRAININGS, TRAINED, new_policy, play_with_chances
from .setting import DELTA_FN, DELTA_FP, PAPER, Setting, paper_costs

BETA, BITS = 0.2, 4
POINTS = 16
HEAD = "adaptive, with a head"
COSTS = paper_costs(BETA)
FIELDS = ("policy", "samples", "runs", "t", "cost", "cost_sd", "mean", "missing")


def perform(setting: Setting) -> None:
    try:
        days = featured.days()
    except UserError as error:  # the data set is not among those that the product ships
        setting.csv("over_time", [{"missing": str(error)}], FIELDS)
        return
    samples = min(2000, len(days.label)) if setting.quick else len(days.label)
    runs = 2 if setting.quick else 5
    content = {name: np.array([way(days, samples, run) for run in range(runs)]) for name, way in WAYS.items()}
    lines = {name: _line(costs) for name, costs in content.items()}
    means = {name: float(costs.mean()) for name, costs in content.items()}
    shared = {"samples": samples, "runs": runs, "missing": ""}
    rows = [{"policy": name, **shared, **point, "mean": means[name]} for name, line in lines.items() for point in line]
    setting.csv("over_time", rows, FIELDS)
    best = means[OfflinePair.name]
    plots.curves(
        setting.png("over_time"),
        lines,
        ("t", "cost"),
        ("days in their order", "cost a day"),
        f"Day after day a head costs {compared(means[HEAD], best)} than the best fixed pair, "
        f"training again {compared(means[TRAINED], best)}",
        f"weather, {samples:,} days, β = {BETA}; means of {samples // POINTS:,} days; "
        f"band: standard deviation over {runs} runs",
    )


def _line(costs: np.ndarray) -> list[dict[str, float]]:
    """The points of a line, from costs (runs, samples)."""
    length = costs.shape[1] // POINTS
    blocks = costs[:, : length * POINTS].reshape(len(costs), POINTS, length).mean(2)
    ends = (np.arange(POINTS) + 0.5) * length
    return [{"t": float(t), "cost": float(block.mean()), "cost_sd": float(block.std())} for t, block in zip(ends, blocks.T)]


def _stream(days: Days, samples: int) -> Stream:
    return Stream(days.first()(days.x[:samples]), days.label[:samples], np.full(samples, BETA))


def _of_policy(policy: Any) -> Any:
    """A way to run a device: (days, samples, run) -> costs (samples,), of a policy of the simulation."""

    def costs(days: Days, samples: int, run: int) -> np.ndarray:
        stream = _stream(days, samples)
        return charged(policy.act(stream, COSTS, device_seed(run, BETA)), stream, COSTS)[0]

    return costs


def _with_head(days: Days, samples: int, run: int) -> np.ndarray:
    stream = _stream(days, samples)
    numbers = units.policy(beta=BETA, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS)
    streamed = days.featured()
    numbers["features"] = streamed.features.shape[1]
    policy = policies.make("adaptive", {**numbers, "seed": device_seed(run, BETA)})
    return charged(play(policy, streamed.samples()[:samples], stream), stream, COSTS)[0]


def _trained_again(days: Days, samples: int, run: int) -> np.ndarray:
    model = days.first()
    x, label, weight = days.x_train, days.y_train, np.ones(len(days.y_train))
    paid: list[np.ndarray] = []
    for batch in np.array_split(np.arange(samples), RETRAININGS + 1):
        policy = new_policy(COSTS, device_seed(run, BETA))  # it starts anew with each model, as on a device
        cost, asked, chance = play_with_chances(policy, model(days.x[batch]), days.label[batch], COSTS)
        paid.append(cost)
        x, label = np.concatenate([x, days.x[batch[asked]]]), np.concatenate([label, days.label[batch[asked]]])
        weight = np.concatenate([weight, np.minimum(1 / chance, CAP)])
        model = featured.fitted(x, label, weight)
    return np.concatenate(paid)


WAYS = {
    PAPER.name: _of_policy(PAPER),
    Adaptive.name: _of_policy(Adaptive()),
    HEAD: _with_head,
    TRAINED: _trained_again,
    OfflinePair.name: _of_policy(OfflinePair()),
}

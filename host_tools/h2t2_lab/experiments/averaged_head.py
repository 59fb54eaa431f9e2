"""`averaged-head`: does a new device start better with the mean of the heads that a fleet has taught?

The first half of a stream belongs to the devices of the fleet, a stretch each. A new device starts somewhere in the second
half, once with a new head and once with the mean of the fleet's weights.
"""

from typing import Any

import numpy as np

from h2t2 import units
from h2t2.core import policies
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.head_file import mean
from h2t2_tools.common.jit import njit
from h2t2_tools.replay.simulation.numba_policies import freeze
from h2t2_tools.replay.simulation.player import arrivals, play_compiled
from h2t2_tools.replay.simulation.stream import Stream, charged
from h2t2_tools.replay.simulation.sweep import device_seed

from ..datasets import featured
from ..datasets.featured import Featured
from .head import BETAS, BITS
from .setting import DELTA_FN, DELTA_FP, Setting, paper_costs

DEVICES = 5  # of a fleet
SAMPLES = 300  # of a new device
RUNS = 12  # fleets
PLACES = 4  # at which new devices start, for each fleet and beta
STARTS = ("new", "averaged", "averaged, with step sizes")
FIELDS = ("stream", "taught", "runs", *(f"{start}{kind}" for start in STARTS for kind in ("", " se")), "ratio", "ratio se",
          "ratio, with step sizes", "ratio se, with step sizes", "missing")  # fmt: skip

Head = tuple[np.ndarray, np.ndarray]  # weights and roots, as h2t2.core.head.Heads has them


def perform(setting: Setting) -> None:
    rows: list[dict[str, Any]] = []
    for name, stream in featured.streams():
        if isinstance(stream, UserError):
            rows.append({"stream": name, "missing": str(stream)})
            continue
        rows.append({"stream": name, **_row(stream, 3 if setting.quick else RUNS), "missing": ""})
    setting.csv("averaged_head", rows, FIELDS, shown=True)


def _row(stream: Featured, runs: int) -> dict[str, Any]:
    """The figures of a stream: means over the runs, with standard errors. A run is the mean over BETAS and PLACES."""
    costs = np.array([[_costs(stream, beta, run) for beta in BETAS] for run in range(runs)]).mean(1)
    new = costs[:, 0].mean()
    row: dict[str, Any] = {"taught": len(stream.label) // 2 // DEVICES, "runs": runs}
    for start, column in zip(STARTS, costs.T):
        row |= {start: f"{column.mean():.4f}", f"{start} se": f"{_error(column):.4f}"}
    for suffix, column in (("", costs[:, 1]), (", with step sizes", costs[:, 2])):
        ratio = column.mean() / new  # of means: its error comes from the differences of the pairs
        row |= {f"ratio{suffix}": f"{ratio:.3f}", f"ratio se{suffix}": f"{_error(column - ratio * costs[:, 0]) / new:.3f}"}
    return row


def _error(values: np.ndarray) -> float:
    """The standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _costs(stream: Featured, beta: float, run: int) -> list[float]:
    """The cost a sample of new devices, for each of STARTS, after a fleet of this run."""
    half = len(stream.label) // 2
    rng = np.random.default_rng([run, 7])
    length = half // DEVICES
    heads = [
        _play(stream, device * length, length, beta, device_seed(DEVICES * run + device, beta), None)[1]
        for device in range(DEVICES)
    ]
    weights, roots = averaged(heads)
    starts = (None, (weights, None), (weights, roots))
    places = rng.integers(half, len(stream.label) - SAMPLES, PLACES)
    return [
        float(np.mean([_play(stream, at, SAMPLES, beta, device_seed(1000 + PLACES * run + n, beta), start)[0]
                       for n, at in enumerate(places)]))
        for start in starts
    ]  # fmt: skip


def averaged(heads: list[Head]) -> Head:
    """The mean of the heads of a fleet, as `h2t2 head` computes it."""
    weights, roots = (np.asarray(mean(arrays), np.int64) for arrays in zip(*heads))
    return weights, roots


def _play(
    source: Featured, first: int, samples: int, beta: float, seed: int, start: tuple[np.ndarray, np.ndarray | None] | None
) -> tuple[float, Head]:
    """Let a device meet samples in their order.

    Args:
        source: The stream.
        first, samples: Its samples first to first + samples - 1.
        beta: Cost of an offload.
        seed: Of the device's draws.
        start: Weights and roots of the head that it starts with; None: those of a new head.

    Returns:
        The cost a sample, and the device's head after the last one.
    """
    score, label, features = (column[first : first + samples] for column in (source.score, source.label, source.features))
    stretch = Featured(score, label, features)
    stream = Stream(score, label, np.full(samples, beta))
    numbers = units.policy(beta=beta, delta_fp=DELTA_FP, delta_fn=DELTA_FN, bits=BITS)
    policy: Any = policies.make("adaptive", {**numbers, "features": features.shape[1], "seed": seed})
    heads = policy.forecaster.heads
    for values, given in zip((heads.weights, heads.roots), start or (None, None)):
        if given is not None:
            values[:] = type(values)(values.typecode, given.tolist())
    device = freeze(policy)
    actions = np.zeros(samples, np.int64)
    play_compiled(device, None, False, (stretch.samples(), label, stream.beta_q15), arrivals(stream), actions)
    return float(charged(actions, stream, paper_costs(beta))[0].mean()), _head(device)


@njit
def _head(device: Any) -> Any:
    heads = device.forecaster.heads
    return heads.weights, heads.roots

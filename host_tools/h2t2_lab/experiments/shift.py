"""`shift`: learners with and without `half_life` on real traces whose data drift abruptly or gradually."""

from dataclasses import replace
from typing import Any

import numpy as np

from h2t2_tools.replay import trace_names
from h2t2_tools.replay.simulation.policies.baselines import OfflinePair
from h2t2_tools.replay.simulation.policies.learners import Adaptive
from h2t2_tools.replay.simulation.stream import Stream, charged, draw
from h2t2_tools.replay.simulation.sweep import device_seed
from h2t2_tools.replay.traces import Trace

from .. import lab_plots
from .setting import BASELINES, DRAWN, MODES, PAPER, Setting, paper_costs

SEQUENCES = (
    ("phishing_weak", "x_ract", "chest_xray"),
    ("chest_xray", "logistic_dogs", "phishing"),
    ("resnet_dogs", "breach", "phishing_weak"),
    ("breakhis", "x_ract", "resnet_dogs"),
    ("phishing", "chest_xray_weak", "breach"),
)
BETAS = (0.1, 0.3, 0.5)
POLICIES = (
    PAPER,
    replace(PAPER, half_life=1000, label="H2T2 (paper), half-life 1000"),
    MODES,
    replace(MODES, half_life=500),
    Adaptive(),
    *BASELINES,
)
BLOCKS = 30


def abrupt(traces: list[Trace], samples: int, seed: int, beta: float) -> Stream:
    """Draw one trace after the other."""
    stretches = [draw(trace, samples // len(traces), seed * 16 + n, beta) for n, trace in enumerate(traces)]
    return Stream(*(np.concatenate([getattr(stretch, key) for stretch in stretches]) for key in ("score", "label", "beta")))


def gradual(traces: list[Trace], samples: int, seed: int, beta: float) -> Stream:
    """Fade each trace into the next: the share of its samples rises evenly."""
    stretches = [draw(trace, samples, seed * 16 + n, beta) for n, trace in enumerate(traces)]
    at = np.linspace(0, len(traces) - 1, samples)
    which = np.minimum(np.floor(at + np.random.default_rng([seed, 3]).random(samples)), len(traces) - 1).astype(int)
    rows = np.arange(samples)
    return Stream(
        np.stack([stretch.score for stretch in stretches])[which, rows],
        np.stack([stretch.label for stretch in stretches])[which, rows],
        np.full(samples, beta),
    )


def _lines(at: np.ndarray, values: np.ndarray) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of a panel; at: (blocks,) rounds, values: (runs, policies, blocks)."""
    return {
        policy.name: [
            {"t": t, "excess": mean, "excess_sd": deviation}
            for t, mean, deviation in zip(at, values[:, n].mean(0), values[:, n].std(0))
        ]
        for n, policy in enumerate(POLICIES)
        if policy.name in DRAWN
    }


def perform(setting: Setting) -> None:
    samples = 3000 if setting.quick else 30000
    runs = 2 if setting.quick else 10
    block = samples // BLOCKS
    rows: list[dict[str, Any]] = []
    curves: dict[str, Any] = {}  # (runs, policies, blocks) of each kind of drift
    for drift, make, pieces in (("abrupt", abrupt, 3), ("gradual", gradual, 10)):
        for names in SEQUENCES:
            traces = [trace_names.find(name, setting.data) for name in names]
            for beta in BETAS:
                costs = paper_costs(beta)
                excess = np.zeros((runs, len(POLICIES), samples // block))
                static = 0.0  # excess of the best pair of the whole stream over the best pairs of its stretches
                for seed in range(runs):
                    stream = make(traces, samples, seed, beta)
                    edges = np.linspace(0, samples, pieces + 1).astype(int)
                    # the costs if each stretch had its own best pair
                    best = np.concatenate(
                        [
                            charged(OfflinePair().act(stretch, costs, 0), stretch, costs)[0]
                            for stretch in (stream.stretch(start, stop) for start, stop in zip(edges, edges[1:]))
                        ]
                    )
                    static += (charged(OfflinePair().act(stream, costs, 0), stream, costs)[0] - best).mean() / runs
                    for n, policy in enumerate(POLICIES):
                        paid = charged(policy.act(stream, costs, device_seed(seed, beta)), stream, costs)[0]
                        excess[seed, n] = (paid - best)[: samples // block * block].reshape(-1, block).mean(1)
                curves[drift] = curves.get(drift, 0) + excess / len(SEQUENCES) / len(BETAS)
                for policy, values in zip(POLICIES, excess.mean(0)):
                    where = {"drift": drift, "sequence": " > ".join(names), "beta": beta}
                    both = {"excess": float(values.mean() - static), "excess_stretches": float(values.mean())}
                    rows.append({**where, "policy": policy.name, **both})
    setting.csv("shift", rows)
    means: list[dict[str, Any]] = []
    for drift in curves:
        for over in ("excess", "excess_stretches"):
            means.append({"drift": drift, "over": "θ* of the whole" if over == "excess" else "θ* of each stretch"})
            for policy in POLICIES:
                mine = [r[over] for r in rows if (r["drift"], r["policy"]) == (drift, policy.name)]
                means[-1][policy.name] = float(np.mean(mine))
    setting.csv("shift_mean", means)
    ours, paper = (float(np.mean([row[name] for row in means[1::2]])) for name in (Adaptive.name, PAPER.name))
    at = (np.arange(samples // block) + 0.5) * block
    lab_plots.grid(
        setting.png("shift"),
        {f"{drift} drift": _lines(at, values) for drift, values in curves.items()},
        ("t", "excess"),
        ("round", "excess cost over the best pair of each stretch"),
        f"On data that drift the adaptive policy's excess is {ours / paper:.0%} of the paper's",
        f"mean of {len(SEQUENCES)} sequences of traces, β = {', '.join(map(str, BETAS))}; band: deviation of {runs} runs",
    )

"""`h2t2 recommend`: which policy, how many bits, with a table or without, for the samples of a trace.

Everything is played as a device would meet it: some labels make the table, the others are played, in order and shuffled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..common import plots
from ..common.errors import UserError
from .prior import table
from .simulation.policies.adaptive import Adaptive
from .simulation.policies.base import Policy
from .simulation.policies.full_offload import FullOffload
from .simulation.policies.h2t2 import H2T2
from .simulation.policies.named import Named
from .simulation.policies.no_offload import NoOffload
from .simulation.policies.offline_pair import OfflinePair
from .simulation.stream import Costs, draw, ordered
from .simulation.sweep import Job, Progress, sweep
from .traces import Trace

BITS = (3, 4, 5, 6, 8)
LEAST = 40  # samples of a trace that says anything
LABELLED = 5  # one in so many samples is for the table, 2000 at most
CLOSE = 0.02  # what is within this share of the cheapest is as good: the simplest of them is chosen
APART = 0.1  # order and shuffle disagree where the cheapest of one costs so much more than the cheapest of the other
BASELINES = ("asking always", "asking never", "best fixed pair, in hindsight")


@dataclass(frozen=True)
class Candidate:
    """What may be chosen; `settings` are lines of a configuration."""

    title: str
    settings: dict[str, Any]
    policy: Policy


def candidates(first: Trace, bits: tuple[int, ...], given: dict[str, Any]) -> list[Candidate]:
    """From the simplest on: the defaults first. first: labelled samples for a table. given: rdl_fp, rdl_fn, miss_rate, where
    they are not 0; with a limit for misses only those that keep one."""
    order = sorted(bits, key=lambda b: (b != 4, b))
    made = []
    for tables in (False, True):
        for b in order:
            settings: dict[str, Any] = {"policy": "adaptive", "bits": b}
            policy = Adaptive(b, **given)
            if tables:
                prior = tuple(round(p, 4) for p in table(first.score, first.label, b))
                settings["prior"] = list(prior)
                policy = replace(policy, prior=prior)
            made.append(Candidate(f"adaptive, b = {b}" + ", with a table" * tables, settings, policy))
    if "miss_rate" in given:
        return made
    for half_life in (0, 2000):
        settings = {"policy": "h2t2", "bits": 4, "feedback": "all", "exploration": "anytime", "half_life": half_life}
        title = "H2T2, b = 4" + (f", half-life {half_life}" if half_life else "")
        made.append(Candidate(title, settings, H2T2(4, feedback="all", exploration="anytime", half_life=half_life, **given)))
    return made


def recommend(
    trace: Trace,
    beta: float,
    deltas: tuple[float, float],
    horizon: int,
    in_order: bool,
    bits: tuple[int, ...],
    runs: int,
    out: Path,
    progress: Progress,
    given: dict[str, Any],
) -> dict[str, Any]:
    """The report, and its picture in `out`. given: as candidates() takes it. horizon: samples that the device will see, 0: as
    many as the trace has to play. in_order: the trace's order is the device's, and decides; else the shuffled samples do."""
    if trace.score.ndim > 1:
        raise UserError(f"{trace.name}: {trace.classes} classes; recommend is of two: h2t2 replay plays this one")
    if len(trace.label) < LEAST:
        raise UserError(f"{trace.name}: {len(trace.label)} samples; want {LEAST} or more")
    first, rest = _parted(trace, in_order)
    if not 0 < first.label.sum() < len(first.label):
        raise UserError(
            f"{trace.name}: the {len(first.label)} labels for a table are all the same; want both classes among them"
        )
    horizon = horizon or len(rest.label)
    offered = candidates(first, bits, given)
    cost = _played(offered, rest, Costs.binary(beta, *deltas), horizon, runs, progress)
    own, other = ("in order", "shuffled") if in_order else ("shuffled", "in order")
    chosen = _cheapest(offered, cost[own])
    rows = [{"what": name, "shuffled": cost["shuffled"][name], "in order": cost["in order"][name]} for name in cost[own]]
    figure = out / f"recommend_{Path(trace.name).stem}.png"
    out.mkdir(parents=True, exist_ok=True)
    title = f"{trace.name}: mean cost of {horizon:,} samples shuffled, {min(horizon, len(rest.label)):,} in order, β = {beta:g}"
    plots.row_marks(figure, rows, "what", ["shuffled", "in order"], "cost a sample", title)
    return {
        "trace": trace.name,
        "beta": beta,
        "delta_fp": deltas[0],
        "delta_fn": deltas[1],
        "horizon": horizon,
        "decided_by": own,
        "labelled": len(first.label),
        "played_in_order": min(horizon, len(rest.label)),
        "runs": runs,
        "chosen": chosen.title,
        "why": _why(chosen, cost[own]),
        "warnings": _warnings(offered, chosen, cost, own, other, horizon, len(rest.label), trace.beta is not None),
        "config": {**chosen.settings, "beta": beta, "delta_fp": deltas[0], "delta_fn": deltas[1], **given},
        "rows": rows,
        "figure": str(figure),
    }


def _parted(trace: Trace, in_order: bool) -> tuple[Trace, Trace]:
    """Samples with labels for the table, and those that are played: the first of them, or drawn at random."""
    count = min(2000, len(trace.label) // LABELLED)
    labelled = np.zeros(len(trace.label), bool)
    labelled[np.arange(count) if in_order else np.random.default_rng(0).choice(len(labelled), count, replace=False)] = True
    return _some(trace, labelled), _some(trace, ~labelled)


def _some(trace: Trace, which: np.ndarray) -> Trace:
    beta = None if trace.beta is None else trace.beta[which]
    return replace(trace, score=trace.score[which], label=trace.label[which], beta=beta)


def _played(
    offered: list[Candidate], trace: Trace, costs: Costs, horizon: int, runs: int, progress: Progress
) -> dict[str, dict[str, float]]:
    """The mean cost a sample of every candidate and baseline, shuffled and in order."""
    references = (FullOffload(), NoOffload(), OfflinePair(8))
    policies: list[Policy] = [Named(one.policy, one.title) for one in offered]
    policies += [Named(policy, name) for policy, name in zip(references, BASELINES)]
    ways = {"shuffled": (draw, horizon), "in order": (ordered, min(horizon, len(trace.label)))}
    jobs = [
        Job(policy, trace, costs, samples, 0, runs, (way, policy.name), make)
        for way, (make, samples) in ways.items()
        for policy in policies
    ]
    cost: dict[str, dict[str, float]] = {way: {} for way in ways}
    for result in sweep(jobs, progress):
        way, name = result.job.key
        cost[way][name] = result.mean("cost")
    return cost


def _cheapest(offered: list[Candidate], cost: dict[str, float]) -> Candidate:
    """The first of those that cost no more than CLOSE above the cheapest."""
    least = min(cost[one.title] for one in offered)
    return next(one for one in offered if cost[one.title] <= least * (1 + CLOSE))


def _why(chosen: Candidate, cost: dict[str, float]) -> str:
    always, never, pair = (cost[name] for name in BASELINES)
    return (
        f"{cost[chosen.title]:.4f} a sample; asking always costs {always:.4f}, never {never:.4f}, the best fixed pair of "
        f"thresholds, which only hindsight knows, {pair:.4f}. Nothing simpler costs less than "
        f"{CLOSE:.0%} more, and nothing at all that much less."
    )


def _warnings(
    offered: list[Candidate],
    chosen: Candidate,
    cost: dict[str, dict[str, float]],
    own: str,
    other: str,
    horizon: int,
    played: int,
    own_beta: bool,
) -> list[str]:
    """What a user should know before believing the choice."""
    made = []
    rival = _cheapest(offered, cost[other])
    here, there = cost[own], cost[other]
    if here[rival.title] > here[chosen.title] * (1 + APART) or there[chosen.title] > there[rival.title] * (1 + APART):
        made.append(
            f"{other} {rival.title} would be chosen: {there[rival.title]:.4f} there against {there[chosen.title]:.4f}. "
            "Say --ordered if the trace's order is the device's."
        )
    both = here[chosen.title], there[chosen.title]
    if abs(both[0] - both[1]) > 0.01 + APART * max(both):
        made.append("the stream changes: in order it costs something else than shuffled, so a shuffled test says little of it")
    for name in BASELINES[:2]:
        if here[name] <= here[chosen.title] * (1 + CLOSE):
            made.append(f"{name} costs as little ({here[name]:.4f}): learning saves nothing on this trace at this beta")
    if horizon > played:
        made.append(f"only {played:,} samples could be played in order; shuffled, {horizon:,} were drawn from them")
    if own_beta:
        made.append("the trace's own cost of an offload a sample was played, not --beta")
    return made


def lines(config: dict[str, Any]) -> str:
    """A configuration's lines, for a board's or a node's config.toml."""
    made = []
    for name, value in config.items():
        made.append(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}")
    return "\n".join(made)

"""`h2t2 recommend`: chooses the policy, its bits and its table for the samples of a trace.

Some labels make the table. The other samples are played as a device would meet them, in order and shuffled.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..common import plots, policies
from ..common.errors import UserError
from .prior import table
from .simulation.policies.base import Named, Policy
from .simulation.policies.baselines import FullOffload, NoOffload, OfflinePair, OfflineSingle
from .simulation.policies.learners import H2T2, Adaptive, AdaptiveClasses
from .simulation.stream import Costs, draw, ordered
from .simulation.sweep import Job, Progress, sweep
from .traces import Trace

BITS = (3, 4, 5, 6, 8)
MIN_SAMPLES = 40  # fewest samples of a trace
TABLE_SHARE = 5  # one in five samples, at most 2000, goes into the table
CLOSE = 0.02  # it chooses the simplest candidate among those that cost at most this share more than the cheapest
APART = 0.1  # the orders disagree if one order's choice costs this share more in the other order than the choice there
BASELINES = ("asking always", "asking never", "best fixed thresholds, in hindsight")
PAST = "adaptive, b = 4, with its past"
LOCAL_ONLY = "do not ask"  # the recommendation where asking never is as cheap
MAX_CLASS_BITS = 6  # of the policy for many classes


@dataclass(frozen=True)
class Candidate:
    """A policy that may be chosen, with the lines of its configuration."""

    title: str
    settings: dict[str, Any]
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What a device will meet.

    Attributes:
        trace: Labelled samples.
        beta, delta_fp, delta_fn: Costs of an offload and of the errors, 0 to 1.
        horizon: Samples that the device will see; 0: as many as the trace has to play.
        in_order: The order of the trace is that of the device, and decides; otherwise the shuffled samples decide.
        bits: Score bits to try.
        runs: Runs of each candidate.
        options: rdl_fp, rdl_fn and miss_rate that are not 0; `normal`, of more than two classes with miss_rate.
        class_costs: Of more than two classes, in place of delta_fp and delta_fn: costs[i][j] of saying j where i is true.
    """

    trace: Trace
    beta: float
    delta_fp: float
    delta_fn: float
    horizon: int
    in_order: bool
    bits: tuple[int, ...]
    runs: int
    options: dict[str, Any]
    class_costs: list[list[float]] | None = None

    @property
    def costs(self) -> Costs:
        """The costs that the policies are played with."""
        if self.class_costs:
            return Costs.of(self.beta, self.class_costs, self.options.get("normal", -1))
        return Costs.binary(self.beta, self.delta_fp, self.delta_fn)

    @property
    def entries(self) -> dict[str, Any]:
        """The same costs as entries of a configuration."""
        if self.class_costs:
            return {"beta": self.beta, "class_costs": self.class_costs}
        return {"beta": self.beta, "delta_fp": self.delta_fp, "delta_fn": self.delta_fn}


def candidates(first: Trace, scenario: Scenario) -> list[Candidate]:
    """Return the candidates, simplest first. A limit for misses leaves only those that keep one.

    Args:
        first: Labelled samples for the table.
        scenario: Bits and options.
    """
    options = scenario.options
    bits = sorted(scenario.bits, key=lambda b: (b != 4, b))  # the default first
    if scenario.class_costs:
        return [
            Candidate(
                f"adaptive, b = {b}",
                {"policy": "adaptive", "bits": b},
                AdaptiveClasses(b, miss_rate=options.get("miss_rate", 0.0)),
            )
            for b in bits
            if b <= MAX_CLASS_BITS
        ]
    offered = []
    # the order of a shuffled trace is not the device's: there the configuration says nothing of it
    unordered = {"ordered": False} if scenario.in_order and "miss_rate" not in options else {}
    for tables in (False, True):
        for b in bits:
            settings: dict[str, Any] = {"policy": "adaptive", "bits": b, **unordered}
            policy = Adaptive(b, **options)
            if tables:
                prior = tuple(round(p, 4) for p in table(first.score, first.label, b))
                settings["prior"] = list(prior)
                policy = replace(policy, prior=prior)
            offered.append(Candidate(f"adaptive, b = {b}" + ", with a table" * tables, settings, policy))
    if "miss_rate" in options:
        return offered
    if scenario.in_order:
        settings = {"policy": "adaptive", "bits": 4, "ordered": True}
        offered.append(Candidate(PAST, settings, Adaptive(4, ordered=True, **options)))
    for half_life in (0, 2000):
        modes: dict[str, Any] = {"feedback": "all", "exploration": "anytime", "half_life": half_life}
        title = "H2T2, b = 4" + (f", half-life {half_life}" if half_life else "")
        offered.append(Candidate(title, {"policy": "h2t2", "bits": 4, **modes}, H2T2(4, **modes, **options)))
    return offered


def recommend(scenario: Scenario, out: Path, progress: Progress) -> dict[str, Any]:
    """Compare the candidates, write a picture into the folder `out` and return the report.

    Raises:
        UserError: The trace has too few samples, or one class only among the labels for the table; or an option does not fit
            the number of classes.
    """
    trace, beta = scenario.trace, scenario.beta
    first, played = _checked_split(scenario)
    horizon = scenario.horizon or len(played.label)
    in_order = min(horizon, len(played.label))
    offered = candidates(first, scenario)
    cost, offloads = _play(offered, played, scenario, horizon, progress)
    own, alternative = ("in order", "shuffled") if scenario.in_order else ("shuffled", "in order")
    chosen = _cheapest(offered, cost[own])
    warnings = _order_warnings(offered, chosen, cost[own], cost[alternative], alternative) + _baseline_warnings(
        chosen, cost[own]
    )
    local_only = "miss_rate" not in scenario.options and cost[own][BASELINES[1]] <= cost[own][chosen.title] * (1 + CLOSE)
    if horizon > in_order:
        warnings.append(
            f"the test set repeats: the shuffled runs drew {horizon:,} samples from {in_order:,}, "
            f"each {horizon / in_order:.1f} times; samples that are new each time may cost more"
        )
    if not scenario.class_costs:
        told = {name: value for name, value in scenario.options.items() if name != "miss_rate"}
        if reason := policies.never_worth_asking(policies.make("adaptive", {**scenario.entries, **told})):
            warnings.insert(0, reason)
    if trace.beta is not None:
        warnings.append("the trace has its own cost of an offload for each sample; it replaced --beta")
    rows = [{"what": name, "shuffled": cost["shuffled"][name], "in order": cost["in order"][name]} for name in cost[own]]
    figure = out / f"recommend_{Path(trace.name).stem}.png"
    out.mkdir(parents=True, exist_ok=True)
    title = f"{trace.name}: mean cost of {horizon:,} samples shuffled, {in_order:,} in order, β = {beta:g}"
    plots.row_marks(figure, rows, "what", ["shuffled", "in order"], "cost a sample", title)
    return {
        "trace": trace.name,
        "event": trace.event if trace.classes == 2 else None,
        **scenario.entries,
        "horizon": horizon,
        "decided_by": own,
        "labelled": len(first.label),
        "played_in_order": in_order,
        "runs": scenario.runs,
        "chosen": LOCAL_ONLY if local_only else chosen.title,
        "why": _reason_not_to_ask(chosen, cost[own]) if local_only else _reason(chosen, cost[own], offloads[own]),
        "warnings": warnings,
        "config": {} if local_only else {**chosen.settings, **scenario.entries, **scenario.options},
        "rows": rows,
        "figure": str(figure),
    }


def _checked_split(scenario: Scenario) -> tuple[Trace, Trace]:
    """Return samples for the table, none for many classes, and those that are played. UserError as recommend()."""
    trace = scenario.trace
    if len(trace.label) < MIN_SAMPLES:
        raise UserError(f"{trace.name}: {len(trace.label)} samples; want {MIN_SAMPLES} or more")
    if scenario.class_costs:
        if rates := scenario.options.keys() - policies.LIMIT:
            raise UserError(f"{trace.name}: {trace.classes} classes; {', '.join(sorted(rates))} is of two")
        if min(scenario.bits) > MAX_CLASS_BITS:
            raise UserError(f"--bits {min(scenario.bits)}: with {trace.classes} classes at most {MAX_CLASS_BITS}")
        return _subset(trace, np.zeros(len(trace.label), bool)), trace
    first, played = _split(trace, scenario.in_order)
    if not 0 < first.label.sum() < len(first.label):
        raise UserError(
            f"{trace.name}: the {len(first.label)} labels for the table are all of one class; they must contain both"
        )
    return first, played


def _split(trace: Trace, in_order: bool) -> tuple[Trace, Trace]:
    """Return samples for the table (the first of the trace, or drawn at random), and the others."""
    count = min(2000, len(trace.label) // TABLE_SHARE)
    labelled = np.zeros(len(trace.label), bool)
    labelled[np.arange(count) if in_order else np.random.default_rng(0).choice(len(labelled), count, replace=False)] = True
    return _subset(trace, labelled), _subset(trace, ~labelled)


def _subset(trace: Trace, mask: np.ndarray) -> Trace:
    beta = None if trace.beta is None else trace.beta[mask]
    return replace(trace, score=trace.score[mask], label=trace.label[mask], beta=beta)


def _play(
    offered: list[Candidate], trace: Trace, scenario: Scenario, horizon: int, progress: Progress
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return the mean cost a sample of each candidate and baseline, shuffled and in order, and its share of offloads."""
    references = (FullOffload(), NoOffload(), OfflineSingle() if scenario.class_costs else OfflinePair(8))
    players: list[Policy] = [Named(candidate.policy, candidate.title) for candidate in offered]
    players += [Named(policy, name) for policy, name in zip(references, BASELINES)]
    ways = {"shuffled": (draw, horizon), "in order": (ordered, min(horizon, len(trace.label)))}
    jobs = [
        Job(policy, trace, scenario.costs, samples, 0, scenario.runs, key=(way, policy.name), make=make)
        for way, (make, samples) in ways.items()
        for policy in players
    ]
    cost: dict[str, dict[str, float]] = {way: {} for way in ways}
    offloads: dict[str, dict[str, float]] = {way: {} for way in ways}
    for result in sweep(jobs, progress):
        way, name = result.job.key
        cost[way][name] = result.mean("cost")
        offloads[way][name] = result.mean("offload")
    return cost, offloads


def _cheapest(offered: list[Candidate], cost: dict[str, float]) -> Candidate:
    """Return the first candidate that costs at most CLOSE more than the cheapest."""
    minimum = min(cost[candidate.title] for candidate in offered)
    return next(candidate for candidate in offered if cost[candidate.title] <= minimum * (1 + CLOSE))


def _reason(chosen: Candidate, cost: dict[str, float], offloads: dict[str, float]) -> str:
    always, never, fixed = (cost[name] for name in BASELINES)
    return (
        f"{cost[chosen.title]:.4f} a sample; asking always costs {always:.4f}, asking never {never:.4f}, the best fixed "
        f"thresholds in hindsight {fixed:.4f}. It is the simplest candidate within {CLOSE:.0%} of the cheapest."
        + _worth_of_order(cost, offloads)
    )


def _worth_of_order(cost: dict[str, float], offloads: dict[str, float]) -> str:
    """Return a sentence about what the past saves, if it was played, and how often the policy then asks."""
    if PAST not in cost or "adaptive, b = 4" not in cost:
        return ""
    saving = 1 - cost[PAST] / cost["adaptive, b = 4"]
    if saving <= CLOSE:
        return " The past saves nothing here."
    every = round(1 / max(offloads[PAST], 1e-4))
    asks = f"asking every {every} rounds tells the rest" if every > 1 else "the last answers tell of the next samples"
    return f" Your stream repeats itself: {asks}; the past saves {saving:.0%}."


def _reason_not_to_ask(chosen: Candidate, cost: dict[str, float]) -> str:
    always, never, _ = (cost[name] for name in BASELINES)
    return (
        f"the local model alone costs {never:.4f} a sample; asking always costs {always:.4f}, and the best policy, "
        f"{chosen.title}, {cost[chosen.title]:.4f}. Act on the local model's class, without a remote model."
    )


def _order_warnings(
    offered: list[Candidate], chosen: Candidate, own: dict[str, float], alternative: dict[str, float], way: str
) -> list[str]:
    """Return warnings if the results in the other order, `way`, differ."""
    rival = _cheapest(offered, alternative)
    advice = {
        "in order": "Give --ordered if the trace's order is the device's.",
        "shuffled": "Leave --ordered out unless the trace's order is the device's.",
    }[way]
    warnings = []
    dearer = own[rival.title] > own[chosen.title] * (1 + APART)
    wins = alternative[rival.title] < alternative[chosen.title]  # the simplest of those within CLOSE may be dearer
    if wins and dearer or alternative[chosen.title] > alternative[rival.title] * (1 + APART):
        warnings.append(
            f"played {way}, {rival.title} would win: it costs {alternative[rival.title]:.4f}, the chosen one "
            f"{alternative[chosen.title]:.4f}. {advice}"
        )
    both = own[chosen.title], alternative[chosen.title]
    if abs(both[0] - both[1]) > 0.01 + APART * max(both):
        warnings.append(
            "the stream changes: its cost in order differs from its shuffled cost, so shuffled results predict it badly"
        )
    return warnings


def _baseline_warnings(chosen: Candidate, cost: dict[str, float]) -> list[str]:
    return [
        f"{name} costs as little ({cost[name]:.4f}): learning does not pay on this trace at this beta"
        for name in BASELINES[:2]
        if cost[name] <= cost[chosen.title] * (1 + CLOSE)
    ]


def lines(config: dict[str, Any]) -> str:
    """Return a configuration as lines of an h2t2.toml."""
    return "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in config.items())

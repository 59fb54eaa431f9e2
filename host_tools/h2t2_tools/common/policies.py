"""Policies by name, from people's numbers: what `--policy` accepts, for the node, the demo and whatever runs them."""

from __future__ import annotations

import inspect
from typing import Any

from h2t2 import units
from h2t2.core import introspect
from h2t2.core import policies as core
from h2t2.core.adaptive import LOWER, UPPER, Adaptive
from h2t2.core.class_forecaster import COST, GUESS
from h2t2.core.forecaster import HIGH, LOW, P
from h2t2.core.numbers import ONE
from h2t2.core.policies import NAMES, kind

FEEDBACK = ("all", "explored")
EXPLORATION = ("anytime", "epsilon")
DEFAULTS = {**units.defaults_of(), "miss_rate": 0.0}  # no limit: as many misses as is cheapest
PAPER: dict[str, Any] = {"feedback": "explored", "exploration": "epsilon"}  # Algorithm 1 as printed
__all__ = [
    "DEFAULTS",
    "EXPLORATION",
    "FEEDBACK",
    "NAMES",
    "PAPER",
    "policy_arguments",
    "event_interval",
    "learned_state",
    "make",
    "option_names",
    "thresholds",
]


def policy_arguments(name: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """The integer arguments of that policy, of what numbers it takes; as units.policy takes them. ValueError for a bad one.

    miss_rate is among them only where there is such a limit, and costs where there are more classes than two: other policies
    do these. Of rdl_confusion they have what it makes of the costs.
    """
    used = {key: value for key, value in numbers.items() if value or key not in ("miss_rate", "costs", "rdl_confusion")}
    names = option_names(name, "costs" in used)
    if "rdl_confusion" in used and "costs" not in used:
        raise ValueError("rdl_confusion: of more classes than two, with `costs`; of two, rdl_fp and rdl_fn say the same")
    integers = {key: value for key, value in units.policy(**used).items() if key in names}
    if "rdl_confusion" in integers:
        integers["label_costs"] = units.label_costs(used["costs"], integers.pop("rdl_confusion"))
    return integers


def option_names(name: str, multiclass: bool = False) -> set[str]:
    """The names of that policy's options; many: of more classes than two. ValueError for one that decides between two only."""
    names = set(inspect.signature(kind(name, ["costs"] if multiclass else ()).__init__).parameters) - {"self"}
    if multiclass:
        return names - {"label_costs"} | {"rdl_confusion"}
    return names | {"miss_rate"} if kind(name) is Adaptive else names


def make(name: str, numbers: dict[str, Any]) -> Any:
    """A policy of the runtime, made with those arguments."""
    return core.make(name, policy_arguments(name, numbers))


def thresholds(policy: Any) -> list[int] | None:
    """[i, j]: the thresholds in force, in bins: 0 below i, offload to j - 1, 1 from j on; None of more classes than two.

    H2T2: the heaviest pair. Adaptive: the span of the bins its forecaster offloads (none: both where class 1 begins).
    """
    if policy.classes > 2:
        return None
    if not isinstance(policy, Adaptive):
        return list(introspect.likely(policy.experts))
    lower, upper = offload_region(policy)
    offloading, first = [], policy.experts.n
    for k in range(policy.experts.n):
        low, p, high = event_interval(policy, k)
        if lower < upper and high > lower and low < upper:
            offloading.append(k)
        elif p * policy.delta_fn >= (1 - p) * policy.delta_fp:
            first = min(first, k)
    return [offloading[0], offloading[-1] + 1] if offloading else [first, first]


def event_interval(policy: Adaptive, k: int) -> tuple[float, float, float]:
    """(low, p, high): what the forecaster believes of the events in bin k."""
    belief = policy.estimate(k)
    return belief[LOW] / ONE, belief[P] / ONE, belief[HIGH] / ONE


def offload_region(policy: Adaptive) -> tuple[float, float]:
    """(lower, upper): between these probabilities of an event an offload is cheapest."""
    return policy.effective[LOWER] / ONE, policy.effective[UPPER] / ONE


def _cell_forecast(policy: Any, cell: int) -> dict[str, Any]:
    """What its forecaster believes of a cell: the class to say, and what that is expected to cost."""
    policy.forecaster.estimate(policy.costs, cell)
    belief = policy.forecaster.belief
    return {"say": belief[GUESS], "cost": round(belief[COST] / ONE, 4)}


def learned_state(policy: Any) -> dict[str, Any]:
    """What a policy has learned, for pictures: {"a", "b"} exponents in octaves, or {"intervals"} a bin and its region; of more
    classes than two {"cells"}: a row a class that the local model says, of {"say", "cost"} a bin of how sure it is."""
    if policy.classes > 2:
        bins = range(1 << policy.bits)
        return {"cells": [[_cell_forecast(policy, top << policy.bits | k) for k in bins] for top in range(policy.classes)]}
    if not isinstance(policy, Adaptive):
        a, b = zip(*(introspect.exponents(policy.experts, i) for i in range(policy.experts.n)))
        return {"a": [x / 2**28 for x in a], "b": [x / 2**28 for x in b]}
    return {
        "intervals": [event_interval(policy, k) for k in range(policy.experts.n)],
        "region": list(offload_region(policy)),
        "switch": policy.delta_fp / max(1, policy.delta_fp + policy.delta_fn),
    }

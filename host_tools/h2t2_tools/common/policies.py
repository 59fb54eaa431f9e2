"""Policies by name, from people's numbers: what `--policy` accepts, for the node, the demo and whatever runs them."""

from __future__ import annotations

import inspect
from typing import Any

from h2t2 import units
from h2t2.core import introspect
from h2t2.core.calibrating import Calibrating
from h2t2.core.h2t2 import H2T2
from h2t2.core.policies import NAMES, kind

FEEDBACK = ("all", "explored")
EXPLORATION = ("anytime", "epsilon")
DEFAULTS = units.defaults_of()
PAPER: dict[str, Any] = {"feedback": "explored", "exploration": "epsilon"}  # Algorithm 1 as printed
__all__ = [
    "DEFAULTS",
    "EXPLORATION",
    "FEEDBACK",
    "NAMES",
    "PAPER",
    "arguments",
    "interval",
    "learned",
    "make",
    "thresholds",
]


def arguments(name: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """The integer arguments of that policy, of what numbers it takes; as units.policy takes them. ValueError for a bad one."""
    taken = inspect.signature(kind(name).__init__).parameters
    return {key: value for key, value in units.policy(**numbers).items() if key in taken}


def make(name: str, numbers: dict[str, Any]) -> Any:
    """A policy of the runtime, made with those arguments."""
    return kind(name)(**arguments(name, numbers))


def thresholds(policy: Any) -> list[int]:
    """[i, j]: the thresholds in force, in bins: 0 below i, offload to j - 1, 1 from j on.

    H2T2: the heaviest pair. Calibrating: the span of the bins it offloads (none: both where class 1 begins).
    """
    if isinstance(policy, H2T2):
        return list(introspect.likely(policy.experts))
    offloading, first = [], policy.n
    for k in range(policy.n):
        low, p, high = interval(policy, k)
        if policy.lower < policy.upper and high > policy.lower / 2**20 and low < policy.upper / 2**20:
            offloading.append(k)
        elif p * policy.delta_fn >= (1 - p) * policy.delta_fp:
            first = min(first, k)
    return [offloading[0], offloading[-1] + 1] if offloading else [first, first]


def interval(policy: Calibrating, k: int) -> tuple[float, float, float]:
    """(low, p, high): what the calibrating policy knows of the events in bin k."""
    policy.estimate(k)
    return policy.low / 2**20, policy.p / 2**20, policy.high / 2**20


def learned(policy: Any) -> dict[str, Any]:
    """What a policy has learned, for pictures: {"a", "b"} exponents in octaves, or {"intervals"} a bin and its region."""
    if isinstance(policy, H2T2):
        a, b = zip(*(introspect.exponents(policy.experts, i) for i in range(policy.experts.n)))
        return {"a": [x / 2**28 for x in a], "b": [x / 2**28 for x in b]}
    return {
        "intervals": [interval(policy, k) for k in range(policy.n)],
        "region": [policy.lower / 2**20, policy.upper / 2**20],
        "switch": policy.delta_fp / max(1, policy.delta_fp + policy.delta_fn),
    }

"""Makes policies by name from people's numbers, and describes what they have learned."""

import inspect
from array import array
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from h2t2 import units
from h2t2.core import introspect
from h2t2.core import policies as core
from h2t2.core.adaptive import LOWER, UPPER, Adaptive
from h2t2.core.class_forecaster import COST, GUESS
from h2t2.core.forecaster import HIGH, LOW, P
from h2t2.core.numbers import ONE
from h2t2.core.policies import NAMES as NAMES
from h2t2.core.policies import kind
from h2t2.core.score import cut

from .score_rules import Q14

FEEDBACK = ("all", "explored")
EXPLORATION = ("anytime", "epsilon")
DEFAULTS = {**units.defaults_of(), "miss_rate": 0.0, "confidence": 0.0, "ordered": False}  # 0: no limit; no confidence
LIMIT = set(core.LIMITS)
PAPER: dict[str, Any] = {"feedback": "explored", "exploration": "epsilon"}  # Algorithm 1 as printed
TABLES = ("prior", "costs", "rdl_confusion")
OFF_AT_ZERO = ("miss_rate", "confidence", "ordered", "costs", "rdl_confusion")  # a policy only gets those that are given


def policy_arguments(name: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """Make the integer arguments of a policy.

    Args:
        name: of the policy.
        numbers: as units.policy takes them. Numbers that this policy does not take are left out.

    Returns:
        Arguments of the policy's constructor. `confusion` replaces rdl_confusion.

    Raises:
        ValueError: a number is none, or out of range.
    """
    for option, value in numbers.items():
        check(option, value)
    used = {key: value for key, value in numbers.items() if key not in OFF_AT_ZERO or value}
    names = option_names(name, "costs" in used)
    if "rdl_confusion" in used and "costs" not in used:
        raise ValueError("rdl_confusion: of more classes than two, with `costs`; of two, rdl_fp and rdl_fn say the same")
    if "rdl_confusion" in used:
        used["confusion"] = used.pop("rdl_confusion")
    return {key: value for key, value in units.policy(**used).items() if key in names | {"confusion"}}


def check(option: str, value: Any) -> None:
    """Raise ValueError for a text, None or a fraction where an option takes a number, a whole one, or a table of numbers."""
    default = 0 if option == "normal" else DEFAULTS.get(option)
    if option in TABLES:
        expected, valid = "a table of numbers", value is None or (isinstance(value, Iterable) and _is_table(value))
    elif isinstance(default, int):
        expected, valid = "a whole number", isinstance(value, Integral)
    else:
        expected, valid = "a number", isinstance(value, Real) or not isinstance(default, float)
    if not valid:
        raise ValueError(f"{option} {value!r}: want {expected}")


def _is_table(value: Any) -> bool:
    """Whether this is a number, or a list of such lists."""
    return isinstance(value, Real) or (
        isinstance(value, Iterable) and not isinstance(value, str) and all(map(_is_table, value))
    )


def can_read_past(name: str, numbers: dict[str, Any]) -> bool:
    """Whether a policy of these numbers, without a head, can read its past.

    Args:
        name: of the policy.
        numbers: as units.policy takes them; `costs` and `miss_rate` count.
    """
    return name == NAMES[0] and not (numbers.get("costs") or numbers.get("miss_rate"))


def option_names(name: str, multiclass: bool = False) -> set[str]:
    """The names of a policy's options.

    Args:
        name: of the policy.
        multiclass: of its form for three classes or more.

    Raises:
        ValueError: the policy decides between two classes only.
    """
    names = set(inspect.signature(kind(name, ["costs"] if multiclass else ()).__init__).parameters) - {"self", "limit"}
    if multiclass:
        return names - {"confusion"} | {"rdl_confusion"} | LIMIT
    return names | {"ordered"} | LIMIT if kind(name) is Adaptive else names


def make(name: str, numbers: dict[str, Any]) -> Any:
    """Make a policy of the runtime from people's numbers."""
    return core.make(name, policy_arguments(name, numbers))


def reading(policy: Any, score: float | Sequence[float], features: Sequence[int] = ()) -> Any:
    """What a policy reads of a sample.

    Args:
        score: 0 to 1, of class 1; or those of all classes.
        features: of the sample, int8, for a head.
    """
    if isinstance(score, Sequence):
        return [*(cut(number, Q14) for number in score), *features]
    return array("i", [cut(score, 256), *features]) if features else cut(score, policy.steps())


def thresholds(policy: Any) -> list[int] | None:
    """The thresholds in force.

    Returns:
        [i, j] in bins: class 0 below i, offload from i to j - 1, class 1 from j on. H2T2: the heaviest pair. Adaptive: the span
        of the bins that its forecaster offloads; without such bins, i and j are the first bin of class 1. None for three
        classes or more.
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
    """(low, p, high): bounds and estimate of the share of events in bin k."""
    belief = policy.estimate(k)
    return belief[LOW] / ONE, belief[P] / ONE, belief[HIGH] / ONE


def offload_region(policy: Adaptive) -> tuple[float, float]:
    """(lower, upper): an offload is cheapest between these probabilities of an event."""
    return policy.effective[LOWER] / ONE, policy.effective[UPPER] / ONE


def never_worth_asking(policy: Any) -> str:
    """Say why asking never pays, where that is because the remote model is so often wrong; "" otherwise."""
    if not isinstance(policy, Adaptive):
        return ""
    return asking_never_pays(policy.beta, policy.delta_fp, policy.delta_fn, policy.rdl_fp, policy.rdl_fn)


def asking_never_pays(beta: int, delta_fp: int, delta_fn: int, rdl_fp: int, rdl_fn: int) -> str:
    """As never_worth_asking(), of costs and rates, Q15 (docs/algorithm.md: a remote model that errs)."""
    wrong_0, wrong_1 = delta_fp * rdl_fp / ONE, delta_fn * rdl_fn / ONE
    gain_0, gain_1 = delta_fp - wrong_0 + wrong_1, delta_fn - wrong_1 + wrong_0
    if not (rdl_fp or rdl_fn) or (beta + wrong_0) * gain_0 + (beta + wrong_1) * gain_1 < gain_0 * gain_1:
        return ""
    others, events = (f"{rate / ONE:.1%}" for rate in (rdl_fp, rdl_fn))
    share = events if events == others else f"{events} of the events and {others} of the others"
    return f"asking does not pay: the remote model is wrong on {share}"


def _cell_forecast(policy: Any, cell: int) -> dict[str, Any]:
    """The forecast of a cell: the cheapest class, and its expected cost."""
    policy.forecaster.estimate(policy.label_costs, cell)
    belief = policy.forecaster.belief
    return {"say": belief[GUESS], "cost": round(belief[COST] / ONE, 4)}


def learned_state(policy: Any) -> dict[str, Any]:
    """What a policy has learned, for pictures.

    Returns:
        H2T2: {"a", "b"}, exponents in octaves. Adaptive: {"intervals", "region", "switch"}, an interval for each bin. Three
        classes or more: {"cells"}, a row for each class that the local model says, of {"say", "cost"} for each bin of its
        confidence.
    """
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

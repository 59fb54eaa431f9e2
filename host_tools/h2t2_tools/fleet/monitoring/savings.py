"""What a device has saved so far. Every place that shows it asks saved_so_far(), so that all of them show the same number."""

import math
from collections.abc import Iterable
from typing import Any

from h2t2.node.asking import UNIT

from ...common.fields import DAY_S
from .costs import Costs, of_counters
from .intervals import Z
from .state import State
from .unit import DEFAULT, Unit, amount, rounded

DIGITS = 6
CHOICES = ("always", "never")
Saved = dict[str, Any]


def costs_of(state: State) -> Costs | None:
    """The costs of a sample since the start; None before the first answer, or of a device that does not count them."""
    if not state.scores or not state.answered or not state.local_cost or state.beta is None:
        return None
    return of_counters(state.scores, state.answered, state.local_cost, state.paid, state.beta)


def saved_so_far(state: State) -> Saved | None:
    """What the decisions since the start of a device saved, at the prices in force.

    Costs are the user's: the dearest mistake costs 1. What always asking costs is known; what the device's decisions without
    an answer cost, and what never asking would, is estimated from the answers. An interval also holds the chance of the
    samples, and counts half a mistake in each bin: where none has been seen yet, the next one may be.

    Returns:
        `samples`; `cost` of the device's decisions; `always` and `never`, each with the `amount` saved (below 0: lost), half
        the `interval` that holds it with 95 %, its `share` of what that choice costs, and `a_day`: None before the device has
        run for a day, or while the interval is wider than the amount. `never` is None where the counters overstate the
        cost, so that `always` is a lower bound: where the policy reads its past, an answer also decides the samples after it,
        and of several streams the answers of one stand for the samples of another. None: nothing is known.
    """
    costs = costs_of(state)
    if costs is None:
        return None
    assert state.scores and state.answered and state.local_cost
    samples = sum(state.scores)
    variances = dict.fromkeys(CHOICES, 0.0)
    for n, answers, cost in zip(state.scores, state.answered, state.local_cost):
        mistakes = min(1.0, (cost / UNIT + 0.5) / (answers + 1))
        variance = mistakes * (1 - mistakes)
        variances["always"] += (n - answers) * variance * (n + 1) / (answers + 1)
        variances["never"] += answers * variance
    told: Saved = {"samples": samples, "cost": round(costs.own * samples, DIGITS)}
    for choice, variance in variances.items():
        simple = getattr(costs, choice)
        saving = _saving((simple - costs.own) * samples, Z * math.sqrt(max(0.0, variance)), simple * samples)
        if state.uptime_s >= DAY_S and abs(saving["amount"]) > saving["interval"]:
            saving["a_day"] = round(saving["amount"] * DAY_S / state.uptime_s, DIGITS)
        told[choice] = saving
    if state.past or len(state.streams or ()) > 1:
        told["never"] = None
    return told


def _saving(amount: float, interval: float, simple: float) -> dict[str, Any]:
    """A saving as JSON. simple: what the simple choice costs."""
    share = round(amount / simple, DIGITS) if simple else None
    return {"amount": round(amount, DIGITS), "interval": round(interval, DIGITS), "share": share, "a_day": None}


def total(devices: Iterable[Saved | None]) -> Saved | None:
    """What several devices saved together, those of which something is known; without figures a day."""
    known = [saved for saved in devices if saved]
    if not known:
        return None
    told: Saved = {name: sum(saved[name] for saved in known) for name in ("samples", "cost")}
    for choice in CHOICES:
        judged = [saved for saved in known if saved[choice]]
        amounts, intervals = ([saved[choice][name] for saved in judged] for name in ("amount", "interval"))
        simple = sum(amounts) + sum(saved["cost"] for saved in judged)
        told[choice] = _saving(sum(amounts), math.hypot(*intervals), simple) if judged else None
    return told


def figures(saving: dict[str, Any] | None, unit: Unit = DEFAULT) -> str:
    """Say what was saved against a simple choice: "231 ± 45 (58 %)"; "-" where it is unknown, the share where that is known."""
    if saving is None:
        return "-"
    value, interval = rounded(saving["amount"] * unit.worth, saving["interval"] * unit.worth)
    text = f"{amount(value)} ± {amount(interval)}"
    if abs(saving["amount"]) <= saving["interval"]:
        return text
    parts = [] if saving["share"] is None else [f"{100 * saving['share']:,.0f} %"]
    parts += [] if saving["a_day"] is None else [f"{amount(saving['a_day'] * unit.worth)} a day"]
    return f"{text} ({', '.join(parts)})" if parts else text


def in_words(saved: Saved | None, unit: Unit = DEFAULT) -> str:
    """Say what was saved against both simple choices."""
    if saved is None:
        return "nobody can tell: no answer has come since its start"
    clauses: list[str] = []
    least = "" if saved["never"] else "at least "
    for choice in CHOICES:
        saving = saved[choice]
        if saving and abs(saving["amount"]) > saving["interval"]:
            clauses.append(f"{least}{figures(saving, unit)} against {choice} asking")
        elif saving:
            clauses.append(f"too few answers to tell against {choice} asking ({least}{figures(saving, unit)})")
    name = "" if unit == DEFAULT else f" {unit.name}"
    return f"{', '.join(clauses)}; the dearest mistake costs {unit.worth:g}{name}"

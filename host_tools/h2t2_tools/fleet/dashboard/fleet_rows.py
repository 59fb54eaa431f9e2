"""The rows of the fleet's page: numbers, which the browser sorts and formats, and alarms with their sentences."""

import math
from typing import Any

from ...common import durations
from ..monitoring import alarms
from ..monitoring.words import last_decision
from .unit import Unit, amount, rounded

FINE = len(alarms.KINDS)  # severity of a device without an alarm
BETWEEN, WITHIN = "\x1e", "\x1f"  # two alarms, and an alarm's kind and sentence, in a cell, which must not be a list
NAMED = 3  # wasteful devices that the summary names


def of_device(device: dict[str, Any], unix_s: float, unit: Unit) -> dict[str, Any]:
    """Return the row of a device.

    Args:
        device: as report.of_device describes it.
        unix_s: the time of the description.
        unit: of the daily amounts.
    """
    state, rates, costs, excess = device["state"] or {}, device["rates"] or {}, device["costs"] or {}, device["excess"]
    kinds = [alarm["kind"] for alarm in device["alarms"]]
    a_day, error = _daily(excess, unit)
    online = _online_s(device, unix_s)
    return {
        "device": device["device"],
        "status": min((alarms.KINDS.index(kind) for kind in kinds), default=FINE),
        "alarms": BETWEEN.join(alarm["kind"] + WITHIN + alarm["text"] for alarm in device["alarms"]),
        "excess": a_day,
        "error": error,
        "cost": _digits(costs.get("own"), 3),
        "always": _digits(costs.get("always"), 3),
        "never": _digits(costs.get("never"), 3),
        "asked": _digits(rates.get("offloads"), 2),
        "unanswered": _digits(rates.get("fallbacks"), 2),
        "per_s": None if not rates else float(f"{rates['per_s']:.3g}"),
        "online": online,
        "online_for": "?" if online is None else "no" if online < 0 else durations.in_words(online),
        "last": last_decision(state) if state else "",
        "model": state.get("model"),
        "energy": None if state.get("energy_mj") is None else round(state["energy_mj"] / 1000, 1),
    }


def matches(row: dict[str, Any], pattern: str, kinds: set[str]) -> bool:
    """Whether a row holds a text, and has one of some kinds of alarms; an empty text or set leaves every row."""
    if kinds and not kinds & kinds_of(row):
        return False
    words = f"{row['device']} {row['alarms']} {row['last']}"
    return pattern.lower() in words.lower()


def kinds_of(row: dict[str, Any]) -> set[str]:
    """The kinds of a row's alarms."""
    return {alarm.partition(WITHIN)[0] for alarm in row["alarms"].split(BETWEEN) if alarm}


def total(devices: list[dict[str, Any]], unit: Unit) -> str:
    """Sentences: what the fleet costs a day against the best simple choices, and who wastes most. "" where nothing is known."""
    judged = [
        device
        for device in devices
        if device["online"] is not False and device["excess"] and device["excess"]["a_day"] is not None
    ]
    if not judged:
        return ""
    a_day = sum(device["excess"]["a_day"] for device in judged) * unit.worth
    error = math.hypot(*(device["excess"]["a_day_error"] for device in judged)) * unit.worth
    value, error = rounded(a_day, error)
    words = f"{amount(abs(value))} ± {amount(error)} {unit.name} a day"
    verb, direction = ("costs", "more than") if a_day > 0 else ("saves", "against")
    sentence = f"The fleet {verb} {words} {direction} the best simple choice of each device."
    wasteful = [device for device in judged if any(alarm["kind"] == "dearer" for alarm in device["alarms"])]
    wasteful.sort(key=lambda device: -device["excess"]["a_day"])
    names = [f"{device['device']} {amount(_daily(device['excess'], unit)[0] or 0.0)}" for device in wasteful[:NAMED]]
    return sentence + (f" Wasted a day: {', '.join(names)}{', ...' * (len(wasteful) > NAMED)}." if names else "")


def _daily(excess: dict[str, Any] | None, unit: Unit) -> tuple[float | None, float | None]:
    """A daily excess and its error in a unit; (None, None) where it is not known."""
    if not excess or excess["a_day"] is None:
        return None, None
    return rounded(excess["a_day"] * unit.worth, excess["a_day_error"] * unit.worth)


def _digits(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _online_s(device: dict[str, Any], unix_s: float) -> float | None:
    """Seconds since when a device is online, as exact as they are shown.

    -1: it is not online; None: nobody knows.
    """
    if device["online"] is None or (device["online"] and not device["since"]):
        return None
    if not device["online"]:
        return -1
    number, unit = durations.rounded(unix_s - device["since"])
    return number * durations.SECONDS[unit]

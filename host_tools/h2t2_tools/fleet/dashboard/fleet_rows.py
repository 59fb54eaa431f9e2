"""The rows of the fleet's page: numbers, which the browser sorts and formats, and alarms with their sentences."""

from typing import Any

from ...common import durations
from ..monitoring import alarms
from ..monitoring.savings import CHOICES
from ..monitoring.unit import Unit, rounded
from ..monitoring.words import last_decision

FINE = len(alarms.KINDS)  # severity of a device without an alarm
BETWEEN, WITHIN = "\x1e", "\x1f"  # two alarms, and an alarm's kind and sentence, in a cell, which must not be a list


def of_device(device: dict[str, Any], unix_s: float, unit: Unit) -> dict[str, Any]:
    """Return the row of a device.

    Args:
        device: as report.of_device describes it.
        unix_s: the time of the description.
        unit: of amounts.
    """
    state, rates, costs, saved = (device[name] or {} for name in ("state", "rates", "costs", "saved"))
    kinds = [alarm["kind"] for alarm in device["alarms"]]
    online = _online_s(device, unix_s)
    return {
        "device": device["device"],
        "status": min((alarms.KINDS.index(kind) for kind in kinds), default=FINE),
        "alarms": BETWEEN.join(alarm["kind"] + WITHIN + alarm["text"] for alarm in device["alarms"]),
        **_savings(saved, unit),
        "cost": _digits(costs.get("own"), 3),
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


def _savings(saved: dict[str, Any], unit: Unit) -> dict[str, float | None]:
    """What a device saved against each simple choice, with the interval, in a unit; None where it is not known."""
    cells: dict[str, float | None] = {}
    for choice in CHOICES:
        saving = saved.get(choice)
        values = rounded(saving["amount"] * unit.worth, saving["interval"] * unit.worth) if saving else (None, None)
        cells[choice], cells[f"{choice}_interval"] = values
    return cells


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

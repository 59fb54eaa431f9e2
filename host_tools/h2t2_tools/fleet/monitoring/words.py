"""What people read of a device's state, on pages and in terminals: its prices, its link, its last decision."""

from typing import Any

from h2t2.core.numbers import ONE

from ...common import event

PRICES = {"beta": "price of asking", "delta_fp": "cost of a false alarm", "delta_fn": "cost of a missed event"}
ANSWERED = "up"  # the link of a device whose workers answer
LINKS = {
    ANSWERED: "the workers of its model answer",
    "nobody": "no worker serves its model: start h2t2 rdl",
    "silent": "its remote model does not answer",
    "down": "it cannot reach the broker",
}
# how a decision came about, by its source: in a table, and in a sentence
ORIGINS = ("alone", "asked", "no answer")  # of a decision


def prices_by_event(class_names: list[str] | None) -> dict[str, str]:
    """Name the prices, capitalised; a miss by the event of two named classes."""
    prices = {key: name.capitalize() for key, name in PRICES.items()}
    if class_names and len(class_names) == 2:
        prices["delta_fn"] = f"Cost of a missed {class_names[1]}"
    return prices


def link(state: dict[str, Any]) -> str:
    """Say how a device reaches the remote model."""
    return LINKS.get(state["link"], state["link"]) or "it has not told its link"


def event_in_words(state: dict[str, Any]) -> str:
    """Say which class a device watches for, and what its mistakes cost; "" of three classes or more, or without costs.

    state: as report.of_device describes it.
    """
    if state["classes"] != 2 or state["delta_fp"] is None or state["delta_fn"] is None:
        return ""
    name = (state["class_names"] or ["class 0", "class 1"])[1]
    return event.in_words(name, round(state["delta_fp"] / ONE, 4), round(state["delta_fn"] / ONE, 4))


def last_decision(state: dict[str, Any]) -> str:
    """Say what a device decided last, and who decided it: the class, by its name if it has one; "" before the first decision.

    state: as report.of_device describes it.
    """
    if state["last"] is None:
        return ""
    _, decision, source = state["last"]
    names = state["class_names"] or []
    label = names[decision] if 0 <= decision < len(names) else f"class {decision}"
    return f"{label}, {ORIGINS[source]}" if 0 <= source < len(ORIGINS) else str(label)

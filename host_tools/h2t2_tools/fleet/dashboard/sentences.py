"""Sentences for people: the lines of a device's log, and what a comparison shows."""

from typing import Any

from h2t2.core.numbers import ONE

from ...common import durations
from ...common.untrusted import parse_json
from ..monitoring.costs import Costs
from ..monitoring.intervals import Comparison, Interval, Z
from ..monitoring.words import PRICES

SIMPLE = {
    "snapshot": "operator told it to save what it has learned",
    "reset": "operator told it to forget what it has learned",
    "prior": "operator gave it another table to start from",
}


def of_line(line: dict[str, Any]) -> str:
    """A line of the log as a sentence."""
    kind, text = line["kind"], line["text"]
    if kind == "command":
        return _command(text)
    if kind == "answer":
        return _answer(text)
    if kind == "restart":
        return f"it started anew, because of: {text}" if text else "it started anew"
    if kind == "update":
        counter, _, result = text.partition(" ")
        place = f"update {counter} came into force" if counter != "0" else "it went back to the model that was flashed"
        return f"{place}: {result}" if result else place
    if kind == "alarm":
        name, _, reason = text.partition(": ")
        return f"alarm '{name}' is over" if reason == "over" else f"alarm '{name}': {reason}"
    return str(text)


def _command(text: str) -> str:
    content = _object(text)
    settings = content.get("set")
    if isinstance(settings, dict):
        parts = [
            f"the {PRICES[key]} to {value / ONE:.2f}" for key, value in settings.items() if key in PRICES and _is_q15(value)
        ]
        if "costs" in settings:
            parts.append("the costs of wrong answers")
        if parts:
            return f"operator set {', '.join(parts)}"
    pause = content.get("pause")
    if type(pause) is int:
        return f"operator paused asking for {durations.in_words(pause)}" if pause else "operator ended the pause"
    for name, sentence in SIMPLE.items():
        if name in content or text.startswith(f'{{"{name}"'):  # a long one is cut
            return sentence
    return f"somebody sent a command that is not one of ours: {text}"


def _answer(text: str) -> str:
    content = _object(text)
    note = str(content.get("why") or "")
    if content.get("ok") is True:
        return f"it carried the command out, and notes: {note}" if note else "it carried the command out"
    if content.get("ok") is False:
        return f"it refused the command: {note}"
    return f"it answered: {text}"


def _object(text: str) -> dict[str, Any]:
    """The JSON object in a text; {} for anything else."""
    try:
        content = parse_json(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _is_q15(value: Any) -> bool:
    return type(value) is int and 0 <= value <= ONE


def of_costs(costs: Costs | None, period: str) -> str:
    """What the samples of a period cost, beside the two simple choices."""
    if costs is None:
        return f"No answer of {period} tells what its decisions cost."
    own = f"In {period} a sample cost {costs.own:.3f} ± {Z * costs.error:.3f}"
    return f"{own}; always asking would have cost {costs.always:.3f}, never asking {costs.never:.3f}."


def of_comparison(comparison: Comparison | None, event: str) -> str:
    """Whether an event changed the costs. event: what happened, as the subject of a sentence."""
    if comparison is None:
        return "Nothing can be compared: on one side of this time no answer tells what its decisions cost."
    sides = (("before", comparison.before), ("after", comparison.after))
    parts = [_side(name, interval) for name, interval in sides]
    change = f"{abs(comparison.change):.3f} ± {Z * comparison.error:.3f}"
    if not comparison.is_certain:
        verdict = f"no change can be told: {comparison.change:+.3f} ± {Z * comparison.error:.3f} a sample"
    elif comparison.change < 0:
        verdict = f"{event} helped: a sample costs {change} less"
    else:
        verdict = f"{event} did harm: a sample costs {change} more"
    return f"{verdict[0].upper()}{verdict[1:]}. {parts[0]}, {parts[1]}."


def _side(name: str, interval: Interval) -> str:
    costs = interval.costs
    assert costs
    portion = interval.offloads / max(1, interval.samples)
    length = durations.in_words(max(1.0, interval.ended - interval.began))
    return (
        f"{length} {name}: {costs.own:.3f} ± {Z * costs.error:.3f} a sample ({interval.samples:,} samples, asked {portion:.0%})"
    )

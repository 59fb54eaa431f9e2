"""What a day cost: the gate beside rules that need no policy, for each stream."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from h2t2_tools.common.report import Table
from h2t2_tools.fleet.home_assistant import figures
from h2t2_tools.fleet.monitoring.state import parse_state

from .days import Day, Sample
from .entities import entities
from .play import Played

TOTAL = "all"
Row = dict[str, Any]


def measured(day: Day, played: Played) -> dict[str, Any]:
    """What a page and a report show of a day.

    Returns:
        JSON: "rows" for each stream and for all together, "costs", "threshold", "topic", "message", "decisions" (an example of
        each source), "entities", "configuration", "twice" and "undecided" (numbers of messages).
    """
    decisions = {decision["id"]: decision for _, decision in played.decisions}
    by_stream = {key: [sample for sample in played.samples if sample.stream == key] for key in day.streams}
    rows = [_row(key, samples, decisions, day) for key, samples in by_stream.items()]
    total = _row(TOTAL, played.samples, decisions, day)
    total["best"] = sum(row["best"] * row["messages"] for row in rows) / total["messages"]  # each stream with its own pair
    counts = played.counts.values()
    topic, message = played.message
    played_state = parse_state(json.dumps(played.state).encode())
    examples = {decision["source"]: decision for _, decision in played.decisions}  # the last of each source
    return {
        "rows": [*rows, total],
        "costs": asdict(day.costs),
        "threshold": day.threshold,
        "topic": topic,
        "message": message,
        "decisions": examples,
        "entities": entities(played.discovery, {**played.state, **json.loads(figures(played_state))}),
        "configuration": played.configuration,
        "twice": sum(count > 1 for count in counts),
        "undecided": sum(count == 0 for count in counts),
    }


def _row(stream: str, samples: list[Sample], decisions: dict[str, Any], day: Day) -> Row:
    """The costs of one stream, or of all."""
    costs = day.costs
    scores, events = [sample.score for sample in samples], [sample.is_event for sample in samples]
    decided = [(sample, decisions[sample.identity]) for sample in samples if sample.identity in decisions]
    offloaded = [decision["source"] == "remote" for _, decision in decided]
    decision_costs = [
        costs.of(bool(d["decision"]), sample.is_event, question) for (sample, d), question in zip(decided, offloaded)
    ]
    outcomes = [(sample.is_event, bool(d["decision"])) for sample, d in decided]
    return {
        "stream": stream,
        "messages": len(samples),
        "events": sum(events),
        "gate": sum(decision_costs) / max(1, len(decision_costs)),
        "asked": sum(offloaded) / max(1, len(offloaded)),
        "missed": sum(event and not decision for event, decision in outcomes),
        "false": sum(decision and not event for event, decision in outcomes),
        "always": costs.beta,
        "never": costs.of_threshold(scores, events, 0.5),
        "threshold": None if day.threshold is None else costs.of_threshold(scores, events, day.threshold),
        "best": costs.of_best_pair(scores, events),
    }


def table(preset: str, measured: dict[str, Any]) -> Table:
    """The costs as a table. `best thresholds`: of each stream, chosen after the day with the true labels."""
    threshold, costs = measured["threshold"], measured["costs"]
    words = f"beta {costs['beta']:g}, false alarm {costs['delta_fp']:g}, miss {costs['delta_fn']:g}"
    columns: dict[str, Callable[[Row], str]] = {
        "messages": lambda row: f"{row['messages']:,}",
        "events": lambda row: f"{row['events']:,}",
        "asked": lambda row: f"{row['asked']:.0%}",
        "gate": lambda row: f"{row['gate']:.3f}",
        "always ask": lambda row: f"{row['always']:.3f}",
        "threshold 0.5": lambda row: f"{row['never']:.3f}",
        f"threshold {threshold:g}" if threshold else "": lambda row: f"{row['threshold']:.3f}",
        "best thresholds": lambda row: f"{row['best']:.3f}",
    }
    columns.pop("", None)
    sides = {"stream": "left", **dict.fromkeys(columns, "right")}
    rows = [[row["stream"], *(cell(row) for cell in columns.values())] for row in measured["rows"]]
    return Table(f"{preset}: mean cost of a message; {words}", sides, rows, [*columns][:2])

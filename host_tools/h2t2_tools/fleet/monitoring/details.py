"""What `h2t2 fleet NAME` and the page of a device show of it, in people's words and units. `--json -` holds every number."""

from typing import Any

from h2t2.core.numbers import ONE

from ...common import durations
from ...common.report import Report, Table
from . import answer_lifetime, fleet_report, savings, words
from .intervals import Z
from .unit import DEFAULT, Unit
from .waits import quantile

COLUMNS = {"what": "left", "value": "left"}


def of_device(device: dict[str, Any], unix_s: float) -> Report:
    """A table of a device, and a sentence for each alarm.

    Args:
        device: as report.of_device describes it.
        unix_s: the time of the description.
    """
    table = Table(device["device"], COLUMNS, facts(device, unix_s))
    return [table, *(f"{alarm['kind']}: {alarm['text']}" for alarm in device["alarms"])]


def facts(device: dict[str, Any], unix_s: float, unit: Unit = DEFAULT) -> list[list[str]]:
    """[name, value in words] of each figure of a device that has one. Arguments as of of_device(); unit: of its costs."""
    rows = [
        ["online", fleet_report.online(device, unix_s)],
        ["starts within an hour", f"{device['restarts']} more than the first"],
    ]
    state = device["state"]
    if state is None:
        rows.append(["state", "it has not published a state yet"])
    else:
        rows += [*_money(device, unit), *_counts(device), *_decisions(state), *_upkeep(state)]
    return [row for row in rows if row[1]]


def _money(device: dict[str, Any], unit: Unit) -> list[list[str]]:
    """What it costs, and what its user says that things cost."""
    costs, state = device["costs"], device["state"]
    rows = [["saved so far", savings.in_words(device["saved"], unit)]]
    if costs:
        rows.append(["cost a sample", f"{costs['own']:.3f} ± {Z * costs['error']:.3f} since its start"])
        rows.append(["", f"asking always would cost {costs['always']:.3f}, asking never {costs['never']:.3f}"])
    prices = (("asking", state["beta"]), ("a false alarm", state["delta_fp"]), ("a missed event", state["delta_fn"]))
    rows.append(["prices", ", ".join(f"{label} {value / ONE:.2f}" for label, value in prices if value is not None)])
    return rows


def _counts(device: dict[str, Any]) -> list[list[str]]:
    """How many samples it decided, and what became of its questions."""
    state, rates = device["state"], device["rates"]
    rate = f", {rates['per_s']:.3g} a second" if rates else ""
    portion = f" ({state['offloads'] / state['samples']:.0%})" if state["samples"] else ""
    rows = [
        ["samples", f"{state['samples']:,} since its start{rate}"],
        ["asked", f"{state['offloads']:,}{portion}: {state['replies']:,} answered, {state['fallbacks']:,} not in time"],
        ["could not ask", f"{fleet_report.not_offloaded(state):,}, of them {state['unaffordable']:,} with an empty budget"],
    ]
    if state["queued"] or state["queue_dropped"]:
        rows.append(["waits to be asked", f"{state['queued']:,} samples; {state['queue_dropped']:,} were dropped"])
    answers = state["waits"]
    if answers and sum(answers):
        median, limit = (quantile(answers, share) or 0.0 for share in (0.5, 0.95))
        rows.append(["answers took", f"{median:.0f} ms at the median, at most {limit:.0f} ms for 95 %"])
    return rows


def _decisions(state: dict[str, Any]) -> list[list[str]]:
    """How it decides."""
    head = "" if state["head_share"] is None else f", its head has {state['head_share'] / ONE:.0%} of the weight"
    head_saved = fleet_report.head_saved(state)
    misses = "" if state["miss_rate"] is None else f"{state['miss_rate'] / ONE:.2%} of the events, as its labels show"
    return [
        ["last decision", words.last_decision(state)],
        ["event", words.event_in_words(state).removeprefix("Event: ")],
        ["classes", ", ".join(state["class_names"] or []) or str(state["classes"])],
        ["policy", f"{state['policy']}{head}" if state["policy"] else ""],
        ["saved by the head", "" if head_saved is None else f"about {head_saved:.4f} a sample since its start"],
        ["its past", answer_lifetime.sentence(state)],
        ["missed", misses],
        ["remote model", f"number {state['model']}: {words.link(state)}"],
        ["budget", f"{state['budget']} % of the bucket" if state["budget"] < 100 else ""],
        ["paused", "it asks nothing until the pause ends" if state["paused"] else ""],
    ]


def _upkeep(state: dict[str, Any]) -> list[list[str]]:
    """Its trouble, its programs and its memory."""
    update = state["update"]
    errors = (("sensor", state["sensor_errors"]), ("actuator", state["act_errors"]), ("others", state["errors"]))
    age = durations.in_words(state["snapshot_age_s"]) + " ago" if state["snapshot_age_s"] >= 0 else ""
    return [
        ["exceptions", ", ".join(f"{label} {count:,}" for label, count in errors if count) or "none"],
        ["far outside the calibration", f"{state['saturated']:,} samples" if state["saturated"] else ""],
        ["runs", f"for {durations.in_words(state['uptime_s'])}, runtime {state['runtime'] or 'unknown'}"],
        ["started because of", state["start"]],
        ["update", f"package {update['counter']} in force; {update['said'] or 'none has been tried'}" if update else ""],
        ["learned state saved", age],
        ["energy", "" if state["energy_mj"] is None else f"{state['energy_mj'] / 1000:,.1f} J"],
    ]

"""A fleet as metrics for Prometheus: names and units by its conventions, made anew whenever it asks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from h2t2.core.numbers import ONE

from . import alarms, report
from .follower import Follower

# of a device, its state's key -> (metric, help)
COUNTERS = {
    "samples": ("h2t2_node_samples", "Samples decided"),
    "offloads": ("h2t2_node_offloads", "Samples asked of the remote model"),
    "replies": ("h2t2_node_replies", "Answers that decided and taught"),
    "late": ("h2t2_node_late_replies", "Answers that came after the decision, and taught"),
    "fallbacks": ("h2t2_node_fallbacks", "Offloads decided locally after all"),
    "unasked": ("h2t2_node_unasked", "Samples decided without the policy: paused, or nobody to ask"),
    "unaffordable": ("h2t2_node_unaffordable", "Samples decided without the policy: the budget was spent"),
    "crowded": ("h2t2_node_crowded", "Samples decided without asking: the window was full, or their time over"),
    "saturated": ("h2t2_node_saturated", "Samples with a number far outside the calibration"),
    "strangers": ("h2t2_node_strangers", "Replies refused"),
    "complaints": ("h2t2_node_complaints", "Troubles met"),
    "errors": ("h2t2_node_errors", "Exceptions caught"),
    "sensor_errors": ("h2t2_node_sensor_errors", "Exceptions of the sensor"),
    "act_errors": ("h2t2_node_act_errors", "Exceptions of what acts on decisions"),
    "skipped": ("h2t2_node_skipped_slots", "Slots of the schedule that nobody had time for"),
}
WORKER = ["model", "worker", "host"]


class FleetCollector(Collector):
    """What the follower knows at the moment."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def describe(self) -> Iterable[Metric]:
        return []  # nothing is known before the broker has told it

    def collect(self) -> Iterator[Metric]:
        now = time.time()
        with self._follower.fleet() as fleet:
            seen = report.of_fleet(fleet, now)
        yield GaugeMetricFamily("h2t2_broker_up", "Whether the broker is connected", int(not self._follower.trouble))
        yield CounterMetricFamily("h2t2_refused_messages", "Messages that made no sense", seen["unread"])
        yield from _devices(seen["devices"], now)
        yield from _workers(seen["workers"])


def _devices(devices: list[dict[str, Any]], now: float) -> Iterator[Metric]:
    online = GaugeMetricFamily("h2t2_node_online", "Whether it is connected, as its status says", labels=["device"])
    info = GaugeMetricFamily(
        "h2t2_node_info", "What it runs; always 1", labels=["device", "policy", "model", "runtime", "link", "start"]
    )
    alarm = GaugeMetricFamily("h2t2_node_alarm", "Whether it has this alarm", labels=["device", "kind"])
    cost = GaugeMetricFamily(
        "h2t2_node_sample_cost_ratio", "Cost a sample since its start, 0 to 1, estimated", labels=["device", "of"]
    )
    beta = GaugeMetricFamily("h2t2_node_offload_cost_ratio", "The cost of an offload in force, 0 to 1", labels=["device"])
    uptime = GaugeMetricFamily("h2t2_node_uptime_seconds", "Since its start", labels=["device"])
    heard = GaugeMetricFamily("h2t2_node_heard_age_seconds", "Since its last word", labels=["device"])
    energy = CounterMetricFamily("h2t2_node_energy_joules", "What a board that sleeps has taken", labels=["device"])
    waits = HistogramMetricFamily("h2t2_node_answer_seconds", "How long answers took", labels=["device"])
    counters = {key: CounterMetricFamily(name, text, labels=["device"]) for key, (name, text) in COUNTERS.items()}
    for one in devices:
        name, state = one["device"], one["state"]
        if one["online"] is not None:
            online.add_metric([name], int(one["online"]))
        kinds = {entry["kind"] for entry in one["alarms"]}
        for kind in alarms.KINDS:
            alarm.add_metric([name, kind], int(kind in kinds))
        if one["heard"]:
            heard.add_metric([name], now - one["heard"])
        if state is None:
            continue
        info.add_metric([name, *(str(state[key]) for key in ("policy", "model", "runtime", "link", "start"))], 1)
        for key, family in counters.items():
            family.add_metric([name], state[key])
        if state["beta"] is not None:
            beta.add_metric([name], state["beta"] / ONE)
        uptime.add_metric([name], state["uptime_s"])
        if state["energy_mj"] is not None:
            energy.add_metric([name], state["energy_mj"] / 1000)
        if one["costs"]:
            for which in ("own", "always", "never"):
                cost.add_metric([name, which], one["costs"][which])
        if state["waits"]:
            waits.add_metric([name], _buckets(state["waits"]), None)
    yield from (online, info, alarm, cost, beta, uptime, heard, energy, waits, *counters.values())


def _workers(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    info = GaugeMetricFamily("h2t2_worker_info", "What it serves; always 1", labels=[*WORKER, "source", "version"])
    waiting = GaugeMetricFamily("h2t2_worker_waiting_requests", "Requests in its queue", labels=WORKER)
    each = GaugeMetricFamily("h2t2_worker_model_seconds", "What its model takes a request", labels=WORKER)
    uptime = GaugeMetricFamily("h2t2_worker_uptime_seconds", "Since its start", labels=WORKER)
    replies = CounterMetricFamily("h2t2_worker_replies", "Requests by what became of them", labels=[*WORKER, "status"])
    waits = HistogramMetricFamily("h2t2_worker_answer_seconds", "From a request's coming to its answer", labels=WORKER)
    for one in workers:
        state = one["state"]
        if state is None:
            continue
        who = [str(one["model"]), one["worker"], state["host"]]
        info.add_metric([*who, state["source"], state["version"]], 1)
        waiting.add_metric(who, state["waiting"])
        each.add_metric(who, state["each_ms"] / 1000)
        uptime.add_metric(who, state["uptime_s"])
        for status, n in state["replies"].items():
            replies.add_metric([*who, status], n)
        waits.add_metric(who, _buckets(state["waits"]), None)
    yield from (info, waiting, each, uptime, replies, waits)


def _buckets(waits: list[int]) -> list[tuple[str, float]]:
    """Cumulated, in seconds; nobody has summed the times themselves."""
    total, made = 0, []
    for n, count in enumerate(waits):
        total += count
        made.append(("+Inf" if n == len(waits) - 1 else repr((1 << n) / 1000), float(total)))
    return made

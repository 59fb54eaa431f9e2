"""A fleet as metrics for Prometheus, with names and units by its conventions, computed at every scrape."""

import time
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from h2t2.core.numbers import ONE

from ...common import places, toml_file
from . import alarms, fleet_report
from .follower import Follower
from .savings import CHOICES

# entry of a device's state -> (metric, help)
COUNTERS = toml_file.read_entries(places.PACKAGE / "fleet/monitoring/counters.toml")
WORKER = ["model", "worker", "host"]
# entry of a saving, end of its metric's name, and what it is; the dearest mistake costs 1
SAVED = (
    ("amount", "cost", "Cost saved"), ("interval", "interval_cost", "Half of the 95 % interval of the cost saved"),
    ("share", "ratio", "Share of the cost saved"),
)  # fmt: skip


class FleetCollector(Collector):
    """The follower's fleet at the moment of a scrape."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def describe(self) -> Iterable[Metric]:
        return []  # the fleet is unknown before the first message

    def collect(self) -> Iterator[Metric]:
        unix_s = time.time()
        with self._follower.fleet() as fleet:
            report_json = fleet_report.of_fleet(fleet, unix_s)
        yield GaugeMetricFamily("h2t2_broker_up", "Whether the broker is connected", int(not self._follower.trouble))
        yield CounterMetricFamily("h2t2_refused_messages", "Invalid messages", report_json["unread"])
        yield from _devices(report_json["devices"], unix_s)
        yield from _saved(report_json["devices"])
        yield from _workers(report_json["workers"])


def _devices(devices: list[dict[str, Any]], unix_s: float) -> Iterator[Metric]:
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
    message_age = GaugeMetricFamily("h2t2_node_heard_age_seconds", "Since its last message", labels=["device"])
    energy = CounterMetricFamily("h2t2_node_energy_joules", "Energy of a board that sleeps", labels=["device"])
    waits = HistogramMetricFamily("h2t2_node_answer_seconds", "How long answers took", labels=["device"])
    counters = {key: CounterMetricFamily(name, text, labels=["device"]) for key, (name, text) in COUNTERS.items()}
    for device in devices:
        name, state = device["device"], device["state"]
        if device["online"] is not None:
            online.add_metric([name], int(device["online"]))
        kinds = {entry["kind"] for entry in device["alarms"]}
        for kind in alarms.KINDS:
            alarm.add_metric([name, kind], int(kind in kinds))
        if device["heard"]:
            message_age.add_metric([name], unix_s - device["heard"])
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
        if device["costs"]:
            for which in ("own", "always", "never"):
                cost.add_metric([name, which], device["costs"][which])
        if state["waits"]:
            waits.add_metric([name], _buckets(state["waits"]), None)
    yield from (online, info, alarm, cost, beta, uptime, message_age, energy, waits, *counters.values())


def _saved(devices: list[dict[str, Any]]) -> Iterator[Metric]:
    for key, unit, text in SAVED:
        family = GaugeMetricFamily(f"h2t2_node_saved_{unit}", f"{text} since its start", labels=["device", "against"])
        for device in devices:
            for choice in CHOICES if device["saved"] else ():
                saving = device["saved"][choice]
                if saving and saving[key] is not None:
                    family.add_metric([device["device"], choice], saving[key])
        yield family


def _workers(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    info = GaugeMetricFamily("h2t2_worker_info", "What it serves; always 1", labels=[*WORKER, "source", "version"])
    waiting = GaugeMetricFamily("h2t2_worker_waiting_requests", "Requests in its queue", labels=WORKER)
    each = GaugeMetricFamily("h2t2_worker_model_seconds", "What its model takes a request", labels=WORKER)
    uptime = GaugeMetricFamily("h2t2_worker_uptime_seconds", "Since its start", labels=WORKER)
    replies = CounterMetricFamily("h2t2_worker_replies", "Requests by what became of them", labels=[*WORKER, "status"])
    waits = HistogramMetricFamily("h2t2_worker_answer_seconds", "From a request's coming to its answer", labels=WORKER)
    for worker in workers:
        state = worker["state"]
        if state is None:
            continue
        who = [str(worker["model"]), worker["worker"], state["host"]]
        info.add_metric([*who, state["source"], state["version"]], 1)
        waiting.add_metric(who, state["waiting"])
        each.add_metric(who, state["each_ms"] / 1000)
        uptime.add_metric(who, state["uptime_s"])
        for status, n in state["replies"].items():
            replies.add_metric([*who, status], n)
        waits.add_metric(who, _buckets(state["waits"]), None)
    yield from (info, waiting, each, uptime, replies, waits)


def _buckets(waits: list[int]) -> list[tuple[str, float]]:
    """Cumulative buckets, in seconds; the sum of the times is unknown."""
    bounds = [*(repr((1 << n) / 1000) for n in range(len(waits) - 1)), "+Inf"]
    return [(bound, float(total)) for bound, total in zip(bounds, accumulate(waits))]

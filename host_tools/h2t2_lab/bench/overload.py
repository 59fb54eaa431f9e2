"""`h2t2-lab bench overload`: offers a remote model more requests than it can answer, and counts timely answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from h2t2.link import wire
from h2t2.link.mqtt import MqttLink
from h2t2.link.statuses import STATUS
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import serving

from . import Progress, Row, Time, cell, table, with_goals

TITLE = "Overload"
DEADLINE_MS = 2000
MODEL, SIZE = 1, 30
LOADS = (1.2, 2.0, 4.0)  # as multiples of the capacity
OF_CAPACITY, OF_THE_QUIET = 0.85, 0.95  # goals
QUIET, QUIET_RATE, LOUD_RATE = 20, 2.0, 400.0


def measure(progress: Progress, seconds: Time = 8.0, devices: Count = 50) -> dict[str, Any]:
    """Send more requests than a remote model can answer. It counts the answers in time, and whether one device starves others.

    Args:
        seconds: time of each measurement, after the same time in which the queue grows to its full length
        devices: devices that share a load

    Returns:
        {"capacity", "devices", "loads": a row for each load, "fair": {"quiet": a row, "loud": a row}}; counts per second.
    """
    model = f"{Path(__file__).parent / 'slow_model.py'}:scores"
    with broker.running("mosquitto") as url:
        arguments = ["--broker", url, "--remote", model, "--model-id", str(MODEL)]
        with serving(arguments), _Fleet(*broker.parse(url), max(devices, QUIET) + 1) as fleet:
            progress("capacity")
            as_answered = [0.0] * devices
            capacity = _per_second(fleet.offer(as_answered, seconds / 2, seconds / 2), seconds / 2)["in time"]
            loads = []
            for load in LOADS:
                progress(f"{load:g} times the capacity, {devices} devices")
                rows = fleet.offer([load * capacity / devices] * devices, seconds, seconds)
                loads.append({"load": load, **_per_second(rows, seconds)})
            progress(f"{QUIET} devices at {QUIET_RATE:g}/s beside one at {LOUD_RATE:g}/s")
            loud, *quiet = fleet.offer([LOUD_RATE] + [QUIET_RATE] * QUIET, seconds, seconds)
    fair = {"quiet": _per_second(quiet, seconds), "loud": _per_second([loud], seconds)}
    return {"capacity": capacity, "devices": devices, "loads": loads, "fair": fair}


def _per_second(rows: list[dict[str, float]], seconds: float) -> dict[str, float]:
    return {outcome: sum(row[outcome] for row in rows) / seconds for outcome in rows[0]}


def broken(measured: dict[str, Any]) -> list[str]:
    """Return the missed goals."""
    missed = []
    for row in measured["loads"]:
        share = row["in time"] / measured["capacity"]
        if share < OF_CAPACITY:
            missed.append(
                f"at {row['load']:g} times the capacity the worker answers {share:.0%} of it in time, not {OF_CAPACITY:.0%}"
            )
    quiet = measured["fair"]["quiet"]
    share = quiet["in time"] / quiet["offered"]
    if share < OF_THE_QUIET:
        missed.append(
            f"beside one at {LOUD_RATE:g}/s, {QUIET} devices get {share:.0%} of their answers, not {OF_THE_QUIET:.0%}"
        )
    return missed


def report(measured: dict[str, Any]) -> Report:
    """Return a line for each load, then the quiet devices and the loud one beside them."""
    rows: list[Row] = [
        {
            **row,
            "name": f"{row['load']:g} times capacity, {measured['devices']} devices",
            "share": f"{row['in time'] / measured['capacity']:.0%} of capacity",
            "goal": f"{OF_CAPACITY:.0%}",
        }
        for row in measured["loads"]
    ]
    quiet, loud = measured["fair"]["quiet"], measured["fair"]["loud"]
    share = f"{quiet['in time'] / quiet['offered']:.0%} of theirs"
    name = f"{QUIET} devices at {QUIET_RATE:g}/s each, beside"
    rows.append({**quiet, "name": name, "share": share, "goal": f"{OF_THE_QUIET:.0%}"})
    rows.append({**loud, "name": f"one at {LOUD_RATE:g}/s", "share": "", "goal": ""})
    columns = {
        "load": cell("name"),
        "offered/s": cell("offered", ".0f"),
        "in time/s": cell("in time", ".0f"),
        "refused as busy/s": cell("busy", ".0f"),
        "late/s": cell("late", ".0f"),
        "share": cell("share"),
        "goal": cell("goal"),
    }
    title = f"a model of {measured['capacity']:.0f}/s, one worker, answers useful for {DEADLINE_MS} ms"
    return with_goals([table(title, rows, columns)], broken(measured))


class _Fleet:
    """Devices with a connection each, driven by one thread."""

    def __init__(self, host: str, port: int, devices: int) -> None:
        self._links = [MqttLink(host, port, f"overload-{n}", MODEL, n + 1, deadline_ms=10000) for n in range(devices)]
        self._sequence = 0

    def __enter__(self) -> _Fleet:
        for link in self._links:
            link.open()
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links:
            link.close()

    def offer(self, rates: list[float], warm: float, seconds: float) -> list[dict[str, float]]:
        """Count the outcomes of the requests that are sent within `seconds`, after `warm` seconds of the same load.

        Args:
            rates: Requests per second of each device, at even intervals; 0: the next one after each answer.
            warm: Seconds before the measurement.
            seconds: Duration of the measurement.

        Returns:
            {"offered", "in time", "busy", "late"} for each device.
        """
        counts = [{"offered": 0.0, "in time": 0.0, "busy": 0.0, "late": 0.0} for _ in rates]
        sent: list[dict[int, float]] = [{} for _ in rates]
        began = time.perf_counter()
        due = [began + n / len(rates) / (rate or 100.0) for n, rate in enumerate(rates)]
        while True:
            elapsed = time.perf_counter() - began
            asking = elapsed < warm + seconds
            if not asking and (not any(sent) or elapsed > warm + seconds + DEADLINE_MS / 1000):
                break
            for n, rate in enumerate(rates):
                at = time.perf_counter()
                if asking and (at >= due[n] if rate else not sent[n]):
                    due[n] += 1 / rate if rate else 0.0
                    self._sequence += 1
                    payload = wire.encode_request(MODEL, n + 1, self._sequence, (SIZE,), bytes(SIZE), remaining_ms=DEADLINE_MS)
                    if self._links[n].send(payload):
                        sent[n][self._sequence] = at
                        counts[n]["offered"] += at - began >= warm
                self._receive(n, sent[n], counts[n], began + warm)
            for out in sent:  # requests that were never answered
                for sequence in [number for number, at in out.items() if time.perf_counter() - at > DEADLINE_MS / 1000]:
                    out.pop(sequence)
        for row in counts:
            row["late"] = row["offered"] - row["in time"] - row["busy"]
        return counts

    def _receive(self, n: int, sent: dict[int, float], counts: dict[str, float], counted: float) -> None:
        while (payload := self._links[n].receive(0)) is not None:
            status, _, sequence, _, _ = wire.decode_reply(payload)
            at = sent.pop(sequence, None)
            if at is None or at < counted:
                continue
            if status == wire.BUSY:
                counts["busy"] += 1
            elif status == wire.OK:
                counts["in time"] += time.perf_counter() - at <= DEADLINE_MS / 1000
            else:
                raise Failure(f"the worker answers: {STATUS[status]}")

"""`h2t2 bench overload`: more requests than a remote model can answer, through one Mosquitto: who is answered in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from h2t2.link import wire
from h2t2.link.mqtt import MqttLink

from ...common.errors import Failure
from ...common.report import Report, Table
from ...fleet import broker
from .offload import process

TITLE = "Overload"
DEADLINE_MS = 2000
MODEL, SIZE = 1, 30
LOADS = (1.2, 2.0, 4.0)  # times the capacity
OF_CAPACITY, OF_THE_QUIET = 0.85, 0.95  # the goals
QUIET, QUIET_RATE, LOUD_RATE = 20, 2.0, 400.0


def measure(doing: Callable[[str], None], seconds: float = 8.0, devices: int = 50) -> dict[str, Any]:
    """{"capacity", "loads": a row each, "fair": {...}}; rates a second. Needs mosquitto.

    seconds: of each measurement, after as many in which the queue grows as long as it gets.
    """
    model = f"{Path(__file__).parent / 'slow_model.py'}:scores"
    with broker.running("mosquitto") as url:
        host, port = broker.parse(url)
        arguments = ["-m", "h2t2_tools", "rdl", "--broker", url, "--model", model, "--model-id", str(MODEL)]
        with process(arguments), _Fleet(host, port, devices + 1) as fleet:
            doing("capacity")
            full = [0.0] * devices  # as fast as they are answered
            capacity = sum(row["in time"] for row in fleet.offer(full, seconds / 2, seconds / 2)) / (seconds / 2)
            loads = []
            for load in LOADS:
                doing(f"{load:g} times the capacity, {devices} devices")
                rows = fleet.offer([load * capacity / devices] * devices, seconds, seconds)
                loads.append({"load": load, **{what: sum(row[what] for row in rows) / seconds for what in rows[0]}})
            doing(f"{QUIET} devices at {QUIET_RATE:g}/s beside one at {LOUD_RATE:g}/s")
            rows = fleet.offer([LOUD_RATE] + [QUIET_RATE] * QUIET, seconds, seconds)
    quiet = {what: sum(row[what] for row in rows[1:]) / seconds for what in rows[0]}
    loud = {what: rows[0][what] / seconds for what in rows[0]}
    return {"capacity": capacity, "devices": devices, "loads": loads, "fair": {"quiet": quiet, "loud": loud}}


def broken(measured: dict[str, Any]) -> list[str]:
    """The goals that are not met."""
    made = []
    for row in measured["loads"]:
        share = row["in time"] / measured["capacity"]
        if share < OF_CAPACITY:
            made.append(f"at {row['load']:g} times the capacity {share:.0%} of it are answered in time, not {OF_CAPACITY:.0%}")
    quiet = measured["fair"]["quiet"]
    share = quiet["in time"] / quiet["offered"]
    if share < OF_THE_QUIET:
        made.append(f"beside one at {LOUD_RATE:g}/s, {QUIET} devices keep {share:.0%} of their answers, not {OF_THE_QUIET:.0%}")
    return made


def report(measured: dict[str, Any]) -> Report:
    """A row a load, and the fair share."""
    columns = {"load": "left", **dict.fromkeys(("offered/s", "in time/s", "told busy/s", "late/s", "share", "goal"), "right")}
    cells = []
    for row in measured["loads"]:
        share = f"{row['in time'] / measured['capacity']:.0%} of capacity"
        name = f"{row['load']:g} times capacity, {measured['devices']} devices"
        cells.append([name, *_numbers(row), share, f"{OF_CAPACITY:.0%}"])
    fair = measured["fair"]
    share = f"{fair['quiet']['in time'] / fair['quiet']['offered']:.0%} of theirs"
    cells.append([f"{QUIET} devices at {QUIET_RATE:g}/s each, beside", *_numbers(fair["quiet"]), share, f"{OF_THE_QUIET:.0%}"])
    cells.append([f"one at {LOUD_RATE:g}/s", *_numbers(fair["loud"]), "", ""])
    title = f"a model of {measured['capacity']:.0f}/s, one worker, answers of use for {DEADLINE_MS} ms"
    return [Table(title, columns, cells), *(broken(measured) or ["every goal is met"])]


def _numbers(row: dict[str, float]) -> list[str]:
    return [f"{row[what]:.0f}" for what in ("offered", "in time", "busy", "late")]


class _Fleet:
    """So many devices with a connection each, driven by one thread."""

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
        """{"offered", "in time", "busy", "late"} of each device: of what it asked within `seconds`, after `warm` seconds.

        rates: requests a second of each, evenly; 0: the next one as soon as one is answered.
        """
        counts = [{"offered": 0.0, "in time": 0.0, "busy": 0.0, "late": 0.0} for _ in rates]
        sent: list[dict[int, float]] = [{} for _ in rates]
        began = time.perf_counter()
        due = [began + n / len(rates) / (rate or 100.0) for n, rate in enumerate(rates)]
        while True:
            now = time.perf_counter() - began
            asking = now < warm + seconds
            if not asking and (not any(sent) or now > warm + seconds + DEADLINE_MS / 1000):
                break
            for n, rate in enumerate(rates):
                at = time.perf_counter()
                if asking and (at >= due[n] if rate else not sent[n]):
                    due[n] += 1 / rate if rate else 0.0
                    self._sequence += 1
                    payload = wire.encode_request(MODEL, n + 1, self._sequence, (SIZE,), bytes(SIZE), DEADLINE_MS)
                    if self._links[n].send(payload):
                        sent[n][self._sequence] = at
                        counts[n]["offered"] += at - began >= warm
                self._take(n, sent[n], counts[n], began + warm)
            for out in sent:  # what is never answered
                for sequence in [one for one, at in out.items() if time.perf_counter() - at > DEADLINE_MS / 1000]:
                    out.pop(sequence)
        for row in counts:
            row["late"] = row["offered"] - row["in time"] - row["busy"]
        return counts

    def _take(self, n: int, sent: dict[int, float], counts: dict[str, float], counted: float) -> None:
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
                raise Failure(f"the worker answers: {wire.STATUS[status]}")

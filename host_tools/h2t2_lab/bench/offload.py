"""`h2t2-lab bench offload`: compares our link with a raw paho echo, through the same Mosquitto, in one run."""

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from h2t2.cpython.mqtt_session import make_client
from h2t2.cpython.paho import PahoLink
from h2t2.link import wire
from h2t2.link.statuses import STATUS
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import ready, serving

from .. import material
from ..boards import drive
from ..emulators import lwip
from . import Progress, Row, Time, cell, table, with_goals
from .nodes import MODEL, PAIR, Nodes, Requests

TITLE = "Round trips"
TURNS, ROUNDS = 4, 3  # a round measures all clients; the report shows the best of the rounds
LWIP = "one device (board link) on lwIP, a Pico W's network stack, window 1"
GOALS = {1: 0.7, 3: 1.2}  # row -> share of the echo's round trips
Trips = Callable[[float], list[float]]  # seconds to measure -> seconds of each round trip


def measure(progress: Progress, seconds: Time = 4.0, devices: Count = 50) -> dict[str, Any]:
    """Count round trips per second through one Mosquitto. It compares raw paho echo, our link with 1 and 8 offloads in flight,
    and 50 devices.

    Args:
        seconds: time of each kind of client, over all rounds
        devices: simulated devices, each with a connection of its own

    Returns:
        {"pair", "payload" in bytes, "devices", "rounds", "rows": {what, rate (round trips per second), p50, p99 (ms), ratio (to
        the echo)}}.
    """
    rounds: list[list[Row]] = []
    with broker.running("mosquitto") as url:
        bench = _Bench(url, devices, seconds / ROUNDS)
        for n in range(ROUNDS):

            def progress_of(step: str, n: int = n) -> None:
                progress(f"{step}, {n + 1} of {ROUNDS}")

            rows = bench.rows_of_clients(progress_of)
            rows += bench.rows_of_fleets(progress_of, rows[0]["rate"])
            rounds.append(rows)
    best = [max(rows, key=lambda row: row["ratio"]) for rows in zip(*rounds)]
    return {"pair": PAIR, "payload": len(bench.requests.encode(1)), "devices": devices, "rounds": ROUNDS, "rows": best}


class _Bench:
    """The requests of a measurement and their broker. seconds: time of each client in a round."""

    def __init__(self, url: str, devices: int, seconds: float) -> None:
        self.url, self.devices, self.seconds = url, devices, seconds
        self.host, self.port = broker.parse(url)
        self.requests = Requests()

    def rows_of_clients(self, progress: Progress) -> list[Row]:
        """Return rows of the echo and of one device with windows 1 and 8, in turns, with one worker."""
        with (
            ready([self.host, str(self.port)], "ready", module="h2t2_lab.bench.echo"),
            serving(["--pair", PAIR, "--broker", self.url]),
            ExitStack() as stack,
        ):
            echo = stack.enter_context(_echo(self.host, self.port, self.requests.encode(1, boot=1)))
            clients = {"raw paho echo, one client": echo}
            for window in (1, 8):
                clients[f"one device (paho link), window {window}"] = stack.enter_context(_device(self, window))
            rows: list[Row] = []
            for label, (times, duration) in _in_turns(clients, self.seconds, progress).items():
                rows.append(_row(label, times, duration, rows[0]["rate"] if rows else None))
            return rows

    def rows_of_fleets(self, progress: Progress, echo_rate: float) -> list[Row]:
        """Return rows of all devices with one worker and with two, and of a device on lwIP if it can be emulated."""
        rows = []
        on_lwip: list[Row] = []
        for workers in (1, 2):
            with serving(["--pair", PAIR, "--broker", self.url, f"--workers={workers}"]):
                name = f"{self.devices} devices (board link), {workers} worker{'s' if workers > 1 else ''}"
                progress(name)
                with Nodes((self.host, self.port), self.devices, self.requests, in_flight=self.devices, window=1) as fleet:
                    rows.append(_row(name, *fleet.ask(0, self.seconds), echo_rate))
                if workers == 1 and not lwip.LWIP.missing():
                    progress(LWIP)
                    trips = _on_lwip(self.port, self.requests, self.seconds)
                    on_lwip = [_row(LWIP, *trips, echo_rate)]
        return rows + on_lwip


def _on_lwip(port: int, requests: Requests, seconds: float) -> tuple[list[float], float]:
    """Run one device on the lwIP port, with one offload in flight. Return the times and the duration in seconds."""
    names = f"HOST, PORT, MODEL, SHAPE, MS = {lwip.HOST!r}, {port}, {MODEL}, {tuple(requests.shape)}, {round(1000 * seconds)}\n"
    source = names + (material.ON_DEVICE / "offload_trips.py").read_text()
    *times, duration = drive.run(lwip.LWIP, source, {"tensors": b"".join(requests.tensors)}, 60 + seconds).splitlines()
    return [int(time) / 1e6 for time in times], int(duration.split()[1]) / 1e6


def _in_turns(clients: dict[str, Trips], seconds: float, progress: Progress) -> dict[str, tuple[list[float], float]]:
    """Return round-trip times and duration in seconds of each client. Turns spread the machine's other work over all."""
    results: dict[str, tuple[list[float], float]] = {label: ([], 0.0) for label in clients}
    for _ in range(TURNS):
        for label, trips in clients.items():
            progress(label)
            began = time.perf_counter()
            times = trips(seconds / TURNS)
            results[label] = results[label][0] + times, results[label][1] + time.perf_counter() - began
    return results


def _row(label: str, times: list[float], duration: float, echo_rate: float | None) -> Row:
    rate = len(times) / duration
    p50, p99 = np.percentile(np.array(times) * 1000, [50, 99])
    return {"what": label, "rate": rate, "p50": float(p50), "p99": float(p99), "ratio": rate / (echo_rate or rate)}


def broken(measured: dict[str, Any]) -> list[str]:
    """Return the missed goals."""
    goals = ((measured["rows"][n], goal) for n, goal in GOALS.items())
    return [f"{row['what']}: {row['ratio']:.2f} of the echo, not {goal:g}" for row, goal in goals if row["ratio"] < goal]


def report(measured: dict[str, Any]) -> Report:
    """Return a table with a line for each kind of client."""
    rows = [{**row, "goal": f"{GOALS[n]:g}" if n in GOALS else ""} for n, row in enumerate(measured["rows"])]
    columns = {
        "what": cell("what"),
        "round trips/s": cell("rate", ",.0f"),
        "p50 ms": cell("p50", ".2f"),
        "p99 ms": cell("p99", ".2f"),
        "of the echo": cell("ratio", ".2f"),
        "goal": cell("goal"),
    }
    title = f"one Mosquitto on this machine, {measured['payload']} bytes a request, the best of {measured['rounds']}"
    return with_goals([table(title, rows, columns)], broken(measured))


@contextmanager
def _echo(host: str, port: int, payload: bytes) -> Iterator[Trips]:
    """Use paho alone as its documentation shows: publish, and wait for the same bytes."""
    replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    client = make_client("echo-client")
    ready = threading.Event()
    client.on_message = lambda _c, _d, message: replies.put(bytes(message.payload))
    client.on_connect = lambda client, *_: client.subscribe("echo/reply", qos=1)
    client.on_subscribe = lambda *_: ready.set()
    client.connect(host, port)
    client.loop_start()

    def trips(seconds: float) -> list[float]:
        times: list[float] = []
        began = time_s = time.perf_counter()
        while time_s - began < seconds:
            client.publish("echo/request", payload, qos=1)
            replies.get(timeout=5)
            sent, time_s = time_s, time.perf_counter()
            times.append(time_s - sent)
        return times

    try:
        if not ready.wait(5):
            raise Failure("the broker does not answer")
        trips(0.2)
        yield trips
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def _device(bench: _Bench, window: int) -> Iterator[Trips]:
    """Run one device with `window` offloads in flight. Every reply makes room for the next request."""
    link = PahoLink(bench.host, bench.port, f"bench-{window}", MODEL, 7, deadline_ms=5000)
    numbers = itertools.count(1)

    def trips(seconds: float) -> list[float]:
        sent: dict[int, float] = {}
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or sent:
            while len(sent) < window and time.perf_counter() < end:
                n = next(numbers)
                sent[n] = time.perf_counter()
                if not link.send(bench.requests.encode(n, boot=7)):
                    raise Failure(f"window {window}: the link refused a request: {link.trouble or 'busy'}")
            times.append(_round_trip(link.receive(5000), sent))
        return times

    try:
        link.open()
        trips(0.2)
        yield trips
    finally:
        link.close()


def _round_trip(payload: bytes | None, sent: dict[int, float]) -> float:
    if payload is None:
        raise Failure("no reply within 5 s")
    status, _, sequence, _, _ = wire.decode_reply(payload)
    if status != wire.OK:
        raise Failure(f"the worker answers: {STATUS[status]}")
    return time.perf_counter() - sent.pop(sequence)

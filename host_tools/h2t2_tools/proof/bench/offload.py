"""`h2t2 bench offload`: our link against a raw paho echo, through the same Mosquitto, in one run."""

from __future__ import annotations

import itertools
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from h2t2.cpython.paho import PahoLink, make_client
from h2t2.cpython.tflite import TFLiteModel
from h2t2.link import wire
from h2t2.link.mqtt import MqttLink

from ...boards.emulators import drive, lwip
from ...common import pairs, places
from ...common.errors import Failure
from ...common.report import Report, Table
from ...fleet import broker

TITLE = "Round trips"
PAIR, MODEL = "breast_cancer", 1
TURNS, ROUNDS = 4, 3  # a round measures all of them; the best of the rounds is told
LWIP = "one device (board link) on lwIP, a Pico W's network stack, window 1"
GOALS = {1: 0.7, 3: 1.2}  # row -> share of the echo's round trips
Trips = Callable[[float], list[float]]  # seconds to measure -> seconds of each round trip


def measure(doing: Callable[[str], None], seconds: float = 4.0, devices: int = 50) -> dict[str, Any]:
    """{"payload", "rows"}: round trips a second, p50 and p99 (ms), ratio to the echo. Needs mosquitto."""
    pair = pairs.load(PAIR)
    rdl = TFLiteModel(str(pair.rdl))
    tensors = [rdl.quantise(x).tobytes() for x in pair.x[:64]]
    shape = rdl.input_shape[1:]

    def request(n: int, boot: int) -> bytes:
        return wire.encode_request(MODEL, boot, n, shape, tensors[n % len(tensors)], 5000)

    def worker(n: int) -> list[str]:
        return ["-m", "h2t2_tools", "rdl", "--pair", PAIR, "--broker", f"mqtt://{host}:{port}", f"--workers={n}"]

    rounds: list[list[dict[str, Any]]] = []
    on_lwip: dict[str, Any] | None = None
    with broker.running("mosquitto") as url:
        host, port = broker.parse(url)
        for n in range(ROUNDS):
            doing_now = partial(_doing, doing, n)
            rows: list[dict[str, Any]] = []
            with process(["-m", "h2t2_tools.proof.bench.echo", host, str(port)]), process(worker(1)), ExitStack() as stack:
                clients = {"raw paho echo, one client": stack.enter_context(_echo(host, port, request(1, 1)))}
                for window in (1, 8):
                    name = f"one device (paho link), window {window}"
                    clients[name] = stack.enter_context(_device(host, port, request, window))
                for what, (times, took) in _in_turns(clients, seconds / ROUNDS, doing_now).items():
                    rows.append(_row(what, times, took, rows))
            for workers in (1, 2):
                with process(worker(workers)):
                    name = f"{devices} devices (board link), {workers} worker{'s' if workers > 1 else ''}"
                    doing_now(name)
                    rows.append(_row(name, *_fleet(host, port, request, devices, seconds / ROUNDS), rows))
                    if workers == 1 and not lwip.LWIP.missing():
                        doing_now(LWIP)
                        on_lwip = _row(LWIP, *_on_lwip(port, shape, b"".join(tensors), seconds / ROUNDS), rows)
            rows += [on_lwip] if on_lwip else []
            rounds.append(rows)
    best = [max(rows, key=lambda row: row["ratio"]) for rows in zip(*rounds)]
    return {"pair": PAIR, "payload": len(request(1, 1)), "devices": devices, "rounds": ROUNDS, "rows": best}


def _on_lwip(port: int, shape: tuple[int, ...], tensors: bytes, seconds: float) -> tuple[list[float], float]:
    """One device on the lwip port, with one offload in flight."""
    names = f"HOST, PORT, MODEL, SHAPE, MS = {lwip.HOST!r}, {port}, {MODEL}, {tuple(shape)}, {round(1000 * seconds)}\n"
    source = names + (places.on_device() / "offload_trips.py").read_text()
    *times, took = drive.run(lwip.LWIP, source, {"tensors": tensors}, 60 + seconds).splitlines()
    return [int(time) / 1e6 for time in times], int(took.split()[1]) / 1e6


def _doing(doing: Callable[[str], None], n: int, what: str) -> None:
    doing(f"{what}, {n + 1} of {ROUNDS}")


def _in_turns(clients: dict[str, Trips], seconds: float, doing: Callable[[str], None]) -> dict[str, tuple[list[float], float]]:
    """(times, seconds taken) of each; what else the machine does meets each of them alike."""
    made: dict[str, tuple[list[float], float]] = {what: ([], 0.0) for what in clients}
    for _ in range(TURNS):
        for what, trips in clients.items():
            doing(what)
            began = time.perf_counter()
            times = trips(seconds / TURNS)
            made[what] = made[what][0] + times, made[what][1] + time.perf_counter() - began
    return made


def _row(what: str, times: list[float], took: float, before: list[dict[str, Any]]) -> dict[str, Any]:
    rate = len(times) / took
    p50, p99 = np.percentile(np.array(times) * 1000, [50, 99])
    base = before[0]["rate"] if before else rate
    return {"what": what, "rate": rate, "p50": float(p50), "p99": float(p99), "ratio": rate / base}


def broken(measured: dict[str, Any]) -> list[str]:
    """The goals that are not met."""
    made = []
    for n, goal in GOALS.items():
        row = measured["rows"][n]
        if row["ratio"] < goal:
            made.append(f"{row['what']}: {row['ratio']:.2f} of the echo, not {goal:g}")
    return made


def report(measured: dict[str, Any]) -> Report:
    """A row a kind of client."""
    columns = {"what": "left", **dict.fromkeys(("round trips/s", "p50 ms", "p99 ms", "of the echo", "goal"), "right")}
    cells = []
    for n, row in enumerate(measured["rows"]):
        numbers = [f"{row['rate']:,.0f}", f"{row['p50']:.2f}", f"{row['p99']:.2f}", f"{row['ratio']:.2f}"]
        cells.append([row["what"], *numbers, f"{GOALS[n]:g}" if n in GOALS else ""])
    title = f"one Mosquitto on this machine, {measured['payload']} bytes a request, the best of {measured['rounds']}"
    return [Table(title, columns, cells), *(broken(measured) or ["every goal is met"])]


@contextmanager
def process(arguments: list[str]) -> Iterator[None]:
    """A Python process that has said it is ready on standard error; ended with the context."""
    process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stderr
        said = ""
        while "ready" not in said:
            said = process.stderr.readline()
            if not said:
                raise Failure(f"{' '.join(arguments[:3])} ended before it was ready")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def _echo(host: str, port: int, payload: bytes) -> Iterator[Trips]:
    """What paho alone can do: publish, wait for the same bytes back, as its documentation shows it."""
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
        began = now = time.perf_counter()
        while now - began < seconds:
            client.publish("echo/request", payload, qos=1)
            replies.get(timeout=5)
            then, now = now, time.perf_counter()
            times.append(now - then)
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
def _device(host: str, port: int, request: Callable[[int, int], bytes], window: int) -> Iterator[Trips]:
    """One device with so many offloads in flight: every reply makes room for the next request."""
    link = PahoLink(host, port, f"bench-{window}", MODEL, 7, deadline_ms=5000)
    numbers = itertools.count(1)

    def trips(seconds: float) -> list[float]:
        sent: dict[int, float] = {}
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or sent:
            while len(sent) < window and time.perf_counter() < end:
                n = next(numbers)
                sent[n] = time.perf_counter()
                if not link.send(request(n, 7)):
                    raise Failure(f"window {window}: the link refused a request: {link.trouble or 'busy'}")
            times.append(_taken(link.receive(5000), sent))
        return times

    try:
        link.open()
        trips(0.2)
        yield trips
    finally:
        link.close()


def _taken(payload: bytes | None, sent: dict[int, float]) -> float:
    if payload is None:
        raise Failure("no reply within 5 s")
    status, _, sequence, _, _ = wire.decode_reply(payload)
    if status != wire.OK:
        raise Failure(f"the worker answers: {wire.STATUS[status]}")
    return time.perf_counter() - sent.pop(sequence)


def _fleet(
    host: str, port: int, request: Callable[[int, int], bytes], devices: int, seconds: float
) -> tuple[list[float], float]:
    """So many devices, each with one offload in flight and a connection of its own, driven by one thread."""
    links = [MqttLink(host, port, f"fleet-{n}", MODEL, 9, deadline_ms=10000) for n in range(devices)]
    sent: list[dict[int, float]] = [{} for _ in links]
    times: list[float] = []
    try:
        for link in links:
            link.open()
        n = 0
        began = time.perf_counter()
        last = began
        while True:
            now = time.perf_counter()
            running = now - began < seconds
            if not running and not any(sent):
                return times, now - began
            if now - last > 5:
                raise Failure("no reply within 5 s")
            for link, out in zip(links, sent):
                if not out:
                    if running:
                        n += 1
                        out[n] = time.perf_counter()
                        link.send(request(n, 9))
                    continue
                payload = link.receive(0)
                if payload is not None:
                    times.append(_taken(payload, out))
                    last = time.perf_counter()
    finally:
        for link in links:
            link.close()

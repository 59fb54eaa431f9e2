"""`h2t2 bench fleet`: more and more nodes, served by more and more workers, through one Mosquitto: what a request costs."""

from __future__ import annotations

import itertools
import resource
import select
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from h2t2.cpython.tflite import TFLiteModel
from h2t2.link import wire
from h2t2.link.mqtt import MqttLink

from ...common import pairs
from ...common.errors import Failure
from ...common.report import Report, Table
from ...fleet import broker
from .. import usage
from ..children import serving

TITLE = "Fleets"
PAIR, MODEL = "breast_cancer", 1
NODES, WORKERS = (10, 100, 1000), (1, 2, 4)
RATE = 500.0  # requests a second of all nodes together
IN_FLIGHT = 64  # requests of all nodes together that wait for an answer, where the next one goes out for each that comes
WINDOW = 8  # of them a node's at most: as many as a node may have
DEADLINE_MS = 5000
ROUNDS = 8
WARM_S = 0.3  # of each load before it is measured
LOOK_S = 5.0  # each link is looked at so often, for its keep-alive
GROWTH = 1.2  # the goal: CPU a request of the most nodes against the fewest
LARGER, EACH_S, SHARE, STATE_S = (1_000, 10_000, 100_000), 10, 0.2, 60
HOW = {
    "even": f"{RATE:g} requests a second in all, evenly",
    "full": f"{IN_FLIGHT} requests in flight in all, the next one for each that is answered",
}
FILES = 200  # descriptors beside those of the links


def measure(
    doing: Callable[[str], None], seconds: float = 6.0, nodes: tuple[int, ...] = NODES, workers: tuple[int, ...] = WORKERS
) -> dict[str, Any]:
    """{"payload", "rate", "in_flight", "connection_kb", "rows", "alone"}: a row for each number of nodes and workers;
    connection_kb: of the broker's memory. nodes, workers: ascending. Needs mosquitto, and Linux.

    A row: "nodes", "workers", and twice, of requests that come evenly ("even") and as fast as they are answered ("full"),
    "per_s" answered, "p50_ms", "p99_ms", CPU of the workers and of the broker a request, "workers_ms" and "broker_ms"; and
    "workers_mb", "broker_mb" of memory; "turns": the same of each turn. seconds: of each of them, in ROUNDS turns of which the
    best is told. The processors of a shared machine are now fast, now slow: all workers are up at once, each number of them
    behind a broker of its own, and measured one right after the other; rows are compared turn by turn, and the median counts.
    "alone": of each other number of workers, "workers", what a request costs the fewest where they are asked no more often than
    each of those: "rate" a second and "workers_ms", of each turn in "turns".
    """
    _allow(max(nodes) + FILES)
    pair = pairs.load(PAIR)
    rdl = TFLiteModel(str(pair.rdl))
    tensors = [rdl.quantise(x).tobytes() for x in pair.x[:64]]
    shape = rdl.input_shape[1:]
    size = len(wire.encode_request(MODEL, 1, 1, shape, tensors[0], DEADLINE_MS))
    made: dict[tuple[int, int], dict[str, Any]] = {
        (many, n): {"nodes": n, "workers": many, "turns": {what: [] for what in HOW}} for many in workers for n in nodes
    }
    fewest, *more = workers
    alone: list[dict[str, Any]] = [{"workers": n, "rate": RATE * fewest / n, "turns": []} for n in more]
    with ExitStack() as stack:
        up = {many: stack.enter_context(_served(many)) for many in workers}
        empty = usage.rss_mb(up[fewest].broker.pid)
        for turn, n in itertools.product(range(ROUNDS), nodes):
            for many in workers:
                doing(f"{n} nodes, {many} worker{'s' * (many > 1)}, {turn + 1} of {ROUNDS}")
                with _Nodes(up[many].broker, n, shape, tensors) as fleet:
                    _turn(fleet, made[many, n], seconds / ROUNDS, up[many])
                    for row in alone if (many, n) == (fewest, nodes[0]) else ():
                        row["turns"].append(_watched(fleet, row["rate"], seconds / ROUNDS, up[many]))
    for row in alone:
        row["workers_ms"] = min(row["turns"], key=_cost)["workers_ms"]
    connection_kb = 1000 * (made[fewest, nodes[-1]]["broker_mb"] - empty) / nodes[-1]
    made_of = {"pair": PAIR, "payload": size, "rate": RATE, "in_flight": IN_FLIGHT}
    return {**made_of, "connection_kb": connection_kb, "rows": list(made.values()), "alone": alone}


@dataclass(frozen=True)
class _Served:
    """A broker, and the processes of its workers."""

    broker: broker.Mosquitto
    pids: list[int]


@contextmanager
def _served(workers: int) -> Iterator[_Served]:
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        Path(folder).chmod(0o755)
        mosquitto = broker.Mosquitto(Path(folder))
        mosquitto.start()
        try:
            with serving(["--pair", PAIR, "--broker", mosquitto.url, f"--workers={workers}"]) as process:
                yield _Served(mosquitto, usage.children(process.pid) or [process.pid])
        finally:
            mosquitto.stop()


def _turn(fleet: _Nodes, row: dict[str, Any], seconds: float, up: _Served) -> None:
    """Measure a row's loads; the best of its turns so far is the one in which a request cost least."""
    for what, rate in (("even", RATE), ("full", 0.0)):
        fleet.ask(rate, WARM_S)
        row["turns"][what].append(_watched(fleet, rate, seconds, up))
        row[what] = min(row["turns"][what], key=_cost)
    row.setdefault("workers_mb", sum(map(usage.rss_mb, up.pids)))
    row.setdefault("broker_mb", usage.rss_mb(up.broker.pid))  # before more nodes have been there


def _watched(fleet: _Nodes, rate: float, seconds: float, up: _Served) -> dict[str, float]:
    def cpu() -> tuple[float, float]:
        return sum(map(usage.cpu_s, up.pids)), usage.cpu_s(up.broker.pid)

    before = cpu()
    times, took = fleet.ask(rate, seconds)
    after = cpu()
    p50, p99 = np.percentile(np.array(times) * 1000, [50, 99])
    made = {"per_s": len(times) / took, "p50_ms": float(p50), "p99_ms": float(p99)}
    for name, a, b in zip(("workers_ms", "broker_ms"), before, after):
        made[name] = 1000 * (b - a) / len(times)
    return made


def _allow(files: int) -> None:
    """As many open files as that, for this process and those it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        if hard != resource.RLIM_INFINITY and hard < files:
            raise Failure(f"{files} open files are needed, this system allows {hard}: see ulimit -Hn")
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


class _Nodes:
    """So many nodes with a connection each, the link of a board, driven by one thread."""

    def __init__(self, mosquitto: broker.Mosquitto, nodes: int, shape: tuple[int, ...], tensors: list[bytes]) -> None:
        to = mosquitto.host, mosquitto.port
        self._links = [MqttLink(*to, f"fleet-{n}", MODEL, 9, deadline_ms=10000) for n in range(nodes)]
        self._shape, self._tensors = shape, tensors
        self._number = itertools.count(1)
        self._poll = select.epoll()
        self._of: dict[int, MqttLink] = {}
        self._waiting: deque[int] = deque(range(nodes))  # those whose turn it is, the next one first
        self._out = [0] * nodes  # requests of each that are not answered
        self._whose: dict[int, int] = {}  # number of a request -> node
        self._looked = 0.0

    def __enter__(self) -> _Nodes:
        for link in self._links:
            link.open()
            assert link.sock
            self._poll.register(link.sock, select.EPOLLIN)
            self._of[link.sock.fileno()] = link
        return self

    def __exit__(self, *_: object) -> None:
        self._poll.close()
        for link in self._links:
            link.close()

    def ask(self, rate: float, seconds: float) -> tuple[list[float], float]:
        """(seconds that each answer took, seconds in all). rate: requests a second, each node's in turn; 0: the next one for
        each that is answered."""
        sent: dict[int, float] = {}
        times: list[float] = []
        began = last = time.perf_counter()
        asked = 0
        while True:
            now = time.perf_counter()
            running = now - began < seconds
            if not running and not sent:
                if not times:
                    raise Failure("the workers are too busy to answer anything")
                return times, now - began
            if sent and now - last > DEADLINE_MS / 1000:
                raise Failure(f"no reply within {DEADLINE_MS / 1000:g} s")
            while running and (asked < (now - began) * rate if rate else len(sent) < IN_FLIGHT) and self._waiting:
                self._send(sent)
                asked += 1
            wait = max(0.0, began + (asked + 1) / rate - now) if rate and running else 0.1
            for link in self._ready(wait):
                while (payload := link.receive(0)) is not None:
                    last = time.perf_counter()
                    status, _, number, _, _ = wire.decode_reply(payload)
                    at = sent.pop(number)
                    self._answered(number)
                    if status == wire.OK:
                        times.append(last - at)
                    elif status != wire.BUSY:
                        raise Failure(f"the worker answers: {wire.STATUS[status]}")

    def _send(self, sent: dict[int, float]) -> None:
        number, n = next(self._number), self._waiting.popleft()
        self._whose[number] = n
        self._out[n] += 1
        if self._out[n] < WINDOW:
            self._waiting.append(n)
        data = self._tensors[number % len(self._tensors)]
        link = self._links[n]
        payload = wire.encode_request(MODEL, 9, number, self._shape, data, DEADLINE_MS)
        sent[number] = time.perf_counter()
        if not link.send(payload):
            raise Failure(f"a link refused a request: {link.trouble or 'busy'}")

    def _answered(self, number: int) -> None:
        n = self._whose.pop(number)
        self._out[n] -= 1
        if self._out[n] == WINDOW - 1:
            self._waiting.append(n)

    def _ready(self, wait_s: float) -> list[MqttLink]:
        """Links with something to read; all of them now and then."""
        now = time.perf_counter()
        if now - self._looked > LOOK_S:
            self._looked = now
            return self._links
        return [self._of[number] for number, _ in self._poll.poll(wait_s)]


def broken(measured: dict[str, Any]) -> list[str]:
    """The goals that are not met."""
    made = []
    rows = {(row["nodes"], row["workers"]): row for row in measured["rows"]}
    nodes, workers = (sorted({row[what] for row in measured["rows"]}) for what in ("nodes", "workers"))
    few, many = nodes[0], nodes[-1]
    for n in workers:
        for what, how in HOW.items():
            growth = _times(rows[many, n], rows[few, n], what, _cost)
            if growth > GROWTH:
                told = f"a request of {many} nodes costs {growth:.2f} times one of {few}, not {GROWTH:g}"
                made.append(f"{n} worker{'s' * (n > 1)}, {how}: {told}")
    for n in nodes:
        faster = _times(rows[n, workers[-1]], rows[n, workers[0]], "full", _answers)
        if faster < 1:
            made.append(f"{n} nodes: {workers[-1]} workers answer {faster:.2f} times what {workers[0]} answers")
    return made


def _times(row: dict[str, Any], other: dict[str, Any], what: str, value: Callable[[dict[str, float]], float]) -> float:
    """How many times the other row's value a row's is under that load: the median of the turns."""
    return median(value(a) / value(b) for a, b in zip(row["turns"][what], other["turns"][what]))


def _cost(load: dict[str, float]) -> float:
    """CPU of a request, ms: the workers' and the broker's."""
    return load["workers_ms"] + load["broker_ms"]


def _answers(load: dict[str, float]) -> float:
    return load["per_s"]


def report(measured: dict[str, Any]) -> Report:
    """A table of each kind of load, a row for each number of nodes and workers."""
    made: Report = []
    names = ("nodes", "workers", "answers/s", "p50 ms", "p99 ms", "CPU ms a request, workers", "broker", "memory MB, workers")
    for what, how in HOW.items():
        cells = []
        for row in measured["rows"]:
            one = row[what]
            numbers = [f"{one['per_s']:,.0f}", *(f"{one[key]:.1f}" for key in ("p50_ms", "p99_ms"))]
            numbers += [f"{one['workers_ms']:.3f}", f"{one['broker_ms']:.3f}", f"{row['workers_mb']:.0f}"]
            cells.append([f"{row['nodes']:,}", str(row["workers"]), *numbers, f"{row['broker_mb']:.0f}"])
        title = f"{how}; {measured['payload']} bytes each, one Mosquitto and all nodes on this machine, the best of {ROUNDS}"
        made.append(Table(title, dict.fromkeys((*names, "and broker"), "right"), cells))
    made.append(_compared(measured))
    if measured["alone"]:
        made.append(_alone(measured))
    made.append(_larger(measured))
    return [*made, *(broken(measured) or ["every goal is met"])]


def _compared(measured: dict[str, Any]) -> Table:
    """Answers a second of more workers, as fast as they are answered, against the fewest."""
    rows = {(row["nodes"], row["workers"]): row for row in measured["rows"]}
    nodes, (one, *more) = (sorted({row[what] for row in measured["rows"]}) for what in ("nodes", "workers"))
    cells = [[f"{n:,}", *(f"{_times(rows[n, many], rows[n, one], 'full', _answers):.2f}" for many in more)] for n in nodes]
    title = f"times the answers a second that {one} worker gives, the median of {ROUNDS} turns, each compared within itself"
    return Table(title, dict.fromkeys(("nodes", *(f"{many} workers" for many in more)), "right"), cells)


def _alone(measured: dict[str, Any]) -> Table:
    """What being woken rarely costs, whoever else there is: requests that come evenly, of the fewest nodes."""
    rows = {(row["nodes"], row["workers"]): row for row in measured["rows"]}
    nodes, fewest = (min(row[what] for row in measured["rows"]) for what in ("nodes", "workers"))
    cells = []
    for one in measured["alone"]:
        many = rows[nodes, one["workers"]]
        costs = (f"{load['workers_ms']:.3f}" for load in (many["even"], one))
        cells.append([str(many["workers"]), f"{one['rate'] / fewest:g}", *costs])
    names = ("workers", "requests/s of each", "CPU ms a request", f"of {fewest} alone, asked as often")
    title = f"a worker that is woken rarely spends more on a request, alone or not: {nodes} nodes, evenly, the best of {ROUNDS}"
    return Table(title, dict.fromkeys(names, "right"), cells)


def _larger(measured: dict[str, Any]) -> Table:
    """What larger fleets come to, by what a request of the most nodes cost one worker when they came evenly, one by one."""
    row = next(row for row in reversed(measured["rows"]) if row["workers"] == measured["rows"][0]["workers"])["even"]
    names = ("nodes", "requests/s", "states/s", "cores, workers", "cores, broker", "memory MB, broker")
    cells = []
    for nodes in LARGER:
        requests, states = nodes * SHARE / EACH_S, nodes / STATE_S
        broker_ms = requests * row["broker_ms"] + states * row["broker_ms"] / 2  # of a request and its reply half the messages
        numbers = [
            f"{requests:,.0f}",
            f"{states:,.0f}",
            f"{requests * row['workers_ms'] / 1000:.2f}",
            f"{broker_ms / 1000:.2f}",
        ]
        cells.append([f"{nodes:,}", *numbers, f"{nodes * measured['connection_kb'] / 1000:,.0f}"])
    title = f"what larger ones would come to: a sample each {EACH_S} s, {SHARE:.0%} of them asked, a state each {STATE_S} s"
    return Table(title, dict.fromkeys(names, "right"), cells)

"""`h2t2-lab bench fleet`: the cost of a request with more and more nodes and workers, through one Mosquitto."""

import itertools
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report, Table
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import serving

from .. import usage
from . import Cell, Progress, Row, Time, cell, table, with_goals
from .nodes import PAIR, Nodes, Requests

TITLE = "Fleets"
NODES, WORKERS = (10, 100, 1000), (1, 2, 4)
RATE = 500.0  # requests a second of all nodes together
IN_FLIGHT = 64  # unanswered requests of all nodes together, under the load in which each answer makes room for a request
WINDOW = 8  # unanswered requests of a node, at most
ROUNDS = 8
WARM_S = 0.3  # each load runs for this time before its measurement
GROWTH = 1.2  # goal: CPU per request with most nodes, as a multiple of that with fewest
LARGER, EACH_S, SHARE, STATE_S = (1_000, 10_000, 100_000), 10, 0.2, 60
LOADS = {
    "even": f"{RATE:g} requests a second in all, evenly",
    "full": f"{IN_FLIGHT} requests in flight in all, and a new one after each answer",
}
FILES = 200  # descriptors beside those of the links


def measure(
    progress: Progress, seconds: Time = 6.0, nodes: tuple[Count, ...] = NODES, workers: tuple[Count, ...] = WORKERS
) -> dict[str, Any]:
    """Measure more and more nodes and workers at one Mosquitto. It shows answers per second, latency, CPU per request and
    memory.

    The speed of a shared machine varies. So all workers run at once, each number of them behind a broker of its own, and ROUNDS
    turns measure them one after the other. Rows are compared turn by turn; the median counts.

    Args:
        seconds: time of each row and load, over all turns
        nodes: numbers of simulated nodes
        workers: numbers of worker processes

    Examples:
        h2t2-lab bench fleet --nodes 10 2000 --workers 1 8 --seconds 10 --json fleet.json

    Returns:
        {"pair", "payload", "rate", "in_flight", "connection_kb" (memory of the broker per connection), "rows", "alone"}. A row:
        "nodes", "workers", "workers_mb", "broker_mb", and for each of LOADS the turn with the cheapest requests: "per_s",
        "p50_ms", "p99_ms", CPU per request "workers_ms" and "broker_ms"; "turns": the same for each turn. "alone": for each
        larger number of workers, the cost of a request for the fewest workers at the rate of one of those: "rate",
        "workers_ms".
    """
    nodes, workers = tuple(sorted({*nodes})), tuple(sorted({*workers}))
    _allow_files(max(nodes) + FILES)
    requests = Requests()
    rows: dict[tuple[int, int], Row] = {
        (count, n): {"nodes": n, "workers": count, "turns": {load: [] for load in LOADS}} for count in workers for n in nodes
    }
    fewest = workers[0]
    alone: list[Row] = [{"workers": count, "rate": RATE * fewest / count, "turns": []} for count in workers[1:]]
    with ExitStack() as stack:
        served = {count: stack.enter_context(_served(count)) for count in workers}
        empty_mb = usage.rss_mb(served[fewest].broker.pid)
        for turn, n, count in itertools.product(range(ROUNDS), nodes, workers):
            progress(f"{n} nodes, {count} worker{'s' * (count > 1)}, {turn + 1} of {ROUNDS}")
            with Nodes(served[count].address, n, requests, in_flight=IN_FLIGHT, window=WINDOW) as fleet:
                _turn(fleet, rows[count, n], seconds / ROUNDS, served[count])
                for row in alone if (count, n) == (fewest, nodes[0]) else ():
                    row["turns"].append(_watch(fleet, row["rate"], seconds / ROUNDS, served[count]))
    for row in alone:
        row["workers_ms"] = min(row["turns"], key=_cost)["workers_ms"]
    return {
        "pair": PAIR,
        "payload": len(requests.encode(1)),
        "rate": RATE,
        "in_flight": IN_FLIGHT,
        "connection_kb": 1000 * (rows[fewest, nodes[-1]]["broker_mb"] - empty_mb) / nodes[-1],
        "rows": list(rows.values()),
        "alone": alone,
    }


@dataclass(frozen=True)
class _Served:
    """A broker, and the processes of its workers."""

    broker: broker.Mosquitto
    pids: list[int]

    @property
    def address(self) -> tuple[str, int]:
        return self.broker.host, self.broker.port


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


def _turn(fleet: Nodes, row: Row, seconds: float, served: _Served) -> None:
    """Measure the loads of a row. Its best turn is the one with the cheapest requests."""
    for load, rate in (("even", RATE), ("full", 0.0)):
        fleet.ask(rate, WARM_S)
        row["turns"][load].append(_watch(fleet, rate, seconds, served))
        row[load] = min(row["turns"][load], key=_cost)
    row.setdefault("workers_mb", sum(map(usage.rss_mb, served.pids)))
    row.setdefault("broker_mb", usage.rss_mb(served.broker.pid))  # before more nodes connect


def _watch(fleet: Nodes, rate: float, seconds: float, served: _Served) -> dict[str, float]:
    """Return answers per second, latencies and CPU per request under a load."""

    def cpu_seconds() -> tuple[float, float]:
        return sum(map(usage.cpu_s, served.pids)), usage.cpu_s(served.broker.pid)

    begin = cpu_seconds()
    times, duration = fleet.ask(rate, seconds)
    workers_s, broker_s = (end - start for start, end in zip(begin, cpu_seconds()))
    p50, p99 = np.percentile(np.array(times) * 1000, [50, 99])
    return {
        "per_s": len(times) / duration,
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "workers_ms": 1000 * workers_s / len(times),
        "broker_ms": 1000 * broker_s / len(times),
    }


def _allow_files(count: int) -> None:
    """Let this process and its children open `count` files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            raise Failure(f"the benchmark opens {count} files, but this system allows {hard}: see ulimit -Hn")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def broken(measured: dict[str, Any]) -> list[str]:
    """Return the missed goals."""
    missed = []
    rows, nodes, workers = _grid(measured)
    fewest, largest = nodes[0], nodes[-1]
    for count in workers:
        for load, description in LOADS.items():
            growth = _ratio(rows[largest, count], rows[fewest, count], load, _cost)
            if growth > GROWTH:
                costs = f"a request of {largest} nodes costs {growth:.2f} times one of {fewest}, not {GROWTH:g}"
                missed.append(f"{count} worker{'s' * (count > 1)}, {description}: {costs}")
    for n in nodes:
        speed = _ratio(rows[n, workers[-1]], rows[n, workers[0]], "full", _answers)
        if speed < 1:
            missed.append(f"{n} nodes: {workers[-1]} workers answer {speed:.2f} times what {workers[0]} answers")
    return missed


def _grid(measured: dict[str, Any]) -> tuple[dict[tuple[int, int], Row], list[int], list[int]]:
    """Return {(nodes, workers): row}, the numbers of nodes and the numbers of workers, both ascending."""
    rows = {(row["nodes"], row["workers"]): row for row in measured["rows"]}
    return rows, sorted({nodes for nodes, _ in rows}), sorted({workers for _, workers in rows})


def _ratio(row: Row, base: Row, load: str, value: Callable[[dict[str, float]], float]) -> float:
    """Return the value of a row as a multiple of another row's under one load: the median of the turns."""
    return median(value(a) / value(b) for a, b in zip(row["turns"][load], base["turns"][load]))


def _cost(turn: dict[str, float]) -> float:
    """Return the CPU time of a request in ms, of the workers and the broker."""
    return turn["workers_ms"] + turn["broker_ms"]


def _answers(turn: dict[str, float]) -> float:
    return turn["per_s"]


def report(measured: dict[str, Any]) -> Report:
    """Return a table for each load, with a line for each number of nodes and workers, then comparisons."""
    columns = {
        "nodes": cell("nodes", ","),
        "workers": cell("workers"),
        "answers/s": cell("per_s", ",.0f"),
        "p50 ms": cell("p50_ms", ".1f"),
        "p99 ms": cell("p99_ms", ".1f"),
        "CPU ms a request, workers": cell("workers_ms", ".3f"),
        "broker": cell("broker_ms", ".3f"),
        "memory MB, workers": cell("workers_mb", ".0f"),
        "and broker": cell("broker_mb", ".0f"),
    }
    setup = f"{measured['payload']} bytes each, one Mosquitto and all nodes on this machine, the best of {ROUNDS}"
    tables = [
        table(f"{description}; {setup}", [{**row, **row[load]} for row in measured["rows"]], columns, words=0)
        for load, description in LOADS.items()
    ]
    tables.append(_speeds(measured))
    if measured["alone"]:
        tables.append(_alone(measured))
    return with_goals([*tables, _larger_fleets(measured)], broken(measured))


def _speeds(measured: dict[str, Any]) -> Table:
    """Return the answers per second of more workers as a multiple of those of the fewest."""
    rows, nodes, (fewest, *larger) = _grid(measured)

    def against_fewest(count: int) -> Cell:
        return lambda row: f"{_ratio(rows[row['nodes'], count], rows[row['nodes'], fewest], 'full', _answers):.2f}"

    columns = {"nodes": cell("nodes", ","), **{f"{count} workers": against_fewest(count) for count in larger}}
    title = f"answers a second, as a multiple of those of {fewest} worker: the median of {ROUNDS} turns"
    return table(title, [{"nodes": n} for n in nodes], columns, words=0)


def _alone(measured: dict[str, Any]) -> Table:
    """Compare the cost of a request for a rarely woken worker, among others and alone: even load, fewest nodes."""
    rows, (nodes, *_), (fewest, *_) = _grid(measured)
    columns = {
        "workers": cell("workers"),
        "requests/s of each": lambda row: f"{row['rate'] / fewest:g}",
        "CPU ms a request": lambda row: f"{rows[nodes, row['workers']]['even']['workers_ms']:.3f}",
        f"{fewest} alone at this rate": cell("workers_ms", ".3f"),
    }
    title = f"a rarely woken worker spends more CPU on a request, even alone: {nodes} nodes, evenly, the best of {ROUNDS}"
    return table(title, measured["alone"], columns, words=0)


def _larger_fleets(measured: dict[str, Any]) -> Table:
    """Extrapolate to larger fleets, from the most nodes with the fewest workers under the even load."""
    rows, nodes, workers = _grid(measured)
    measured_ms = rows[nodes[-1], workers[0]]["even"]

    def needs(n: int) -> Row:
        requests, states = n * SHARE / EACH_S, n / STATE_S
        messages = requests + states / 2  # a state is half of the messages of a request and its reply
        return {
            "nodes": n,
            "requests": requests,
            "states": states,
            "workers": requests * measured_ms["workers_ms"] / 1000,
            "broker": messages * measured_ms["broker_ms"] / 1000,
            "memory": n * measured["connection_kb"] / 1000,
        }

    columns = {
        "nodes": cell("nodes", ","),
        "requests/s": cell("requests", ",.0f"),
        "states/s": cell("states", ",.0f"),
        "cores, workers": cell("workers", ".2f"),
        "cores, broker": cell("broker", ".2f"),
        "memory MB, broker": cell("memory", ",.0f"),
    }
    title = f"estimate for larger fleets: a sample each {EACH_S} s, {SHARE:.0%} offloaded, a state each {STATE_S} s"
    return table(title, map(needs, LARGER), columns, words=0)

"""`h2t2-lab bench gate`: decisions per second of a gate, called from Python and by HTTP, and how late local ones are."""

import http.client
import json
import random
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.common.errors import Failure
from h2t2_tools.common.report import Report
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import ready
from h2t2_tools.fleet.gate import Gate, GateConfig, Payload

from . import Progress, Row, Time, cell, table, with_goals

TITLE = "The gate"
RATE, P99_MS = 300, 10.0  # goals: decisions per second, and the latest of a hundred local decisions
CALLERS = 4
READY = "ready: device"  # of a line of the gate's log
MODEL = "def scores(x):\n    return [1.0 if sample[0] > 0.5 else 0.0 for sample in x]\n"
Ask = Callable[[float, float], str]  # (score, what the remote model would see) -> source of the decision


def measure(progress: Progress, seconds: Time = 5.0) -> dict[str, Any]:
    """Count the decisions per second of a gate. Programs call it from Python and by HTTP; it shows how late local
    decisions are.

    Args:
        seconds: time of each measurement

    Returns:
        {"rows": one for Python and one for HTTP: {"door", "rate", "local", "p50", "p99"}}: decisions per second, the share that
        was decided locally, and milliseconds of the local decisions.
    """
    with tempfile.TemporaryDirectory(prefix="h2t2-gate-") as name:
        folder = Path(name)
        (folder / "model.py").write_text(MODEL)
        entries = {"topic": "unused", "remote": "model.py:scores", "beta": 0.2}
        with Gate(GateConfig(**entries, state="python", folder=folder)) as gate:
            progress("called from Python")
            in_python = _rates("Gate.decide()", seconds, lambda: _python(gate))
        (folder / "gate.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
        port = broker.free_port()
        command = ["gate", str(folder / "gate.toml"), "--http", str(port), "--broker"]
        with broker.running("mosquitto") as url, ready([*command, url], READY):
            progress("by HTTP")
            by_http = _rates("POST /v1/decide", seconds, lambda: _http(port))
    return {"rows": [in_python, by_http]}


def _python(gate: Gate) -> Ask:
    return lambda score, event: gate.decide("room", score, Payload(tensor=(event,))).source


def _http(port: int) -> Ask:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(score: float, event: float) -> str:
        sample = json.dumps({"key": "room", "score": score, "tensor": [event]})
        connection.request("POST", "/v1/decide", sample, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise Failure(f"POST /v1/decide: status {answer.status}: {content[:200]!r}")
        return str(json.loads(content)["source"])

    return ask


def _rates(door: str, seconds: float, caller: Callable[[], Ask]) -> Row:
    """Let CALLERS threads ask one sample after the other."""
    times: dict[str, list[float]] = {"local": [], "remote": [], "fallback": []}
    end = time.monotonic() + seconds

    def call(number: int) -> None:
        rng, ask = random.Random(number), caller()
        while (began := time.monotonic()) < end:
            event = float(rng.random() < 0.3)
            source = ask(min(1.0, max(0.0, rng.gauss(0.75 if event else 0.25, 0.15))), event)
            times[source].append(time.monotonic() - began)

    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(call, range(CALLERS)))  # raises what a caller raised
    count = sum(map(len, times.values()))
    p50, p99 = (float(ms) for ms in np.percentile(np.array(times["local"]) * 1000, (50, 99)))
    return {"door": door, "rate": count / seconds, "local": len(times["local"]) / count, "p50": p50, "p99": p99}


def broken(measured: dict[str, Any]) -> list[str]:
    """Return the missed goals."""
    missed = []
    for row in measured["rows"]:
        if row["rate"] < RATE:
            missed.append(f"{row['door']}: {row['rate']:.0f} decisions per second; the goal is {RATE}")
        if row["p99"] >= P99_MS:
            missed.append(f"{row['door']}: 99 of 100 local decisions take up to {row['p99']:.1f} ms; the goal is {P99_MS:g}")
    return missed


def report(measured: dict[str, Any]) -> Report:
    """Return a table and the missed goals."""
    columns = {
        "door": cell("door"),
        "decisions/s": cell("rate", ".0f"),
        "local": cell("local", ".0%"),
        "local p50, ms": cell("p50", ".2f"),
        "p99, ms": cell("p99", ".2f"),
    }
    title = f"{CALLERS} callers of one stream; a sample that the policy asks about waits for the remote model"
    return with_goals([table(title, measured["rows"], columns)], broken(measured))

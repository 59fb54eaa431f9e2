"""`h2t2-lab bench simulate`: compares the compiled simulator with the device core and the dense matrix on the same stream."""

import time

import numpy as np

from h2t2.core.policy import OFFLOAD
from h2t2_tools.checks.validate import samples
from h2t2_tools.common.report import Report
from h2t2_tools.replay.simulation.policies.h2t2 import H2T2
from h2t2_tools.replay.simulation.stream import Costs, Stream

from . import Cell, Progress, Row, cell, table
from .policy import dense

TITLE = "The compiled simulator"
BITS = (4, 8)
COSTS = Costs.binary(0.3, 0.7, 1.0)
POLICY = {"epsilon": 1 / 16, "feedback": "explored"}
STEPS, PREFIX = 1_000_000, 10_000  # the device core takes the first PREFIX steps, and its decisions are compared


def measure(progress: Progress) -> list[Row]:
    """Count simulated steps per second. It compares the compiled simulator, the device core on CPython and the dense
    NumPy matrix.

    Returns:
        Rows {bits, simulator, device, dense (steps per second), same (the first two take the same decisions)}.
    """
    rows = []
    for bits in BITS:
        policy = H2T2(bits, **POLICY)  # type: ignore[arg-type]
        bins, labels = samples(bits, STEPS, 1)
        stream = Stream((bins + 0.5) / 2**bits, labels, np.full(STEPS, COSTS.beta))
        progress(f"b = {bits}, compiled simulator")
        policy.act(stream.stretch(0, 10), COSTS, 1)  # compiles, or loads an earlier compilation
        best = np.inf
        for _ in range(3):
            started = time.perf_counter()
            actions = policy.act(stream, COSTS, 1)
            best = min(best, time.perf_counter() - started)
        progress(f"b = {bits}, device core")
        prefix = stream.stretch(0, PREFIX)
        device = policy.device(prefix, COSTS, 1)
        started = time.perf_counter()
        expected = []
        for k, label in zip(bins[:PREFIX].tolist(), labels[:PREFIX].tolist()):
            expected.append(device.decide(k))
            if expected[-1] == OFFLOAD:
                device.learn(device.ticket, label)
        slow = time.perf_counter() - started
        progress(f"b = {bits}, dense matrix")
        step = dense(bits)
        started = time.perf_counter()
        for k, label in zip(bins[:2000].tolist(), labels[:2000].tolist()):
            step(k, label)
        rows.append(
            {
                "bits": bits,
                "simulator": STEPS / best,
                "device": PREFIX / slow,
                "dense": 2000 / (time.perf_counter() - started),
                "same": bool((np.maximum(actions[:PREFIX], OFFLOAD) == expected).all()),
            }
        )
    return rows


def report(rows: list[Row]) -> Report:
    """Return a table with a line for each number of bits."""

    def against(key: str) -> Cell:
        return lambda row: f"{row[key]:,.0f} (1/{row['simulator'] / row[key]:.0f})"

    columns = {
        "b": cell("bits"),
        "compiled simulator": cell("simulator", ",.0f"),
        "device core, CPython": against("device"),
        "dense NumPy": against("dense"),
        "same": lambda row: "decisions equal" if row["same"] else "DECISIONS DIFFER",
    }
    return [table("H2T2 steps a second, one core", rows, columns, words=0)]


def broken(rows: list[Row]) -> list[str]:
    """Report whether the compiled learner's decisions differ from the device core's."""
    return [] if all(row["same"] for row in rows) else ["the compiled learner's decisions differ from the device core's"]

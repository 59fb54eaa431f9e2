"""`h2t2 bench simulate`: the compiled simulator beside the device core and the dense matrix, one run, same stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2.core.h2t2 import OFFLOAD

from ...common.report import Report, Table
from ...lab.simulation.policies.h2t2 import H2T2
from ...lab.simulation.stream import Costs, Stream
from ..validate import samples
from .policy import dense

TITLE = "The compiled simulator"
BITS = (4, 8)
COSTS = Costs.binary(0.3, 0.7, 1.0)
POLICY = {"epsilon": 1 / 16, "feedback": "explored"}
STEPS, FEW = 1_000_000, 10_000  # the device core's share is short, and its decisions are compared


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {bits, simulator, device, dense (steps a second, one core), same}."""
    made = []
    for bits in BITS:
        policy = H2T2(bits, **POLICY)  # type: ignore[arg-type]
        bins, labels = samples(bits, STEPS, 1)
        stream = Stream((bins + 0.5) / 2**bits, labels, np.full(STEPS, COSTS.beta))
        progress(f"b = {bits}, compiled simulator")
        policy.act(_first(stream, 10), COSTS, 1)  # compiles, or loads what was compiled before
        best = np.inf
        for _ in range(3):
            started = time.perf_counter()
            actions = policy.act(stream, COSTS, 1)
            best = min(best, time.perf_counter() - started)
        progress(f"b = {bits}, device core")
        few = _first(stream, FEW)
        device = policy.device(few, COSTS, 1)
        started = time.perf_counter()
        expected = []
        for k, label in zip(bins[:FEW].tolist(), labels[:FEW].tolist()):
            expected.append(device.decide(k))
            if expected[-1] == OFFLOAD:
                device.learn(device.ticket, label)
        slow = time.perf_counter() - started
        progress(f"b = {bits}, dense matrix")
        step = dense(bits)
        started = time.perf_counter()
        for k, label in zip(bins[:2000].tolist(), labels[:2000].tolist()):
            step(k, label)
        made.append(
            {
                "bits": bits,
                "simulator": STEPS / best,
                "device": FEW / slow,
                "dense": 2000 / (time.perf_counter() - started),
                "same": bool((np.maximum(actions[:FEW], OFFLOAD) == expected).all()),
            }
        )
    return made


def _first(stream: Stream, count: int) -> Stream:
    return Stream(stream.score[:count], stream.label[:count], stream.beta[:count])


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a number of bits."""
    columns = {
        "b": "right", "compiled simulator": "right", "device core, CPython": "right", "dense NumPy": "right", "same": "left",
    }  # fmt: skip
    cells = [
        [
            str(row["bits"]),
            f"{row['simulator']:,.0f}",
            f"{row['device']:,.0f} (1/{row['simulator'] / row['device']:.0f})",
            f"{row['dense']:,.0f} (1/{row['simulator'] / row['dense']:.0f})",
            "decisions equal" if row["same"] else "DECISIONS DIFFER",
        ]
        for row in rows
    ]
    return [Table("H2T2 steps a second, one core", columns, cells)]


def broken(rows: list[dict[str, Any]]) -> list[str]:
    """The compiled learner takes the device core's decisions."""
    return [] if all(row["same"] for row in rows) else ["the compiled learner's decisions differ from the device core's"]

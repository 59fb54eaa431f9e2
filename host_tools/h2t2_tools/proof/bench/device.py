"""`h2t2 bench device`: instructions and heap of the core on an emulated micro:bit, a Cortex-M0 with 16 KB of RAM; what single
steps take on the other emulated boards."""

from __future__ import annotations

from typing import Any

import numpy as np

from h2t2.core.h2t2 import H2T2
from h2t2.core.policy import OFFLOAD

from ...boards.emulators.microbit import NANOSECONDS, Microbit
from ...common import places, policies
from ...common.report import Report
from ..validate import samples
from . import Progress, Row, cell, on_boards, table

TITLE = "On the boards' processors"
MODES: dict[str, dict[str, Any]] = {
    "Algorithm 1": policies.PAPER,
    "all + anytime": {},
}


def measure(progress: Progress, rounds: int = 100) -> dict[str, list[Row]]:
    """Count on every emulated board: {"microbit": rows of _microbit(), "boards": rows of on_boards.measure()}."""
    return {"microbit": _microbit(progress, rounds), "boards": on_boards.measure(progress)}


def _microbit(progress: Progress, rounds: int) -> list[Row]:
    """A row for each mode: instructions per step and bytes of heap, window 1, b = 4; whether its actions equal the host's."""
    rows = []
    for mode, options in MODES.items():
        progress(mode)
        policy = H2T2(window=1, **options)
        bins, labels = (column.tolist() for column in samples(4, rounds, 1))
        with Microbit(count=True) as board:
            board.prepare()
            names = board.load(places.RUNTIME, policy)
            used = board.heap() - board.base
            actions, instructions = [], []
            decide, learn, ticket = (names[name] for name in ("decide", "learn", "ticket"))
            clock = 1000 / NANOSECONDS  # instructions a microsecond of the board's clock
            empty = min(int(board.run("L();t=T();t=T()-t;U();print(t)")) for _ in range(3)) * clock
            for k, label in zip(bins, labels):
                # the heap is locked all through the step
                printed = board.run(f"L();t=T();a=p.{decide}({k});t=T()-t;U();print(a,t)").split()
                actions.append(int(printed[0]))
                spent = int(printed[1]) * clock - empty
                if actions[-1] == OFFLOAD:
                    printed = board.run(f"L();t=T();p.{learn}(p.{ticket},{label},-1);t=T()-t;U();print(t)").split()
                    spent += int(printed[0]) * clock - empty
                instructions.append(spent)
        expected = []
        for k, label in zip(bins, labels):
            expected.append(policy.decide(k))
            if expected[-1] == OFFLOAD:
                policy.learn(policy.ticket, label)
        rows.append(
            {
                "mode": mode,
                "rounds": rounds,
                "heap_bytes": used,
                "instructions_mean": float(np.mean(instructions)),
                "instructions_worst": max(instructions),
                "same_as_host": actions == expected,
            }
        )
    return rows


def report(measured: dict[str, list[Row]]) -> Report:
    """A line for each mode on the micro:bit; a line for each thing that the other boards measured."""
    rows = measured["microbit"]
    columns = {
        "mode": cell("mode"),
        "instructions a step, mean": cell("instructions_mean", ",.0f"),
        "worst": cell("instructions_worst", ",.0f"),
        "bytes of heap, code and state": cell("heap_bytes", ","),
        "actions": lambda row: "equal to the host's" if row["same_as_host"] else "DIFFERENT from the host's",
    }
    rounds = rows[0]["rounds"]
    title = f"decide and learn on an emulated micro:bit (Cortex-M0, MicroPython 1.9.2), b = 4, {rounds} rounds, the heap locked"
    tables: Report = [table(title, rows, columns)]
    return [*tables, on_boards.report(measured["boards"])] if measured["boards"] else tables


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """The board must take the host's decisions."""
    same = all(row["same_as_host"] for row in measured["microbit"])
    return [] if same else ["the emulated board's actions differ from the host's"]

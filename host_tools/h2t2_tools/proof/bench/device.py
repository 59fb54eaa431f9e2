"""`h2t2 bench device`: instructions and heap of the core on an emulated micro:bit, a Cortex-M0 with 16 KB of RAM; what single
steps take on the other emulated boards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from h2t2.core.h2t2 import H2T2, OFFLOAD

from ...boards.emulators.microbit import NANOSECONDS, Microbit
from ...common import places, policies
from ...common.report import Report, Table
from ..validate import samples
from . import on_boards

TITLE = "On the boards' processors"
MODES: dict[str, dict[str, Any]] = {
    "Algorithm 1": policies.PAPER,
    "all + anytime": {},
}


def measure(progress: Callable[[str], None], rounds: int = 100) -> dict[str, list[dict[str, Any]]]:
    """{"microbit": rows of _microbit(), "boards": of on_boards.measure()}."""
    return {"microbit": _microbit(progress, rounds), "boards": on_boards.measure(progress)}


def _microbit(progress: Callable[[str], None], rounds: int) -> list[dict[str, Any]]:
    """Rows a mode: instructions a step and heap bytes on the emulated micro:bit, window 1, b = 4; actions equal the host's."""
    rows = []
    for mode, options in MODES.items():
        progress(mode)
        made = H2T2(window=1, **options)
        bins, labels = (column.tolist() for column in samples(4, rounds, 1))
        with Microbit(count=True) as board:
            board.prepare()
            names = board.load(places.RUNTIME, made)
            used = board.heap() - board.base
            actions, instructions = [], []
            decide, learn, ticket = (names[name] for name in ("decide", "learn", "ticket"))
            clock = 1000 / NANOSECONDS  # instructions a microsecond of the board's clock
            empty = min(int(board.run("L();t=T();t=T()-t;U();print(t)")) for _ in range(3)) * clock
            for k, label in zip(bins, labels):
                # the heap is locked all through the step
                said = board.run(f"L();t=T();a=p.{decide}({k});t=T()-t;U();print(a,t)").split()
                actions.append(int(said[0]))
                spent = int(said[1]) * clock - empty
                if actions[-1] == OFFLOAD:
                    said = board.run(f"L();t=T();p.{learn}(p.{ticket},{label},-1);t=T()-t;U();print(t)").split()
                    spent += int(said[0]) * clock - empty
                instructions.append(spent)
        expected = []
        for k, label in zip(bins, labels):
            expected.append(made.decide(k))
            if expected[-1] == OFFLOAD:
                made.learn(made.ticket, label)
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


def report(measured: dict[str, list[dict[str, Any]]]) -> Report:
    """A row a mode of the micro:bit's; a row a thing that was measured on the others."""
    rows = measured["microbit"]
    columns = {
        "mode": "left", "instructions a step, mean": "right", "worst": "right", "bytes of heap, code and state": "right",
        "actions": "left",
    }  # fmt: skip
    cells = [
        [
            row["mode"],
            f"{row['instructions_mean']:,.0f}",
            f"{row['instructions_worst']:,.0f}",
            f"{row['heap_bytes']:,}",
            "equal to the host's" if row["same_as_host"] else "DIFFERENT from the host's",
        ]
        for row in rows
    ]
    rounds = rows[0]["rounds"]
    title = f"decide and learn on an emulated micro:bit (Cortex-M0, MicroPython 1.9.2), b = 4, {rounds} rounds, the heap locked"
    made: Report = [Table(title, columns, cells)]
    return [*made, on_boards.table(measured["boards"])] if measured["boards"] else made


def broken(measured: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The board takes the host's decisions."""
    return (
        []
        if all(row["same_as_host"] for row in measured["microbit"])
        else ["the emulated board's actions differ from the host's"]
    )

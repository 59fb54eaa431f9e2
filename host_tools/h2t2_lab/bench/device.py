"""`h2t2-lab bench device`: instructions and heap of H2T2 on one page on an emulated micro:bit, and of steps on other boards.

The micro:bit is a Cortex-M0 with 16 KB of RAM.
"""

import numpy as np

from h2t2_tools.boards.microbit import page
from h2t2_tools.checks.validate import samples
from h2t2_tools.common.fields import Count
from h2t2_tools.common.policies import DEFAULTS
from h2t2_tools.common.report import Report

from ..boards.microbit import NANOSECONDS, Microbit
from . import Progress, Row, cell, convolutions, missed, on_boards, table

TITLE = "On the boards' processors"
MODES = {"Algorithm 1": "explored", "all": "all"}  # feedback


def measure(progress: Progress, rounds: Count = 100) -> dict[str, list[Row]]:
    """Count instructions on emulated boards. It counts those of the core on a micro:bit, a Cortex-M3, a
    Cortex-M33 and a RISC-V, and cycles of a Pico.

    Args:
        rounds: steps to count

    Returns:
        {"microbit": rows of _microbit(), "boards": rows of on_boards.measure(), "convolutions": those of its module}.
    """
    return {
        "microbit": _microbit(progress, rounds),
        "boards": on_boards.measure(progress),
        "convolutions": convolutions.measure(progress),
    }


def _microbit(progress: Progress, rounds: int) -> list[Row]:
    """Return a row for each mode: instructions per step, bytes of heap, whether the page's actions equal the host's."""
    rows = []
    reference = page.load()
    for mode, feedback in MODES.items():
        progress(mode)
        arguments = page.arguments({**DEFAULTS, "feedback": feedback, "epsilon": 1 / 16})
        policy = reference.H2T2(**arguments)
        bins, labels = (column.tolist() for column in samples(4, rounds, 1))
        with Microbit(count=True) as board:
            board.prepare()
            board.load_policy(arguments)
            used = board.heap() - board.base
            actions, instructions, expected = [], [], []
            clock = 1000 / NANOSECONDS  # instructions a microsecond of the board's clock
            empty = min(int(board.run("L();t=T();t=T()-t;U();print(t)")) for _ in range(3)) * clock
            for k, label in zip(bins, labels):
                # a locked heap proves that the step allocates nothing
                action, duration = board.run(f"L();t=T();a=p.decide({k});t=T()-t;U();print(a,t)").split()
                actions.append(int(action))
                spent = int(duration) * clock - empty
                if actions[-1] == reference.OFFLOAD:
                    duration = board.run(f"L();t=T();p.learn(p.ticket,{label});t=T()-t;U();print(t)")
                    spent += int(duration) * clock - empty
                instructions.append(spent)
                expected.append(policy.decide(k))
                if expected[-1] == reference.OFFLOAD:
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
    """Return a line for each mode on the micro:bit, a line for each step on the other boards, and a sentence for each goal."""
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
    boards = measured["boards"]
    if boards:
        tables += [on_boards.report(boards), *map(str, on_boards.goals(boards))]
    if measured.get("convolutions"):
        tables.append(convolutions.report(measured["convolutions"]))
    return tables


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """Report whether the board's decisions differ from the host's, and each goal that was missed."""
    same = all(row["same_as_host"] for row in measured["microbit"])
    sentences = missed(on_boards.goals(measured["boards"])) + convolutions.broken(measured.get("convolutions", []))
    return sentences if same else ["the emulated board's actions differ from the host's", *sentences]

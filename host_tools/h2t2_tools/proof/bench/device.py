"""`h2t2 bench device`: instructions and heap of H2T2 on one page on an emulated micro:bit, and of single steps on other boards.

The micro:bit is a Cortex-M0 with 16 KB of RAM.
"""

import numpy as np

from ...boards.emulators.microbit import NANOSECONDS, Microbit
from ...boards.microbit import page
from ...common.policies import DEFAULTS
from ...common.report import Report
from ..validate import samples
from . import Progress, Row, cell, convolutions, on_boards, table

TITLE = "On the boards' processors"
MODES = {"Algorithm 1": "explored", "all": "all"}  # feedback


def measure(progress: Progress, rounds: int = 100) -> dict[str, list[Row]]:
    """Count on every emulated board.

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
        tables += [on_boards.report(boards), *map(on_boards.sentence, on_boards.goals(boards))]
    if measured.get("convolutions"):
        tables.append(convolutions.report(measured["convolutions"]))
    return tables


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """Report whether the board's decisions differ from the host's, and each goal that was missed."""
    same = all(row["same_as_host"] for row in measured["microbit"])
    missed = [on_boards.sentence(goal) for goal in on_boards.goals(measured["boards"]) if not goal["met"]]
    missed += convolutions.broken(measured.get("convolutions", []))
    return missed if same else ["the emulated board's actions differ from the host's", *missed]

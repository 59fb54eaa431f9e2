"""`h2t2-lab bench c`: size and speed of the policies in C, beside their machine code in MicroPython."""

import tempfile
from pathlib import Path

from h2t2_tools.boards import native
from h2t2_tools.boards.compiler.native import POLICIES as POLICIES_IN_C
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.catalogue import Emulator
from h2t2_tools.boards.emulators.pico import CLOCK_HZ
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.common import pairs
from h2t2_tools.common.policies import NAMES
from h2t2_tools.common.report import Report

from .. import material
from ..boards import drive
from ..c_programs import BOARDS, PICO, SOURCES, Target, write_library
from ..emulators import built
from ..pages.page_parts import between, markdown
from . import Goal, Progress, Row, cell, missed, table

TITLE = "The policies in C"
BEGIN = "<!-- table: h2t2-lab bench c -->"
POLICIES = {"h2t2": "H2T2", "h2t2_adaptive": "adaptive", "h2t2_ordered": "adaptive with its past"}
IN_PYTHON = dict(zip(POLICIES.values(), POLICIES_IN_C))  # names of the native modules
PAIR = "breast_cancer"
OPTION = "-Os"
STEPS = 40  # of steps.c
# goals for a policy on the Pico: bytes of code and tables without snapshots, cycles of a step; SMALL ones: bytes with snapshots
LARGEST, LARGEST_WITH_PAST, LONGEST = 8192, 9216, 20_000
SMALL = ("H2T2", "adaptive")
IN_MICROPYTHON = {"native": "MicroPython with the native module", "firmware": "MicroPython with the firmware"}


def measure(progress: Progress, out: Path | None = None) -> list[Row]:
    """Compile each policy of `h2t2 export-c` for size, and count the cycles of a step on an emulated Pico, or instructions.

    A step is decide() and learn(), b = 4, the mean of the first 40: those of `h2t2-lab bench device`.

    Args:
        out: a page whose table is written anew

    Examples:
        h2t2-lab bench c --out docs/from-c.md

    Returns:
        Rows {"policy", "board", "unit", "bytes" (of begin, decide, learn and lose with their tables, without the C compiler's
        own functions), "saving" (the same with snapshot and restore), "ram" (of the policy), "stack", "step" (cycles or
        instructions), "viper", "native", "firmware" (cycles of a step in MicroPython on the Pico: in its machine code; with the
        native module of the policy, if `make native` has built it; with the firmware of `h2t2 firmware`)}.
    """
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        include = write_library(folder, pairs.load_info(PAIR), {policy: {} for policy in NAMES})
        boards = [board for board in BOARDS if not board.missing()]
        for board in boards:
            for policy, title in POLICIES.items():
                progress(f"{title}: {board.name}")
                unit = "cycles" if board is PICO else "instructions"
                rows.append({"policy": title, "board": board.name, "unit": unit, **_measured(board, policy, folder, include)})
    if PICO in boards and not catalogue.PICO.missing():
        built.PICO_FROZEN.build(progress)
        for row in rows:
            if row["board"] == PICO.name:
                progress(f"{row['policy']}: in MicroPython")
                name = IN_PYTHON[row["policy"]]
                module = native.content(KINDS["pico"].arch, name)
                row["viper"] = in_micropython(name, {})
                row["native"] = in_micropython(name, {native.POLICY: module}) if module else None
                row["firmware"] = in_micropython(name, {}, built.PICO_FROZEN) if not built.PICO_FROZEN.missing() else None
    if out:
        out.write_text(between(out.read_text(), BEGIN, "\n" + markdown(report(rows))))
    return rows


def _measured(board: Target, policy: str, folder: Path, include: Path) -> Row:
    kind = (OPTION, f"-DKIND={policy}")
    options = (*kind, f"-DSNAPSHOT={policy.upper()}_SNAPSHOT")
    board.compile(folder / "steps", [SOURCES / "steps.c"], include, *options)
    ticks, empty, stack, ram = map(int, board.run(folder / "steps").split())
    step = (ticks - empty) * board.tick / STEPS
    size, saving = (board.size(SOURCES / "size.c", include, *each) for each in (kind, options))
    return {"bytes": size, "saving": saving, "ram": ram, "stack": stack, "step": step}


def in_micropython(name: str, files: dict[str, bytes], board: Emulator = catalogue.PICO) -> float:
    """Return the cycles of a step on a Pico's MicroPython with further files, as `h2t2-lab bench device` counts them."""
    source, _, _ = (material.ON_DEVICE / "device_bench.py").read_text().partition("policy = ")
    policy = f"policies.make({'h2t2' if name == 'h2t2' else 'adaptive'!r}, {POLICIES_IN_C[name]})"
    script = f"{source}from h2t2.core import policies\ntook('step', steps({policy}), STEPS)\n"
    _, repetitions, ticks = drive.run(board, script, files, 600, count=True).split()
    return int(ticks) * (CLOCK_HZ // 1_000_000) / int(repetitions)


def report(rows: list[Row]) -> Report:
    """Return a line for each policy and board, and a sentence for each goal."""
    columns = {
        "policy": cell("policy"),
        "board": cell("board"),
        "bytes of code and tables": cell("bytes", ","),
        "with snapshots": cell("saving", ","),
        "RAM": cell("ram", ","),
        "stack": cell("stack", ","),
        "a step": lambda row: f"{row['step']:,.0f} {row['unit']}",
        "in MicroPython, cycles": cell("viper", ",.0f"),
        "with the native module": cell("native", ",.0f"),
        "with the firmware": cell("firmware", ",.0f"),
    }
    title = f"The policies in C, compiled with {OPTION}, b = 4, on emulated boards"
    return [table(title, rows, columns, words=2), *map(str, _goals(rows))]


def _goals(rows: list[Row]) -> list[Goal]:
    """Return the goals for each policy."""
    goals = []
    for row in (row for row in rows if row["board"] == PICO.name):
        is_small = row["policy"] in SMALL
        limits = [("bytes", "bytes of code and tables", LARGEST if is_small else LARGEST_WITH_PAST)]
        limits += [("step", "cycles of a step", LONGEST), *([("saving", "bytes with snapshots", LARGEST)] if is_small else [])]
        if is_small:
            limits += [(key, f"cycles of a step in {where}", LONGEST) for key, where in IN_MICROPYTHON.items() if row.get(key)]
        goals += [Goal(f"for {row['policy']} in C on the Pico", row[key], limit, what) for key, what, limit in limits]
    return goals


def broken(rows: list[Row]) -> list[str]:
    """Return a sentence for each goal that is missed."""
    return missed(_goals(rows))

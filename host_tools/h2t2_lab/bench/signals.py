"""`h2t2-lab bench signals`: measurements per second that a node takes, singly and in blocks, here and on emulated boards."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.catalogue import UNIX, Emulator
from h2t2_tools.boards.emulators.pico import CLOCK_HZ
from h2t2_tools.common import pairs, places
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.report import Report
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model.bundle import from_tflite

from .. import material
from ..boards import drive, instructions
from ..boards.qemu import MACHINES, SHIFT
from ..emulators import built
from . import Progress, Row, cell, table, with_goals

TITLE = "Signals"
PAIR = "breast_cancer"  # whose local model reads the first frequencies
WINDOW = {"size": 256, "hop": 256, "channels": 1, "features": ["fft"]}
BLOCK = 64  # measurements of a block
DESKTOP_WINDOWS, BOARD_WINDOWS = 128, 4  # samples that are measured
RUNS = 3  # of this machine, of which the fastest counts
DESKTOP, PI = "this machine, CPython, one core", "emulated Raspberry Pi, CPython"
GOALS = {DESKTOP: 16_000, catalogue.PICO.name: 2_000}  # measurements per second, in blocks
PI_HZ = {"Raspberry Pi Zero 2 W": 1.0e9, "Raspberry Pi 4": 1.8e9, "Raspberry Pi 5": 2.4e9}  # clocks, of their data sheets
CYCLES_PER_INSTRUCTION = 2  # assumed for these; nobody measured it


@dataclass(frozen=True)
class Way:
    """One way of taking measurements. block: measurements per call of sense()."""

    name: str
    block: int


ONE_BY_ONE, BLOCKS = Way("one by one", 1), Way(f"blocks of {BLOCK}", BLOCK)


def measure(progress: Progress) -> list[Row]:
    """Count measurements per second that a node takes. It takes them one by one and in blocks, on this machine and on an
    emulated Pico, and counts instructions of a Raspberry Pi.

    Returns:
        Rows {where, how, per_second, instructions, cycles, crc, loop, ratio}. per_second: measurements; None where time is not
        known. instructions, cycles: per measurement, or None. crc: of the scores, equal everywhere. loop: whether the loop
        around the node is included. ratio: of the speed to that of single measurements at the same place.
    """
    rows: list[Row] = []

    def add(where: str, ways: tuple[Way, ...], run: Callable[[Way], Row], loop: bool = True) -> None:
        first: float | None = None
        for way in ways:
            progress(f"{where}, {way.name}")
            row = {"per_second": None, "instructions": None, "cycles": None, **run(way)}
            speed = row["per_second"] or 1 / row["instructions"]
            first = first or speed
            rows.append({"where": where, "how": way.name, **row, "loop": loop, "ratio": speed / first})

    ways = (ONE_BY_ONE, BLOCKS)
    add(DESKTOP, ways, _on_this_machine)
    if UNIX.missing() is None:
        add("this machine, MicroPython unix", ways, _unix)
    if instructions.missing() is None:
        add(PI, (ONE_BY_ONE, BLOCKS), _pi)
    for board in built.COUNTING:
        if board.missing() is None:
            add(board.name, ways, lambda way, board=board: _board(board, way), loop=board is catalogue.PICO)  # type: ignore[misc]
    return rows


def _script(way: Way, windows: int, clock: str) -> str:
    """The source of the script. clock: source that defines T(), or "" where the board defines it."""
    pair = pairs.load(PAIR)
    event, shape = pair.info.event_output("ldl"), pair.info.remote.shape
    inputs = Int8Model(_bundle()["ldl.h2m"], event).input_size
    config = {
        **NodeConfig(remote_shape=shape, model_id=pair.info.model_id).content(),
        "event": event,
        "measured": {"local": _scaling(inputs), "remote": _scaling(shape[0]), "window": WINDOW},
    }
    names = {"CONFIG": config, "BLOCK": way.block, "WINDOWS": windows}
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    return head + clock + (material.ON_DEVICE / "signals_bench.py").read_text()


def _scaling(count: int) -> dict[str, list[int]]:
    """The arguments of Measured that make int8 of the first frequencies, x / 8 - 128."""
    return {
        "columns": list(range(count)),
        "multipliers": [1 << 11] * count,
        "offsets": [-128 << 14] * count,
        "shifts": [14] * count,
    }


def _bundle() -> dict[str, bytes]:
    return {"ldl.h2m": from_tflite(pairs.load(PAIR).ldl)}


def _parsed(output: str, windows: int) -> tuple[float, int]:
    """(ticks per measurement, CRC of the scores) of what the script printed."""
    ticks, crc = map(int, output.split())
    return ticks / (windows * WINDOW["size"]), crc  # type: ignore[operator]


# microseconds of this process's processor time: other processes of the machine do not count
CPYTHON_CLOCK = "from time import process_time_ns\ndef T():\n    return process_time_ns() // 1000\n"
UNIX_CLOCK = "from time import clock\ndef T():\n    return int(clock() * 1e6)\n"


def _in_folder(way: Way, windows: int, clock: str, run: Callable[[Path], Any]) -> Any:
    """The result of run(script), of the script in a folder with the bundle."""
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        for name, content in _bundle().items():
            (Path(folder) / name).write_bytes(content)
        script = Path(folder) / "bench.py"
        script.write_text(f"FOLDER = {folder + '/'!r}\n" + _script(way, windows, clock))
        return run(script)


def _on_this_machine(way: Way) -> Row:
    """The fastest of three processes."""

    def run(script: Path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(places.RUNTIME.parent)}
        process = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
        if process.returncode:
            raise Failure(f"{DESKTOP}: {process.stderr[-500:]}")
        return process.stdout

    output = [_in_folder(way, DESKTOP_WINDOWS, CPYTHON_CLOCK, run) for _ in range(RUNS)]
    us, crc = min(_parsed(text, DESKTOP_WINDOWS) for text in output)
    return {"per_second": 1e6 / us, "crc": crc}


def _unix(way: Way) -> Row:
    source = _script(way, DESKTOP_WINDOWS, UNIX_CLOCK)
    us, crc = min(_parsed(drive.run(UNIX, source, _bundle()), DESKTOP_WINDOWS) for _ in range(RUNS))
    return {"per_second": 1e6 / us, "crc": crc}


def _pi(way: Way) -> Row:
    """Instructions of so many windows more, so that the start of Python does not count."""
    counts = []
    for windows in (8, 40):
        instruction_count, output = _in_folder(way, windows, CPYTHON_CLOCK, instructions.count)
        counts.append(instruction_count)
    crc = _parsed(output, windows)[1]
    return {"instructions": (counts[1] - counts[0]) / (32 * WINDOW["size"]), "crc": crc}  # type: ignore[operator]


def _board(board: Emulator, way: Way) -> Row:
    output = drive.run(board, _script(way, BOARD_WINDOWS, ""), _bundle(), 1200, count=True)
    ticks, crc = _parsed(output, BOARD_WINDOWS)
    if board is catalogue.PICO:
        return {"per_second": 1e6 / ticks, "cycles": ticks * CLOCK_HZ / 1e6, "crc": crc}
    return {"instructions": ticks * MACHINES[board.name].tick_ns / (1 << SHIFT), "crc": crc}


def report(rows: list[Row]) -> Report:
    """A line for each place and way; what the count means for a Pi; the goals."""
    columns = {
        "where": lambda row: row["where"] + ("" if row["loop"] else ", without the node's loop"),
        "how": cell("how"),
        "per second": cell("per_second", ",.0f"),
        "cycles": cell("cycles", ",.0f"),
        "instructions": cell("instructions", ",.0f"),
        "speed to one by one": cell("ratio", ".2f"),
        "CRC of the scores": cell("crc", "08x"),
    }
    title = (
        f"measurements per second, cycles and instructions of each; windows of {WINDOW['size']}, statistic fft, {PAIR}'s model"
    )
    tables = [table(title, rows, columns, words=2)]
    estimates = [
        {"pi": name, "per_second": hertz / row["instructions"] / CYCLES_PER_INSTRUCTION}
        for row in rows
        if row["where"] == PI and row["how"] == BLOCKS.name
        for name, hertz in PI_HZ.items()
    ]
    if estimates:
        title = f"one core of a Pi, from these instructions: an estimate with {CYCLES_PER_INSTRUCTION} cycles per instruction"
        tables.append(table(title, estimates, {"board": cell("pi"), "measurements per second": cell("per_second", ",.0f")}))
    return with_goals(tables, broken(rows))


def broken(rows: list[Row]) -> list[str]:
    """The speeds in blocks must reach the goals, and the scores must be equal everywhere."""
    missed = [
        f"{row['where']}: {row['per_second']:,.0f} measurements per second, want {GOALS[row['where']]:,}"
        for row in rows
        if row["how"] == BLOCKS.name and row["where"] in GOALS and row["per_second"] < GOALS[row["where"]]
    ]
    return missed + (["the scores differ between places"] if len({row["crc"] for row in rows}) > 1 else [])

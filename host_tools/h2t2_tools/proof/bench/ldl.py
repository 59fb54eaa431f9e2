"""`h2t2 bench ldl`: one inference, by TFLite's kernels and by the integer interpreter, here, on MicroPython and on an emulated
micro:bit, in one run."""

from __future__ import annotations

import ast
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from h2t2.core.rng import Rng
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model

from ...boards.emulators.catalogue import MICROBIT, UNIX
from ...boards.emulators.microbit import NANOSECONDS, Microbit
from ...common import places
from ...common.report import Report, Table
from ...model.bundle import from_tflite
from ...model.exact import compiler, open_exact
from ...model.inspect import inspect
from .. import usage
from ..networks import NETWORKS
from .on_boards import products

TITLE = "One inference of the local model"


@contextmanager
def made(model: str) -> Iterator[Path]:
    """The .tflite of that path, or of a known network by that name, which is there as long as it is used."""
    if model not in NETWORKS:
        yield Path(model)
        return
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        path = Path(folder) / f"{model}.tflite"
        path.write_bytes(NETWORKS[model]())
        yield path


def measure(progress: Callable[[str], None], path: Path, runs: int = 3) -> list[dict[str, Any]]:
    """Rows {what, us, macs_per_second, crc, heap, instructions, operators, ratio}: the same `runs` inputs each, us of the best.

    operators: of MicroPython, {what, us, macs} a step. heap: bytes at most, beside the bundle, or None where that is not
    measured; of TFLite what a fresh process grows by, library and all. instructions: of the emulated board, whose time
    is not ours (us None there); per_mac: of them a MAC. ratio: of the compiled one, to plain CPython.
    """
    macs = inspect(path)["multiply_accumulates"]
    blob = from_tflite(path)
    rows: list[dict[str, Any]] = []

    def row(what: str, us: float | None, crc: int, heap: int | None, **more: Any) -> None:
        speed = macs / us * 1e6 if us else None
        numbers = {"us": us, "macs_per_second": speed, "crc": crc, "heap": heap}
        rows.append({"what": what, **numbers, "instructions": None, "per_mac": None, "operators": None, "ratio": None, **more})

    for resolver in ("reference", "optimised"):
        progress(f"TFLite {resolver}")
        model = TFLiteModel(str(path), event=0, resolver=resolver)
        inputs = _inputs(np.int8, model.input_shape, runs)
        model.run(inputs[0])
        outputs, best = [], float("inf")
        for x in inputs:
            started = time.perf_counter()
            outputs.append(model.outputs(x).tobytes())
            best = min(best, time.perf_counter() - started)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # this one has memory to give that others left free
            grown = fresh.submit(_grown, str(path), resolver).result()
        row(f"TFLite {resolver}", best * 1e6, _crc(outputs), grown)
    progress("integer interpreter, CPython")
    tracemalloc.start()
    board = Int8Model(blob, 0)  # what it allocates, it does here: a step takes nothing, and would take minutes while watched
    heap = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    outputs, best = [], float("inf")
    for x in _inputs(None, (board.input_size,), runs):
        started = time.perf_counter()
        board.run(x)
        best = min(best, time.perf_counter() - started)
        outputs.append(bytes((u - 128) & 255 for u in board.arena[board.output : board.output + board.classes]))
    row("ours, CPython", best * 1e6, _crc(outputs), heap)
    if compiler():
        progress("integer interpreter, compiled")
        exact = open_exact(path)
        outputs, fastest = [], float("inf")
        for x in _inputs(np.int8, exact.input_shape, runs):
            started = time.perf_counter()
            exact.run(x)
            fastest = min(fastest, time.perf_counter() - started)
            outputs.append(exact.outputs(x).tobytes())
        row("ours, compiled by numba", fastest * 1e6, _crc(outputs), None, ratio=best / fastest)
    if UNIX.missing() is None:
        progress("integer interpreter, MicroPython")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.h2m").write_bytes(blob)
            script = Path(folder) / "bench.py"
            source = (places.on_device() / "ldl_bench.py").read_text()
            script.write_text(f"BUNDLE = {str(Path(folder) / 'model.h2m')!r}\nRUNS = {runs}\n{source}")
            for line in UNIX.run(script, [], places.RUNTIME.parent, timeout=600).splitlines():
                kind, us_text, crc, heap_text, *each = line.split()
                operators = [
                    {"what": f"{n}. {step.__name__}", "us": int(us), "macs": products(step.__name__, p)}
                    for n, (us, (step, p, _)) in enumerate(zip(each, board.steps), 1)
                ]
                row(f"ours, MicroPython {kind}", float(us_text), int(crc), int(heap_text), operators=operators)
    if MICROBIT.missing() is None and len(blob) + len(board.arena) < FITS:
        progress("integer interpreter, emulated micro:bit")
        instructions, crc_text, used = _microbit(board, runs)
        per_mac = instructions / macs if macs else None
        row("ours, emulated micro:bit", None, crc_text, used, instructions=instructions, per_mac=per_mac)
    return rows


FITS = 3500  # bytes of bundle and arena an emulated micro:bit can hold beside the kernels


def _microbit(model: Int8Model, runs: int) -> tuple[float, int, int]:
    """(instructions an inference, CRC of the outputs, bytes of heap with the bundle) of an LDL alone, the heap locked."""
    with Microbit(count=True) as board:
        board.prepare()
        board.run("g=None")
        run, arena = board.load_ldl(places.RUNTIME, model)
        used = board.heap() - board.base
        empty = min(int(board.run("L();t=T();t=T()-t;U();print(t)")) for _ in range(3))
        spent = crc = 0
        for x in _inputs(None, (model.input_size,), runs):
            board.run(f"a={bytes((q + 256) % 256 for q in x)!r}")
            spent += int(board.run(f"L();t=T();{run}(a);t=T()-t;U();print(t)")) - empty
            outputs = board.run(f"print({arena}[{model.output}:{model.output + model.classes}])")
            crc = crc32(ast.literal_eval(outputs.strip().removeprefix("bytearray(").removesuffix(")")), crc)
    return spent * 1000 / NANOSECONDS / runs, crc, used


def _grown(path: str, resolver: str) -> int | None:
    """Bytes by which this process grows when TFLite opens a model and runs it once; None where the system does not tell."""
    if not Path("/proc/self/statm").exists():
        return None
    before = usage.rss_mb(os.getpid())
    model = TFLiteModel(path, event=0, resolver=resolver)
    model.run(np.zeros(model.input_shape, np.int8))
    return round((usage.rss_mb(os.getpid()) - before) * 1e6)


def _inputs(dtype: Any, shape: tuple[int, ...], runs: int) -> list[Any]:
    """The same pseudo-random int8 inputs for everybody: of the device's own generator."""
    rng = Rng(9)
    size = int(np.prod(shape))
    each = [np.array([rng.draw() >> 7 for _ in range(size)], np.uint8) for _ in range(runs)]
    return [x.view(np.int8).reshape(shape) if dtype is not None else x.view(np.int8).tolist() for x in each]


def _crc(outputs: list[bytes]) -> int:
    """Of the outputs as the arena holds them, q + 128."""
    crc = 0
    for output in outputs:
        crc = crc32(bytes((b + 128) & 255 for b in output), crc)
    return crc


def report(rows: list[dict[str, Any]], name: str, runs: int = 3) -> Report:
    """A row an interpreter; times are compared with TFLite's reference kernels."""
    names = ("µs", "times TFLite's reference", "M MAC/s", "instructions", "bytes of heap", "CRC of the outputs")

    def cell(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    cells = [
        [
            row["what"] + (f" ({row['ratio']:,.0f} times plain CPython)" if row["ratio"] else ""),
            cell(row["us"], ",.0f"),
            cell(row["us"] and row["us"] / rows[0]["us"], ".2f"),
            cell(row["us"] and row["macs_per_second"] / 1e6, ",.2f"),
            cell(row["instructions"], ",.0f") + (f" ({row['per_mac']:,.0f} a MAC)" if row["per_mac"] else ""),
            cell(row["heap"], ","),
            f"{row['crc']:08x}",
        ]
        for row in rows
    ]
    parts: Report = [Table(f"{name}: one inference, best of {runs}", {"what": "left", **dict.fromkeys(names, "right")}, cells)]
    return [*parts, *_operators(rows, name)]


def _operators(rows: list[dict[str, Any]], name: str) -> list[Table]:
    """A row a step, machine code beside bytecode, where both were measured."""
    found = {row["what"].rsplit(" ", 1)[1]: row["operators"] for row in rows if row["operators"]}
    if set(found) != {"viper", "plain"}:
        return []
    whole = max(1, sum(each["us"] for each in found["viper"]))
    names = ("µs", "share", "M MAC/s", "µs in bytecode", "times faster")
    cells = [
        [
            fast["what"],
            f"{fast['us']:,}",
            f"{fast['us'] / whole:.1%}",
            f"{fast['macs'] / max(1, fast['us']):,.0f}" if fast["macs"] else "-",
            f"{plain['us']:,}",
            f"{plain['us'] / max(1, fast['us']):,.0f}",
        ]
        for fast, plain in zip(found["viper"], found["plain"])
    ]
    columns = {"operator": "left", **dict.fromkeys(names, "right")}
    return [Table(f"{name}: each operator in MicroPython's machine code, x86-64", columns, cells)]

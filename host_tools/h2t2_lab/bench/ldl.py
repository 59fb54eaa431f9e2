"""`h2t2-lab bench ldl`: times one inference with TFLite's kernels and with the integer interpreter.

The integer interpreter runs here, on MicroPython and on an emulated micro:bit, all in one run.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from h2t2.core.numbers import Rng
from h2t2.cpython.interpreter import python
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators.catalogue import MICROBIT, UNIX
from h2t2_tools.common import places
from h2t2_tools.common.dense_models import dense_only
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report, Table
from h2t2_tools.model.bundle import from_tflite
from h2t2_tools.model.exact import compiler, open_exact
from h2t2_tools.model.inspect import inspect
from h2t2_tools.model.tflite import TREES

from .. import material, usage
from ..boards import drive
from ..boards.microbit import NANOSECONDS, Microbit
from ..networks import NETWORKS
from . import Progress, Row, cell, table
from .on_boards import products

TITLE = "One inference of the local model"
GROWTH = "import json, sys; from h2t2_lab.bench.ldl import growth; print(json.dumps(growth(*sys.argv[1:])))"


@contextmanager
def model_file(model: str) -> Iterator[Path]:
    """Yield the .tflite at a path, or a known network, by its name, in a temporary file."""
    if model not in NETWORKS:
        yield Path(model)
        return
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        path = Path(folder) / f"{model}.tflite"
        path.write_bytes(NETWORKS[model]())
        yield path


def measure(progress: Progress, model: str, runs: Count = 3) -> list[Row]:
    """Time one inference. It compares TFLite's kernels with the integer interpreter on CPython and MicroPython, plain and in
    machine code.

    Args:
        model: a full-int8 .tflite; or (extra convert) mobilenet_v1, resnet_8, ds_cnn, autoencoder
        runs: inputs

    Examples:
        h2t2-lab bench ldl models/chest_xray/ldl.tflite
        h2t2-lab bench ldl resnet_8   # a known network with random weights

    Returns:
        Rows {what, us, macs_per_second, crc, heap, instructions, per_mac, operators, ratio}; a row without a value has None.
        us: the best run, None for an emulated board. heap: bytes at most, without the bundle; for TFLite the growth of a fresh
        process, with the library. instructions, per_mac: on the emulated board, per inference and per MAC. operators: in
        MicroPython, {what, us, macs} for each step. ratio: the compiled interpreter's speed relative to plain CPython.
    """
    with model_file(model) as path:
        return _every_way(progress, path, runs)


def _every_way(progress: Progress, path: Path, runs: int) -> list[Row]:
    about = inspect(path)
    macs, blob = about["multiply_accumulates"], from_tflite(path)
    trees = TREES in {operator["name"] for operator in about["operators"]}  # which TFLite does not run
    rows = [_tflite(progress, path, resolver, runs) for resolver in (() if trees else ("reference", "optimised"))]
    tracemalloc.start()
    board = Int8Model(blob, 0)  # only the constructor allocates; a run would take minutes under tracemalloc
    heap = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    progress("integer interpreter, CPython")
    outputs, us = timed(board.run, _inputs(None, (board.input_size,), runs), lambda *_: _int8_outputs(board))
    rows.append({"what": "ours, CPython", "us": us, "crc": _crc(outputs), "heap": heap})
    if compiler():
        progress("integer interpreter, compiled")
        exact = open_exact(path)
        outputs, fastest = timed(exact.run, _inputs(np.int8, exact.input_shape, runs), lambda x, _: exact.outputs(x).tobytes())
        rows.append({"what": "ours, compiled by numba", "us": fastest, "crc": _crc(outputs), "ratio": us / fastest})
    if UNIX.missing() is None:
        progress("integer interpreter, MicroPython")
        rows += on_micropython(board, runs)
    if MICROBIT.missing() is None and dense_only(board) and len(blob) < MICROBIT_BYTES:
        progress("dense layers, emulated micro:bit")
        instructions, crc, used = _microbit(board, runs)
        counts = {"instructions": instructions, "per_mac": instructions / macs if macs else None}
        rows.append({"what": "bins, emulated micro:bit", "us": None, "crc": crc, "heap": used, **counts})
    empty = dict.fromkeys(("heap", "instructions", "per_mac", "operators", "ratio"))
    return [{**empty, **row, "macs_per_second": macs / row["us"] * 1e6 if row["us"] else None} for row in rows]


def timed(run: Callable[[Any], Any], inputs: list[Any], encode: Callable[[Any, Any], bytes]) -> tuple[list[bytes], float]:
    """Run a model on each input. Return what `encode` makes of input and output, and microseconds of the fastest run."""
    outputs, best = [], float("inf")
    for x in inputs:
        started = time.perf_counter()
        output = run(x)
        best = min(best, time.perf_counter() - started)
        outputs.append(encode(x, output))
    return outputs, best * 1e6


def _tflite(progress: Progress, path: Path, resolver: str, runs: int) -> Row:
    progress(f"TFLite {resolver}")
    model = TFLiteModel(str(path), event=0, resolver=resolver)
    inputs = _inputs(np.int8, model.input_shape, runs)
    model.run(inputs[0])
    outputs, us = timed(model.outputs, inputs, lambda _, output: bytes(output.tobytes()))
    # in another process: TFLite would use free memory of this one first
    heap = subprocess.run(python("-c", GROWTH, str(path), resolver), stdout=subprocess.PIPE, check=True).stdout
    return {"what": f"TFLite {resolver}", "us": us, "crc": _crc(outputs), "heap": json.loads(heap)}


def _int8_outputs(model: Int8Model) -> bytes:
    return bytes((u - 128) & 255 for u in model.arena[model.output : model.output + model.classes])


def on_micropython(board: Int8Model, runs: int) -> list[Row]:
    """Return a row for machine code and one for bytecode, on MicroPython's unix port."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "model.h2m"
        bundle.write_bytes(bytes(board.blob))
        script = Path(folder) / "bench.py"
        source = (material.ON_DEVICE / "ldl_bench.py").read_text()
        script.write_text(f"BUNDLE = {str(bundle)!r}\nRUNS = {runs}\n{source}")
        plain = Path(folder) / "plain"  # the convolutions of the runtime's source become machine code on the board
        shutil.copytree(places.RUNTIME, plain / places.RUNTIME.name, ignore=shutil.ignore_patterns("conv_viper.py"))
        runtimes = [drive.write_runtime(Path(folder) / "viper", drive.PROCESSORS["unix"]), plain]
        for line in [UNIX.run(script, [], runtime, timeout=600) for runtime in runtimes]:
            kind, us, crc, heap, *step_us = line.split()
            operators = [
                {"what": f"{n}. {step.__name__}", "us": int(spent), "macs": products(step.__name__, p)}
                for n, (spent, (step, p, _)) in enumerate(zip(step_us, board.steps), 1)
            ]
            row = {"what": f"ours, MicroPython {kind}", "us": float(us), "crc": int(crc), "heap": int(heap)}
            rows.append({**row, "operators": operators})
    return rows


MICROBIT_BYTES = 3500  # largest bundle that fits into an emulated micro:bit beside the code


def _microbit(model: Int8Model, runs: int) -> tuple[float, int, int]:
    """Return instructions per inference, CRC-32 of the bins and heap bytes of a local model. Raise Failure if bins differ."""
    with Microbit(count=True) as board:
        board.prepare()
        board.load_ldl(model)
        used = board.heap() - board.base
        empty = min(int(board.run("t=T();t=T()-t;print(t)")) for _ in range(3))
        spent, bins, expected = 0, bytearray(), bytearray()
        for x in _inputs(None, (model.input_size,), runs):
            board.run(f"b={bytes(q & 255 for q in x)!r}")
            k, duration = board.run("t=T();a=classify(m,b);t=T()-t;print(a,t)").split()
            spent += int(duration) - empty
            bins.append(int(k))
            expected.append(model.level(model.run(x)) >> 4)
    if bins != expected:
        raise Failure("the bins of the emulated micro:bit differ from this machine's")
    return spent * 1000 / NANOSECONDS / runs, crc32(bins), used


def growth(path: str, resolver: str) -> int | None:
    """Return the bytes by which this process grows when TFLite opens a model and runs it once; None if unknown."""
    if not Path("/proc/self/statm").exists():
        return None
    before = usage.rss_mb(os.getpid())
    model = TFLiteModel(path, event=0, resolver=resolver)
    model.run(np.zeros(model.input_shape, np.int8))
    return round((usage.rss_mb(os.getpid()) - before) * 1e6)


def _inputs(dtype: Any, shape: tuple[int, ...], runs: int) -> list[Any]:
    """Return the same pseudo-random int8 inputs for every interpreter, from the device's own generator."""
    rng = Rng(9)
    size = int(np.prod(shape))
    inputs = [np.array([rng.draw() >> 7 for _ in range(size)], np.uint8) for _ in range(runs)]
    return [x.view(np.int8).reshape(shape) if dtype is not None else x.view(np.int8).tolist() for x in inputs]


def _crc(outputs: list[bytes]) -> int:
    """Return the CRC of int8 outputs as the arena holds them, q + 128."""
    crc = 0
    for output in outputs:
        crc = crc32(bytes((b + 128) & 255 for b in output), crc)
    return crc


def report(rows: list[Row], model: str, runs: int = 3) -> Report:
    """Return a line for each interpreter, with times relative to TFLite's reference kernels."""
    reference_us = rows[0]["us"] if rows[0]["what"].startswith("TFLite") else None  # trees have none
    cells = [
        {
            **row,
            "what": row["what"] + (f" ({row['ratio']:,.0f} times plain CPython)" if row["ratio"] else ""),
            "times": row["us"] and reference_us and row["us"] / reference_us,
            "speed": row["us"] and row["macs_per_second"] / 1e6,
            "spent": cell("instructions", ",.0f")(row) + (f" ({row['per_mac']:,.0f} a MAC)" if row["per_mac"] else ""),
        }
        for row in rows
    ]
    columns = {
        "what": cell("what"),
        "µs": cell("us", ",.0f"),
        "times TFLite's reference": cell("times", ".2f"),
        "M MAC/s": cell("speed", ",.2f"),
        "instructions": cell("spent"),
        "bytes of heap": cell("heap", ","),
        "CRC of the outputs": cell("crc", "08x"),
    }
    return [table(f"{model}: one inference, best of {runs}", cells, columns), *_operators(rows, model)]


def _operators(rows: list[Row], name: str) -> list[Table]:
    """Return a line for each step, machine code against bytecode, if both were measured."""
    operators = {row["what"].rsplit(" ", 1)[1]: row["operators"] for row in rows if row["operators"]}
    if set(operators) != {"viper", "plain"}:
        return []
    total_us = max(1, sum(step["us"] for step in operators["viper"]))
    steps = [{**viper, "plain_us": plain["us"]} for viper, plain in zip(operators["viper"], operators["plain"])]
    columns = {
        "operator": cell("what"),
        "µs": cell("us", ","),
        "share": lambda step: f"{step['us'] / total_us:.1%}",
        "M MAC/s": lambda step: f"{step['macs'] / max(1, step['us']):,.0f}" if step["macs"] else "-",
        "µs in bytecode": cell("plain_us", ","),
        "times faster": lambda step: f"{step['plain_us'] / max(1, step['us']):,.0f}",
    }
    return [table(f"{name}: each operator in MicroPython's machine code, x86-64", steps, columns)]

"""`h2t2 bench ldl`: one inference, by TFLite's kernels and by the integer interpreter, here and on MicroPython, in one run."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import h2t2
from h2t2.ldl import Int8Model
from h2t2.ldl_tflite import TFLiteModel
from h2t2.rng import Rng

from ..emulators import UNIX
from .bundle import write
from .inspect import inspect
from .prepare import plan
from .tflite_file import load


def rows(path: Path, runs: int, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {what, us, macs_per_second, crc, heap}: the same `runs` inputs each; heap: bytes beside the bundle, or None."""
    macs = inspect(path)["multiply_accumulates"]
    blob = write(plan(load(path)))
    made: list[dict[str, Any]] = []

    def row(what: str, us: float, crc: int, heap: int | None) -> None:
        made.append({"what": what, "us": us, "macs_per_second": macs / us * 1e6, "crc": crc, "heap": heap})

    for resolver in ("reference", "optimised"):
        progress(f"TFLite {resolver}")
        model = TFLiteModel(str(path), event=0, resolver=resolver)
        inputs = _inputs(model.quantise([0.0]).dtype, model.input_shape, runs)
        model.run(inputs[0])
        started = time.perf_counter()
        outputs = [model.outputs(x).tobytes() for x in inputs]
        us = (time.perf_counter() - started) / runs * 1e6
        row(f"TFLite {resolver}", us, _crc(outputs), None)
    progress("integer interpreter, CPython")
    tracemalloc.start()
    board = Int8Model(blob, 0)
    heap = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    outputs = []
    started = time.perf_counter()
    for x in _inputs(None, (board.input_size,), runs):
        board.run(x)
        outputs.append(bytes((u - 128) & 255 for u in board.arena[board.output : board.output + board.classes]))
    row("ours, CPython", (time.perf_counter() - started) / runs * 1e6, _crc(outputs), heap)
    if UNIX.missing() is None:
        progress("integer interpreter, MicroPython")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.h2m").write_bytes(blob)
            script = Path(folder) / "bench.py"
            source = (Path(__file__).parents[1] / "on_device/ldl_bench.py").read_text()
            script.write_text(f"BUNDLE = {str(Path(folder) / 'model.h2m')!r}\nRUNS = {runs}\n{source}")
            for line in UNIX.run(script, [], Path(h2t2.__file__).parents[1], timeout=600).splitlines():
                kind, us_text, crc, heap_text = line.split()
                row(f"ours, MicroPython {kind}", float(us_text), int(crc), int(heap_text))
    return made


def _inputs(dtype: Any, shape: tuple[int, ...], runs: int) -> list[Any]:
    """The same pseudo-random int8 inputs for everybody: of the device's own generator."""
    import numpy as np

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

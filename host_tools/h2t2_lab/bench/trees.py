"""`h2t2-lab bench trees`: one inference of a random forest, by our interpreters and, where installed, by emlearn's C code."""

import subprocess
import tempfile
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.extras import install_hint
from h2t2_tools.common.fields import Count
from h2t2_tools.common.report import Report
from h2t2_tools.model.bundle import from_tflite
from h2t2_tools.model.convert.from_scikit import from_object
from h2t2_tools.model.exact import compiler, open_exact

from .. import material
from . import Progress, Row, cell, table
from .ldl import on_micropython, timed

TITLE = "A random forest, and emlearn"
INT16 = 32000  # what emlearn's features of 16 bits are scaled to
REPEATS = 2000  # of every sample, for a time that a C program can measure
PROGRAM = material.text("programs/forest.c.txt")


def measure(progress: Progress, trees: Count = 20, depth: Count = 7, runs: Count = 20) -> list[Row]:
    """Time one inference of a random forest. It compares size, accuracy and time of CPython, numba, MicroPython and, where it
    is installed, emlearn's C code.

    Args:
        trees: trees of each forest
        depth: depth of the trees at most
        runs: samples that are timed

    Returns:
        Rows {data, what, bytes, us, accuracy}. bytes: of the model, without code; us: of the fastest sample, or emlearn's mean.
    """
    try:
        from sklearn.datasets import load_breast_cancer, load_digits
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise UserError(f"h2t2-lab bench trees needs scikit-learn; {install_hint('convert')}") from None
    rows = []
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        x, y = load(return_X_y=True)
        order = np.random.default_rng(1).permutation(len(x))
        x, y, half = x[order], y[order], len(x) * 2 // 3
        scale = INT16 / np.maximum(np.abs(x).max(0), 1e-9)
        forest = RandomForestClassifier(trees, max_depth=depth, random_state=0)
        progress(f"{name}: h2t2")
        forest.fit(x[:half], y[:half])
        rows.append({"data": name, "what": "scikit-learn, floats", "accuracy": float(forest.score(x[half:], y[half:]))})
        rows += [{"data": name, **row} for row in _ours(forest, x, y, half, runs)]
        progress(f"{name}: emlearn")
        scaled = np.round(x * scale).astype(np.int16)
        rows.append({"data": name, **_emlearn(forest.fit(scaled[:half], y[:half]), scaled[half:], y[half:], runs)})
    return rows


def _ours(forest: Any, x: np.ndarray, y: np.ndarray, half: int, runs: int) -> list[Row]:
    """A row for each interpreter."""
    source = from_object(forest)
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        path = Path(folder) / "trees.tflite"
        path.write_bytes(source.quantise(source.prepared(x[:half])))
        blob = from_tflite(path)
        exact, board = open_exact(path), Int8Model(blob, 0)
        inputs = [exact.quantise(row) for row in source.prepared(x[half:])]
        scores = np.array([exact.scores(q) for q in inputs])
        decided = scores.argmax(1) if scores.shape[1] > 1 else scores[:, 0] >= 0.5
        about = {"bytes": len(blob), "accuracy": float((decided == y[half:]).mean())}
        plain = [q.tolist() for q in inputs[:runs]]
        rows = [{"what": "h2t2, CPython", "us": timed(board.run, plain, lambda *_: b"")[1], **about}]
        if compiler():
            rows.append({"what": "h2t2, compiled by numba", "us": timed(exact.run, inputs[:runs], lambda *_: b"")[1], **about})
        if UNIX.missing() is None:
            rows += [
                {"what": row["what"].replace("ours", "h2t2"), "us": row["us"], **about} for row in on_micropython(board, runs)
            ]
    return rows


def _emlearn(forest: Any, x: np.ndarray, y: np.ndarray, runs: int) -> Row:
    """emlearn's C code of a forest on int16 features, compiled here. Its row says what is missing where it cannot be."""
    try:
        import emlearn
    except ImportError:
        return {"what": "emlearn: not installed (pip install emlearn)"}
    if which("cc") is None:
        return {"what": "emlearn: no C compiler (cc) here"}
    converted = emlearn.convert(forest, method="loadable", dtype="int16_t", leaf_bits=8)
    flat, size = converted.forest_, x.shape[1]
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        Path(folder, "model.h").write_text(converted.save(name="model", format="c"))
        samples = ",".join(map(str, x.ravel()))
        numbers = (len(x), size, size, REPEATS, runs, size, size, REPEATS, runs)
        Path(folder, "main.c").write_text(PROGRAM % (samples, *numbers))
        command = ["cc", "-O2", "-w", "-I", emlearn.includedir, "main.c", "-o", "main", "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        *decided, us = subprocess.run([f"{folder}/main"], check=True, capture_output=True, text=True).stdout.split()
    nodes, leaves = flat[0], flat[1]
    return {
        "what": "emlearn, C", "bytes": 8 * len(nodes) + 4 * len(forest.estimators_) + len(np.ravel(leaves)), "us": float(us),
        "accuracy": float((np.array(decided, int) == y).mean()),
    }  # fmt: skip


def report(rows: list[Row]) -> Report:
    """A line for each interpreter."""
    columns = {
        "data": cell("data"),
        "what": cell("what"),
        "bytes": cell("bytes", ","),
        "µs": cell("us", ",.1f"),
        "accuracy": cell("accuracy", ".1%"),
    }
    return [table("One inference of a random forest", rows, columns, words=2)]

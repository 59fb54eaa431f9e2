"""Score traces: a local model's scores of samples and the remote labels. Reads .csv and .npz files and checks every value."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..common.delimited import read_rows
from ..common.errors import UserError
from ..common.npz import open_npz


@dataclass(frozen=True)
class Trace:
    """Scores and labels of n samples.

    Attributes:
        name: Name of the trace.
        score: (n,) scores of class 1 or (n, K) class scores, in [0, 1].
        label: (n,) class numbers.
        beta: (n,) cost of an offload, in [0, 1]; None: the trace states none.
    """

    name: str
    score: np.ndarray
    label: np.ndarray
    beta: np.ndarray | None = None

    @property
    def classes(self) -> int:
        return 2 if self.score.ndim == 1 else self.score.shape[1]


def checked(trace: Trace, where: str) -> Trace:
    """Return the trace unchanged.

    Raises:
        UserError: A value is out of range; the message names `where` and the row.
    """
    score, label, beta = trace.score, trace.label, trace.beta
    if score.ndim not in (1, 2) or not len(score) or len(score) != len(label):
        raise UserError(f"{where}: {len(score)} scores, {len(label)} labels; want as many of each, at least one")
    if score.ndim == 2 and not 2 <= score.shape[1] <= 16:
        raise UserError(f"{where}: {score.shape[1]} class scores; want 2 to 16")
    rows = score if score.ndim == 2 else score[:, None]
    for problem, bad in (
        ("a score that is not a number in [0, 1]", ~((rows >= 0) & (rows <= 1)).all(1)),
        (f"a label that is not a class 0..{trace.classes - 1}", (label < 0) | (label >= trace.classes)),
        ("a beta that is not a number in [0, 1]", np.zeros(1, bool) if beta is None else ~((beta >= 0) & (beta <= 1))),
    ):
        if bad.any():
            raise UserError(f"{where}: row {int(np.argmax(bad)) + 1} has {problem}")
    if beta is not None and len(beta) != len(label):
        raise UserError(f"{where}: {len(beta)} values of beta, {len(label)} labels")
    if score.ndim == 2 and float(np.max(abs(score.sum(1) - 1))) > 0.05:
        raise UserError(f"{where}: row {int(np.argmax(abs(score.sum(1) - 1))) + 1}: class scores do not sum to 1")
    return trace


def load(path: Path) -> Trace:
    """Load a trace.

    Args:
        path: An .npz file with score, label and perhaps beta, or a .csv or .parquet file whose header names score (or score0,
            score1, ..), label and perhaps beta.

    Raises:
        UserError: The file does not exist, is not a trace, or holds a value that is out of range.
    """
    try:
        trace = _npz(path) if path.suffix == ".npz" else _csv(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise UserError(f"{path}: not a trace: {error}") from None
    return checked(trace, str(path))


def _npz(path: Path) -> Trace:
    with open_npz(path) as data:
        missing = {"score", "label"} - set(data.files)
        if missing:
            raise ValueError(f"no array {' or '.join(sorted(missing))}; it has {', '.join(data.files)}")
        beta = data["beta"].astype(float) if "beta" in data.files else None
        name = str(data["name"]) if "name" in data.files else path.stem
        return Trace(name, data["score"].astype(float), data["label"].astype(np.int64), beta)


def _csv(path: Path) -> Trace:
    (_, names), *rows = read_rows(path) or [(1, [])]
    header = [name.strip().lower() for name in names]
    scores = [n for n, name in enumerate(header) if name == "score" or name[:5] == "score" and name[5:].isdigit()]
    if not scores or "label" not in header:
        raise ValueError("the first line must name the columns: score (or score0, score1, ..), label, and beta if any")
    table = []
    for number, row in rows:
        try:
            table.append([float(field) for field in row])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if len(row) != len(header):
            raise ValueError(f"line {number}: {len(row)} fields, the header has {len(header)}")
    values = np.array(table, float).reshape(-1, len(header))
    score = values[:, scores[0]] if len(scores) == 1 else values[:, scores]
    label = values[:, header.index("label")]
    if (label != np.floor(label)).any():
        raise ValueError(f"line {int(np.argmax(label != np.floor(label))) + 2}: a label that is not a whole number")
    beta = values[:, header.index("beta")] if "beta" in header else None
    return Trace(path.stem, score, label.astype(np.int64), beta)


def save(path: Path, trace: Trace) -> None:
    """Write a trace as .npz or .csv."""
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {"name": trace.name, "score": trace.score.astype(np.float32)}
        arrays["label"] = trace.label.astype(np.uint8)
        if trace.beta is not None:
            arrays["beta"] = trace.beta
        np.savez_compressed(path, **arrays)
        return
    columns = {"score": trace.score} if trace.score.ndim == 1 else {f"score{n}": f for n, f in enumerate(trace.score.T)}
    columns["label"] = trace.label
    if trace.beta is not None:
        columns["beta"] = trace.beta
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values())))

"""Score traces: a local model's scores of samples and the remote labels. Reads .csv and .npz files and checks every value."""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..common import tables
from ..common.delimited import TABLES, read_columns
from ..common.errors import UserError
from ..common.event import event_names, named_event
from ..common.labels import class_numbers
from ..common.npz import open_npz
from ..common.tables import WHOLE, SampleTable, Selection
from ..common.untrusted import one_line


@dataclass(frozen=True)
class Trace:
    """Scores and labels of n samples.

    Attributes:
        name: Name of the trace.
        score: (n,) scores of class 1 or (n, K) class scores, in [0, 1].
        label: (n,) class numbers.
        beta: (n,) cost of an offload, in [0, 1]; None: the trace states none.
        names: Of the classes; None: numbers.
    """

    name: str
    score: np.ndarray
    label: np.ndarray
    beta: np.ndarray | None = None
    names: list[str] | None = None

    @property
    def event(self) -> str:
        """The name of class 1 of two classes."""
        return self.names[1] if self.names else "class 1"

    @property
    def classes(self) -> int:
        return 2 if self.score.ndim == 1 else self.score.shape[1]


def checked(trace: Trace, where: str) -> Trace:
    """Return the trace, whose scores of two classes become those of class 1.

    Raises:
        UserError: A value is out of range; the message names `where` and the row.
    """
    score, label, beta = trace.score, trace.label, trace.beta
    if score.ndim not in (1, 2) or not len(score) or len(score) != len(label):
        raise UserError(f"{where}: {len(score)} scores, {len(label)} labels; want as many of each, at least one")
    if beta is not None and len(beta) != len(label):
        raise UserError(f"{where}: {len(beta)} values of beta, {len(label)} labels")
    if score.ndim == 2 and not 1 <= score.shape[1] <= 16:
        raise UserError(f"{where}: {score.shape[1]} class scores; want 2 to 16")
    if score.ndim == 2 and score.shape[1] <= 2:
        _check_sums(score, where)
        trace = replace(trace, score=score[:, -1])
        score = trace.score
    rows = score if score.ndim == 2 else score[:, None]
    for problem, bad in (
        ("a score that is not a number in [0, 1]", ~((rows >= 0) & (rows <= 1)).all(1)),
        (f"a label that is not a class 0..{trace.classes - 1}", (label < 0) | (label >= trace.classes)),
        ("a beta that is not a number in [0, 1]", np.zeros(1, bool) if beta is None else ~((beta >= 0) & (beta <= 1))),
    ):
        if bad.any():
            raise UserError(f"{where}: row {int(np.argmax(bad)) + 1} has {problem}")
    if score.ndim == 2:
        _check_sums(score, where)
    return trace


def _check_sums(score: np.ndarray, where: str) -> None:
    """UserError where the scores of several classes, (n, K), do not sum to 1."""
    off = abs(score.sum(1) - 1)
    if score.shape[1] > 1 and (off > 0.05).any():
        raise UserError(f"{where}: row {int(np.argmax(off > 0.05)) + 1}: class scores do not sum to 1")


def load(path: Path, selection: Selection = WHOLE, event: str | None = None) -> Trace:
    """Load a trace.

    Args:
        path: An .npz file with score, label and perhaps beta, or a .csv or .parquet file whose header names score (or score0,
            score1, ..), a label and perhaps beta. Other columns are not read.
        selection: What the user says of the columns, and of samples that lack a score or their label.
        event: The class that is class 1, its number or its name; None: as named_event() has it. A score is that of the event
            where labels are words, and that of 1 where they are 0 and 1.

    Raises:
        UserError: The file does not exist, is not a trace, holds a value that is out of range, or nobody names the event.
    """
    try:
        name, table, classes, stored = (_csv if path.suffix in TABLES else _npz)(path, selection)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise UserError(f"{path}: not a trace: {error}") from None
    table = tables.complete(path, table, selection)
    assert table.labels is not None
    label, names = class_numbers(path, table.labels, max(classes, 2))
    beta = table.x[:, classes] if table.x.shape[1] > classes else None
    trace = Trace(name, table.x[:, :classes], label, beta, stored)
    if classes == 1:
        return _with_event(trace, names, event, str(path))
    if names:
        wanted = f"a trace numbers its classes as its scores, 0 to {max(classes, 2) - 1}"
        raise UserError(f"{path}: the labels are {', '.join(names)}; {wanted}")
    if event is not None:
        raise UserError(f"--event: of {classes} classes none is the event")
    return checked(trace, str(path))


def _with_event(trace: Trace, names: list[str] | None, event: str | None, where: str) -> Trace:
    """Return a trace of one score whose class 1 is the event. names: of the labels' classes; None: they are numbers.

    Raises:
        UserError: As load().
    """
    if event is None and trace.names and not names:
        return checked(trace, where)
    number = named_event(event, names or trace.names, len(names or (0, 1)), where)
    if names:
        own = (trace.label == number).astype(np.int64)
        return named(checked(replace(trace, label=own), where), event_names(names, number), where)
    trace = checked(trace, where)
    if number == 1:
        return trace
    turned = (trace.names or ["class 0", "class 1"])[::-1]
    return replace(trace, score=1 - trace.score, label=1 - trace.label, names=turned)


def named(trace: Trace, names: list[str] | None, where: str) -> Trace:
    """Return a trace of two classes with their names. UserError where its scores are those of the other class."""
    held = trace.label == 1
    if names and 0 < held.sum() < len(held) and trace.score[held].mean() < trace.score[~held].mean():
        raise UserError(f"{where}: its scores are higher for {names[0]} than for {names[1]}, which shall be the event")
    return replace(trace, names=names)


def _npz(path: Path, selection: Selection) -> tuple[str, SampleTable, int, list[str] | None]:
    """The name of a trace, its scores and perhaps beta with the labels, the number of scores, and the names of the classes.
    ValueError for others.
    """
    tables.refuse_selection(path, selection)
    with open_npz(path) as data:
        missing = {"score", "label"} - set(data.files)
        if missing:
            raise ValueError(f"no array {' or '.join(sorted(missing))}; it has {', '.join(data.files)}")
        columns = [data[name] for name in ("score", "beta") if name in data.files]
        label, name = data["label"], str(data["name"]) if "name" in data.files else path.stem
        names = [one_line(str(text)) for text in data["names"].ravel()] if "names" in data.files else None
    for array, what in zip(columns, ("score", "beta")):
        fits = array.ndim in (1, 2) and len(array) == len(columns[0]) and (what == "score" or array.size == len(array))
        if array.dtype.kind not in "fiub" or not fits:
            each = "one, or a row of all classes," if what == "score" else "one"
            raise ValueError(f"{what} is {array.dtype} of shape {array.shape}; want numbers, {each} for each sample")
    if label.ndim not in (1, 2) or len(label) != len(columns[0]):
        raise ValueError(f"{len(columns[0])} scores, labels of shape {label.shape}; want as many of each")
    numbers = np.column_stack([array.astype(float) for array in columns])
    scores = 1 if columns[0].ndim == 1 else columns[0].shape[1]
    if names and len(names) != max(scores, 2):
        raise ValueError(f"{len(names)} names for {max(scores, 2)} classes")
    return name, SampleTable(numbers, label), scores, names


def _csv(path: Path, selection: Selection) -> tuple[str, SampleTable, int, None]:
    """The same of a .csv or .parquet file."""
    columns = tables.without(path, read_columns(path), selection)
    header = [name.casefold() for name in columns.names]
    scores = [n for n, name in enumerate(header) if re.fullmatch("score[0-9]*", name)]
    scores.sort(key=lambda n: int(header[n].removeprefix("score") or 0))
    named = [n for n, name in enumerate(header) if n in scores or name == "beta"]
    label = tables.label_column(path, columns, selection, {columns.names[n] for n in named})
    if not scores or label is None:
        raise ValueError("want the columns score (or score0, score1, ..), label (or what --label names), and beta if any")
    if [header[n] for n in scores] not in (["score"], [f"score{n}" for n in range(len(scores))]):
        found = ", ".join(columns.names[n] for n in scores)
        raise ValueError(f"its scores are {found}; want score of class 1, or score0, score1, .. of every class")
    read = [*scores, *(n for n in named if n not in scores)]
    numbers = np.array([tables.numbers(path, columns, n) for n in read]).T
    labels = np.array([row[label] for row in columns.rows])
    return path.stem, SampleTable(numbers, labels, [columns.names[n] for n in read], columns.lines), len(scores), None


def save(path: Path, trace: Trace) -> None:
    """Write a trace as .npz or .csv."""
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {"name": trace.name, "score": trace.score.astype(np.float32)}
        arrays["label"] = trace.label.astype(np.uint8)
        for key, value in (("beta", trace.beta), ("names", trace.names)):
            if value is not None:
                arrays[key] = value
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

"""`h2t2 score`: makes a trace from the scores of a model on a data set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..common import tables
from ..common.delimited import TABLES
from ..common.errors import UserError
from ..common.event import event_names, named_event
from ..common.finite import check_finite
from ..common.labels import class_numbers
from ..common.pairs import PairInfo
from ..common.tables import WHOLE, Selection
from . import traces
from .traces import Trace


def _samples(data: str, selection: Selection, columns: list[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """The samples of a file, (n, ...), with the columns that are named or numbered alone, and their labels, as they stand."""
    path = Path(data)
    if path.suffix not in (*TABLES, ".npz"):
        clone = "in a clone, h2t2-lab dataset writes that of a published data set"
        raise UserError(f"{data}: want a .csv, a .parquet, or an .npz of x and y; {clone}")
    x, labels, names, _ = tables.complete(data, tables.read(path, selection), selection)
    if labels is None:
        raise UserError(f"{data}: no labels; want an .npz of x and y, or a .csv with --label COLUMN")
    numbers = tables.column_numbers("--columns", columns, names, data)
    if numbers is not None:
        if x.ndim != 2 or not all(0 <= c < x.shape[1] for c in numbers):
            raise UserError(f"--columns: {data} has samples of shape {x.shape[1:]}")
        x = x[:, numbers]
    return x, labels


def score(
    ldl: Any,
    model: Path,
    data: str,
    *,
    event: str | None,
    columns: list[str] | None,
    scale: float | None,
    selection: Selection = WHOLE,
    pair: PairInfo | None = None,
    progress: Callable[[int, int], None],
) -> Trace:
    """Return the trace of a model on labelled samples.

    With two outputs, or an `event`, the trace holds the scores of the event; otherwise all class scores. Where labels are
    words, the outputs of a model that is no pair's are in the order of the alphabet, as scikit-learn and Keras have them.

    Args:
        ldl: The opened model.
        model: Its file, which messages name.
        data: Path of a .csv with a header, a .parquet, or an .npz file with x and y.
        event: The class that is class 1, its name or number; None: the pair's, or as named_event() has it.
        columns: Features of x that the model reads, their names or numbers from 0; None: all.
        scale: Divisor of x; None: 255 for bytes, 1 for other numbers.
        selection: What the user says of the columns of a table, and of samples that lack a number or their label.
        pair: Whose local model it is: it reads the pair's numbers of a sample, as the pair prepares them; None: no pair's.
        progress: Called with the samples done and their total.
    """
    if scale is not None and scale <= 0:
        raise UserError(f"--scale {scale:g}: want a number above 0")
    x, labels = _samples(data, selection, columns)
    y, names = class_numbers(data, labels, max(ldl.classes, 2), pair.class_names if pair else None)
    name = Path(data).stem
    divisor = scale if scale is not None else 255.0 if x.dtype == np.uint8 else 1.0
    inputs = _inputs(x, divisor, pair)
    if len(x) != len(y) or inputs is None or int(np.prod(inputs.shape[1:])) != int(np.prod(ldl.input_shape)):
        takes = f"{ldl.input_shape[1:]}" if pair is None or not pair.columns["ldl"] else f"the numbers {pair.columns['ldl']}"
        raise UserError(f"{data}: {len(x)} samples of shape {x.shape[1:]}, {len(y)} labels; {model} takes {takes}")
    check_finite(inputs, data)
    scores = np.zeros((len(x), ldl.classes))
    for n, sample in enumerate(inputs):
        scores[n] = ldl.scores(ldl.quantise(sample if pair else sample.astype(np.float32) / divisor))
        if n % 64 == 63 or n + 1 == len(x):
            progress(n + 1, len(x))
    if pair is None or pair.costs:
        if ldl.classes > 2 and event is None:
            return traces.checked(Trace(name, scores, y, names=names if names and len(names) == ldl.classes else None), data)
        number = named_event(event, names, max(ldl.classes, len(names or (0, 1))), data)
        picked = _scores_of(scores, number, len(names or ()))
    else:
        picked = scores[:, pair.event_output("ldl")]
        number = named_event(event or (pair.event_name if names else None), names, 2, data)
    trace = traces.checked(Trace(name, picked, (y == number).astype(np.int64)), data)
    return traces.named(trace, event_names(names, number), data)


def _scores_of(scores: np.ndarray, number: int, labelled: int) -> np.ndarray:
    """The scores of a class, (n,), by its number, of the scores of all outputs. A single output scores class 1 of two.

    labelled: classes of the labels; where the outputs are fewer, the last one is the event's.
    """
    if labelled > max(scores.shape[1], 2):
        return scores[:, -1]
    if scores.shape[1] == 1:
        return scores[:, 0] if number else 1 - scores[:, 0]
    return scores[:, number]


def _inputs(x: np.ndarray, divisor: float, pair: PairInfo | None) -> np.ndarray | None:
    """What the model reads of samples (n, ...), before it is quantised; None where the pair reads numbers that they lack."""
    if pair is None:
        return x  # pictures of bytes become floats one by one
    try:
        return np.array([pair.model_input(sample, "ldl") for sample in x / divisor])
    except (IndexError, ValueError):
        return None


def confusion(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the accuracy and, for two classes, false positives and negatives as shares of all samples.

    Args:
        scores: (n,) of class 1, or (n, K) of every class.
        labels: (n,) class numbers.
    """
    if scores.ndim == 2:
        return {"accuracy": float(np.mean(scores.argmax(1) == labels))}
    guess = scores >= 0.5
    return {
        "accuracy": float(np.mean(guess == labels)),
        "fp": float(np.mean(guess & (labels == 0))),
        "fn": float(np.mean(~guess & (labels == 1))),
    }


def summary(trace: Trace) -> dict[str, Any]:
    """Return samples, classes and accuracy of a trace; for two classes also fp and fn as shares of all samples."""
    return {"samples": len(trace.label), "classes": trace.classes, **confusion(trace.score, trace.label)}

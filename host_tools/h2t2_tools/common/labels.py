"""Labels as people have them: class names, numbers from 0 or 1, one-hot rows. They become class numbers from 0."""

import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .delimited import read_rows
from .errors import UserError
from .fields import LONGEST_NAME

LABEL_COLUMNS = ("label", "class", "target", "y")
UNKNOWN = -1  # number of a text that is no category


def class_numbers(
    where: object, y: np.ndarray, classes: int = 0, names: list[str] | None = None
) -> tuple[np.ndarray, list[str] | None]:
    """Return labels as class numbers, int64 (n,), and the names of the classes.

    Names are numbered in alphabetical order, as scikit-learn and Keras do. Numbers from 0 stay as they are and have no names.
    Other numbers, such as 1 and 2, are numbered in their order, and are the names. One-hot rows give their column.

    Args:
        where: What the labels come from, for messages.
        y: (n,) texts or whole numbers, or (n, K) of 0 and 1 with a single 1 in each row.
        classes: Number of classes of a model; numbers below it stay as they are, also without a 0. 0: unknown.
        names: Classes of a model in its order, which labels that are among them get.

    Raises:
        UserError: The labels are something else.
    """
    y = np.asarray(y)
    if names and y.ndim == 1 and set(texts := y.astype(str).tolist()) <= set(names):
        return np.array([names.index(text) for text in texts]), [plain_name(name) for name in names]
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype.kind not in "fiub" or not np.isin(y, (0, 1)).all() or not (y.sum(1) == 1).all():
            raise UserError(f"{where}: labels of shape {y.shape} are not one-hot: want a single 1 in each row")
        return y.argmax(1).astype(np.int64), None
    y = y.ravel()
    if y.dtype.kind in "USO":
        words, numbers = np.unique(y.astype(str), return_inverse=True)
        if all(re.fullmatch(r"-?\d+", word) for word in words):
            return class_numbers(where, y.astype(np.int64), classes)
        return numbers.astype(np.int64), [plain_name(word) for word in words]
    if y.dtype.kind not in "fiub" or not np.isfinite(y.astype(float)).all() or (y != np.round(y)).any():
        raise UserError(f"{where}: labels are class names or whole numbers; it holds {y[:5].tolist()}")
    y = y.astype(np.int64)
    if not len(y) or y.min() == 0 or y.min() == y.max() or (y.min() > 0 and y.max() < classes):
        return y, None
    values, numbers = np.unique(y, return_inverse=True)
    return numbers.astype(np.int64), [str(value) for value in values.tolist()]


def plain_name(name: str) -> str:
    """Return a class's name with its unusual characters replaced by "_", cut to LONGEST_NAME."""
    return re.sub(r"[^\w .+-]", "_", name)[:LONGEST_NAME] or "_"


def class_of(option: str, text: str, names: list[str] | None) -> int:
    """Return the number of a class that a user names, or numbers. UserError, naming the option, for no class."""
    if names and text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 6:
        return int(text)
    known = f"; want one of {', '.join(names)}" if names else "; want its number, from 0"
    raise UserError(f"{option} {text}: there is no such class{known}")


def described(names: list[str]) -> str:
    """Return class names in words: "0 cat, 1 dog"."""
    return ", ".join(f"{n} {name}" for n, name in enumerate(names))


class Table(NamedTuple):
    """Samples of a .csv file.

    Attributes:
        x: (n, numbers).
        labels: (n,) texts, or None.
        columns: The names of the numbers.
    """

    x: np.ndarray
    labels: np.ndarray | None
    columns: list[str]


def table(path: Path, texts: dict[str, list[str]] | None = None) -> Table:
    """Return the samples of a .csv with a header, or of a .parquet.

    The labels are in the column label, class, target or y, or in the only column of words. Without either there are none. An
    empty field is NaN.

    Args:
        path: The file.
        texts: Name of a column of words -> the words that its numbers from 0 up stand for; another word becomes -1.

    Raises:
        UserError: The file has no header, no numbers, or a field that is no number. The message names the line.
    """
    (_, header), *rows = read_rows(path) or [(1, [])]
    header, known = [name.strip() for name in header], texts or {}
    if not rows or all(_is_number(field) for field in header):
        raise UserError(f"{path}: the first line names the columns, and the others hold a sample each")
    for n, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path}, line {n}: {len(row)} fields, the header has {len(header)}")
    named = [n for n, name in enumerate(header) if name.lower() in LABEL_COLUMNS and name not in known]
    words = [n for n, name in enumerate(header) if name not in known and not _is_number(rows[0][1][n] or "0")]
    label = named[0] if named else words[0] if len(words) == 1 else None
    numbers = [n for n in range(len(header)) if n != label]
    if not numbers:
        raise UserError(f"{path}: it has the column {header[0]!r} alone; want a column for each number of a sample")

    def number(line: int, column: int, text: str) -> float:
        if not text.strip():
            return math.nan
        if words_of := known.get(header[column]):
            return words_of.index(text.strip()) if text.strip() in words_of else UNKNOWN
        if not _is_number(text):
            raise UserError(f"{path}, line {line}: {header[column]} is {text[:20]!r}, want a number")
        return float(text)

    x = np.array([[number(line, column, row[column]) for column in numbers] for line, row in rows])
    labels = None if label is None else np.array([row[label].strip() for _, row in rows])
    return Table(x, labels, [header[column] for column in numbers])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

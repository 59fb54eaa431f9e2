"""Labels as people have them: class names, numbers from 0 or 1, one-hot rows. They become class numbers from 0."""

import csv
import re
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from .errors import UserError

LABEL_COLUMNS = ("label", "class", "target", "y")
LONGEST_NAME = 40  # characters of a class's name
ClassName = Annotated[str, Field(pattern=rf"^[\w .+-]{{1,{LONGEST_NAME}}}$")]  # no character of a template, a topic or HTML


def class_numbers(where: object, y: np.ndarray, classes: int = 0) -> tuple[np.ndarray, list[str] | None]:
    """Return labels as class numbers, int64 (n,), and the names of the classes.

    Names are numbered in alphabetical order, as scikit-learn and Keras do. Numbers from 0 stay as they are and have no names.
    Other numbers, such as 1 and 2, are numbered in their order, and are the names. One-hot rows give their column.

    Args:
        where: What the labels come from, for messages.
        y: (n,) texts or whole numbers, or (n, K) of 0 and 1 with a single 1 in each row.
        classes: Number of classes of a model; numbers below it stay as they are, also without a 0. 0: unknown.

    Raises:
        UserError: The labels are something else.
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype.kind not in "fiub" or not np.isin(y, (0, 1)).all() or not (y.sum(1) == 1).all():
            raise UserError(f"{where}: labels of shape {y.shape} are not one-hot: want a single 1 in each row")
        return y.argmax(1).astype(np.int64), None
    y = y.ravel()
    if y.dtype.kind in "USO":
        names, numbers = np.unique(y.astype(str), return_inverse=True)
        if all(re.fullmatch(r"-?\d+", name) for name in names):
            return class_numbers(where, y.astype(np.int64), classes)
        return numbers.astype(np.int64), [plain_name(name) for name in names]
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


def event_names(names: list[str] | None, event: int) -> list[str] | None:
    """Return the names of class 0 and class 1 where one of the named classes is the event."""
    if not names:
        return None
    no = names[1 - event] if len(names) == 2 else f"not {names[event]}"[:LONGEST_NAME]
    return [no, names[event]]


def described(names: list[str]) -> str:
    """Return class names in words: "0 cat, 1 dog"."""
    return ", ".join(f"{n} {name}" for n, name in enumerate(names))


def table(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the samples (n, numbers) and the labels of a .csv with a header.

    The labels are in the column label, class, target or y, or in the only column of words. Without either there are none.

    Raises:
        UserError: The file has no header, or a field that is no number. The message names the line.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            (_, header), *rows = [(n, row) for n, row in enumerate(csv.reader(file), 1) if row] or [(1, [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None
    if not rows or all(_is_number(field) for field in header):
        raise UserError(f"{path}: the first line names the columns, and the others hold a sample each")
    for n, row in rows:
        if len(row) != len(header):
            raise UserError(f"{path}, line {n}: {len(row)} fields, the header has {len(header)}")
    named = [n for n, name in enumerate(header) if name.strip().lower() in LABEL_COLUMNS]
    words = [n for n in range(len(header)) if not _is_number(rows[0][1][n])]
    label = named[0] if named else words[0] if len(words) == 1 else None
    numbers = [n for n in range(len(header)) if n != label]
    for n, row in rows:
        for column in numbers:
            if not _is_number(row[column]):
                raise UserError(f"{path}, line {n}: {header[column]} is {row[column][:20]!r}, want a number")
    x = np.array([[float(row[column]) for column in numbers] for _, row in rows])
    return x, None if label is None else np.array([row[label].strip() for _, row in rows])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

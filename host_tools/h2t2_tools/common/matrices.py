"""Reads matrices of three classes or more from .csv files: the costs of mistakes, and the errors of a remote model."""

from pathlib import Path

from .delimited import number, read_rows
from .errors import UserError, as_user_error


def read_confusion(path: Path, classes: int) -> list[list[float]]:
    """Read how often a remote model says each class.

    Args:
        path: a .csv of counts or shares, with a line for each true class and a column for each class that the model says.
        classes: number of classes; 0: as many as the file has lines.

    Returns:
        (classes, classes) shares; each row adds up to 1.

    Raises:
        UserError: the file holds no such matrix. The message names the line.
    """
    rows = _read_square(path, classes)
    for n, row in enumerate(rows, 1):
        if min(row) < 0 or not 0 < sum(row) < float("inf"):
            raise UserError(f"{path}, line {n}: want {classes} counts or shares, none below 0, not all of them 0")
    return [[x / sum(row) for x in row] for row in rows]


def read_costs(path: Path, classes: int) -> list[list[float]]:
    """Read what each decision costs.

    Args:
        path: a .csv of costs from 0 to 1, with a line for each true class and a column for each decision.
        classes: number of classes; 0: as many as the file has lines.

    Returns:
        (classes, classes) costs; the diagonal is 0.

    Raises:
        UserError: the file holds no such matrix. The message names the line.
    """
    rows = _read_square(path, classes)
    for n, row in enumerate(rows, 1):
        if row[n - 1] or not all(0 <= x <= 1 for x in row):
            raise UserError(f"{path}, line {n}: want costs from 0 to 1, and 0 in column {n}, for what is said rightly")
    return rows


def equal_costs(classes: int) -> list[list[float]]:
    """Costs of 1 for every mistake."""
    return [[float(i != j) for j in range(classes)] for i in range(classes)]


def costs_of(path: str | None, classes: int) -> list[list[float]]:
    """The costs that a .csv holds, as read_costs() reads them; without a file equal_costs()."""
    return read_costs(Path(path), classes) if path else equal_costs(classes)


def _read_square(path: Path, classes: int) -> list[list[float]]:
    """Read a square matrix; with 0 classes, as many as the file has lines."""
    with as_user_error(f"{path}: not a matrix of numbers"):
        rows = [[number(x) for x in line] for _, line in read_rows(path)]
    classes = classes or len(rows)
    if len(rows) != classes:
        raise UserError(f"{path}: {len(rows)} lines, of {classes} classes: want one line and one column each")
    for n, row in enumerate(rows, 1):
        if len(row) != classes:
            raise UserError(f"{path}, line {n}: {len(row)} numbers, of {classes} classes: want one line and one column each")
    return rows

"""Matrices of many classes in files, a line a class: what mistakes cost, and what a remote model says when it errs."""

from __future__ import annotations

import csv
from pathlib import Path

from .errors import UserError


def read_confusion(path: Path, classes: int) -> list[list[float]]:
    """Rows of shares, a class each (what it is), a column each (what the remote model says); from a .csv of counts or shares.

    UserError, naming the line, for a file that holds no such matrix.
    """
    rows = _read_square(path, classes)
    for n, row in enumerate(rows, 1):
        if min(row) < 0 or not 0 < sum(row) < float("inf"):
            raise UserError(f"{path}, line {n}: want {classes} counts or shares, none below 0, not all of them 0")
    return [[x / sum(row) for x in row] for row in rows]


def read_costs(path: Path, classes: int) -> list[list[float]]:
    """What saying each class costs, a column each, when it is another, a row each; from a .csv of numbers from 0 to 1.

    UserError, naming the line, for a file that holds no such matrix.
    """
    rows = _read_square(path, classes)
    for n, row in enumerate(rows, 1):
        if row[n - 1] or not all(0 <= x <= 1 for x in row):
            raise UserError(f"{path}, line {n}: want costs from 0 to 1, and 0 in column {n}, for what is said rightly")
    return rows


def equal_costs(classes: int) -> list[list[float]]:
    """Costs of which every mistake has the same, 1."""
    return [[float(i != j) for j in range(classes)] for i in range(classes)]


def _read_square(path: Path, classes: int) -> list[list[float]]:
    """The rows of a square matrix; classes 0: as many as the file has lines."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [[float(x) for x in line] for line in csv.reader(file) if line]
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a matrix of numbers: {error}") from None
    classes = classes or len(rows)
    if len(rows) != classes:
        raise UserError(f"{path}: {len(rows)} lines, of {classes} classes: want one line and one column each")
    for n, row in enumerate(rows, 1):
        if len(row) != classes:
            raise UserError(f"{path}, line {n}: {len(row)} numbers, of {classes} classes: want one line and one column each")
    return rows

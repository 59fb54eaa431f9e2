"""What a remote model says when the class is another: a matrix in a file, as counts or shares."""

from __future__ import annotations

import csv
from pathlib import Path

from .errors import UserError


def read(path: Path, classes: int) -> list[list[float]]:
    """Rows of shares, a class each (what it is), a column each (what the remote model says); from a .csv of counts or shares.

    UserError, naming the line, for a file that holds no such matrix.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [[float(x) for x in line] for line in csv.reader(file) if line]
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a matrix of numbers: {error}") from None
    if len(rows) != classes:
        raise UserError(f"{path}: {len(rows)} lines; the trace has {classes} classes: want one line and one column each")
    for n, row in enumerate(rows, 1):
        if len(row) != classes or min(row) < 0 or not 0 < sum(row) < float("inf"):
            raise UserError(f"{path}, line {n}: want {classes} counts or shares, none below 0, not all of them 0")
    return [[x / sum(row) for x in row] for row in rows]

"""Reads .csv files as spreadsheets write them, with commas, semicolons or tabs, and .parquet by pandas as the same rows."""

import csv
from pathlib import Path

from .errors import UserError
from .extras import install_hint

DELIMITERS = ",;\t"
PARQUET = ".parquet"


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Read the lines of a .csv file that are not empty, or the rows of a .parquet file: (number of the line, fields).

    The delimiter is the one that splits the first two lines into equally many fields, or else the first line into the most.

    Raises:
        UserError: There is no such file, or it cannot be read as text.
    """
    if path.suffix == PARQUET and path.is_file():
        return _parquet(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = file.readlines()
        first = [line for line in lines if line.strip()][:2]
        widths = [[len(row) for row in csv.reader(first, delimiter=delimiter)] for delimiter in DELIMITERS]
        splits = [(min(width, default=0) > 1 and len(set(width)) == 1, *width[:1]) for width in widths]
        reader = csv.reader(lines, delimiter=DELIMITERS[splits.index(max(splits))])
        return [(reader.line_num, row) for row in reader if row]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None


def _parquet(path: Path) -> list[tuple[int, list[str]]]:
    """The names of the columns of a .parquet file and its rows, as a .csv has them; what is missing is empty."""
    try:
        import pandas
        import pyarrow
    except ImportError:
        raise UserError(f"{path}: {install_hint('parquet')}") from None
    try:
        frame = pandas.read_parquet(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a .parquet file: {str(error).splitlines()[0]}") from None
    flags = frame.select_dtypes("bool").columns
    words = frame.astype(dict.fromkeys(flags, int)).astype(object).where(frame.notna(), "").astype(str)
    return list(enumerate([[str(name) for name in frame], *words.to_numpy().tolist()], 1))

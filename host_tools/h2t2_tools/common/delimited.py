"""Reads .csv files as people have them, and .parquet files by pandas as the same rows. Nothing here says what a column means.

Commas, semicolons or tabs separate the fields; a byte order mark, blank lines and comment lines (#) are skipped.
"""

import csv
import math
import re
from pathlib import Path
from typing import NamedTuple

from .errors import UserError
from .extras import install_hint

DELIMITERS = ",;\t"
COMMENT = "#"
PARQUET = ".parquet"
TABLES = (".csv", PARQUET)  # files that name their columns
MISSING = ("", "nan", "na", "n/a", "null", "none")  # what programs write for a missing number
FLAGS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
HEADER_WANTED = "the first line names the columns, and the others hold a sample each; lines that begin with # are comments"
DECIMAL_COMMA = r"[-+]?\d+(\.\d{3})*,\d+"


class Columns(NamedTuple):
    """The cells of a file whose first line names the columns.

    Attributes:
        names: Names of the columns; no name stands twice.
        rows: The cells of each row as texts without spaces around them.
        lines: The number of each row's line in the file.
    """

    names: list[str]
    rows: list[list[str]]
    lines: list[int]


def read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Read the lines of a .csv file that hold anything, or the rows of a .parquet file: (number of the line, fields).

    The delimiter is the one that splits the first two lines into equally many fields, or else the first line into the most. A
    line that begins with # is a comment before the first row, and later if it has another number of fields than that one.

    Raises:
        UserError: There is no such file, or it cannot be read as text.
    """
    if path.suffix == PARQUET and path.is_file():
        return _parquet(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = file.readlines()
        begin = next((n for n, line in enumerate(lines) if line.strip() and not _is_comment(line)), len(lines))
        lines[:begin] = ["\n"] * begin  # the numbers of the lines remain
        first = [line for line in lines if line.strip()][:2]
        widths = [[len(row) for row in csv.reader(first, delimiter=delimiter)] for delimiter in DELIMITERS]
        splits = [(min(width, default=0) > 1 and len(set(width)) == 1, *width[:1]) for width in widths]
        reader = csv.reader(lines, delimiter=DELIMITERS[splits.index(max(splits))])
        rows = [(reader.line_num, row) for row in reader if any(field.strip() for field in row)]
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a .csv file in UTF-8; save it with this encoding") from None
    except (OSError, csv.Error) as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None
    return [(line, row) for line, row in rows if len(row) == len(rows[0][1]) or not _is_comment(row[0])]


def read_columns(path: Path) -> Columns:
    """Read a .csv file with a header, or a .parquet file. Lines that repeat the header are skipped, as of files in one.

    Raises:
        UserError: The file has no header, names a column twice or not at all, or a row has another number of fields than the
            header. The message names the line.
    """
    (_, header), *rows = read_rows(path) or [(1, [])]
    names = [name.strip() for name in header]
    rows = [(line, row) for line, row in rows if row != header]
    if not names or all(map(is_number, names)) or any(_is_value(n, name, rows) for n, name in enumerate(names)):
        raise UserError(f"{path}: {HEADER_WANTED}")
    for line, row in rows:
        if len(row) != len(names):
            comma = "; write numbers with a decimal point" if len(row) > len(names) else ""
            raise UserError(f"{path}, line {line}: {len(row)} fields, the header has {len(names)}{comma}")
    cells = [[field.strip() for field in row] for _, row in rows]
    kept = [n for n, name in enumerate(names) if name or any(row[n] for row in cells)]
    for n in kept:
        if not names[n]:
            index = "; without the index, pandas writes it by to_csv(index=False)" if n == 0 else ""
            raise UserError(f"{path}: the header does not name column {n + 1}; name it or leave it out{index}")
        if names[n] in names[:n]:
            raise UserError(f"{path}: the header names the column {names[n]} twice")
    if len(kept) < len(names):
        names, cells = [names[n] for n in kept], [[row[n] for n in kept] for row in cells]
    return Columns(names, cells, [line for line, _ in rows])


def number(text: str) -> float:
    """Return the number of a cell: true and yes are 1, false and no 0, a missing number is NaN. ValueError for other words."""
    word = text.strip()
    try:
        if "_" not in word:  # which float() skips
            return float(word)
    except ValueError:
        pass
    if word.casefold() in FLAGS:
        return FLAGS[word.casefold()]
    if word.casefold() in MISSING:
        return math.nan
    if re.fullmatch(DECIMAL_COMMA, word):
        raise ValueError(f"{word!r} has a decimal comma; write numbers with a decimal point")
    raise ValueError(f"{word[:20]!r} is no number")


def is_number(text: str) -> bool:
    """Whether a cell holds a number; true, yes, false and no are none here."""
    try:
        number(text)
    except ValueError:
        return False
    return text.casefold() not in (*FLAGS, *MISSING)


def is_word(text: str) -> bool:
    """Whether a cell is no number, also not with a decimal comma, none of FLAGS and none of MISSING."""
    return not (text.casefold() in (*FLAGS, *MISSING) or is_number(text) or re.fullmatch(DECIMAL_COMMA, text))


def _is_value(column: int, name: str, rows: list[tuple[int, list[str]]]) -> bool:
    """Whether a name in the first line is a value: a number but a whole one, or a word that its own column holds as well."""
    if is_number(name):
        return not name.isdigit()
    return is_word(name) and any(row[column].strip() == name for _, row in rows if column < len(row))


def _is_comment(text: str) -> bool:
    return text.lstrip().startswith(COMMENT)


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

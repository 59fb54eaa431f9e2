"""The one reader of samples in .csv, .parquet and .npz files: which column is the label, which are numbers, what is missing."""

import math
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .delimited import FLAGS, HEADER_WANTED, MISSING, TABLES, Columns, is_word, number, read_columns
from .errors import UserError
from .npz import arrays, open_npz

LABEL_NAMES = ("label", "class", "target")
AXIS = "y"  # a label in scikit-learn's sense, but an accelerometer has it as well
UNKNOWN = -1  # number of a text that is no category
SKIP = "--missing skip leaves such samples out"


class Selection(NamedTuple):
    """What a user says of a table.

    Attributes:
        label: The column of the labels; None: label_column() finds it.
        drop: Columns to leave out.
        skip_missing: Leave out the samples that lack a number or their label; otherwise these are an error.
    """

    label: str | None = None
    drop: tuple[str, ...] = ()
    skip_missing: bool = False

    def among(self, names: list[str]) -> "Selection":
        """The selection without columns that a table lacks."""
        return Selection(self.label if self.label in names else None, tuple(set(self.drop) & set(names)), self.skip_missing)


WHOLE = Selection()


class SampleTable(NamedTuple):
    """Samples as a file holds them.

    Attributes:
        x: (n, ...).
        labels: (n, ...) texts or numbers, or None.
        columns: The names of the numbers; None: they have none.
        lines: The line of each sample in the file; None: the file has no lines.
    """

    x: np.ndarray
    labels: np.ndarray | None = None
    columns: list[str] | None = None
    lines: list[int] | None = None


def read(
    path: Path,
    selection: Selection = WHOLE,
    *,
    texts: dict[str, list[str]] | None = None,
    columns: list[str] | None = None,
    features: Collection[str] = (),
    labelled: bool = True,
) -> SampleTable:
    """Read the samples of a .csv with a header, a .parquet, or an .npz with x and perhaps y. A missing number is NaN.

    Args:
        path: The file.
        selection: The user's label and columns, for a .csv or .parquet.
        texts: Name of a column of words -> the words that its numbers from 0 up stand for; another word becomes -1.
        columns: The columns to read, in this order; None: each but the label.
        features: Names of columns that a model reads: none of them is the label.
        labelled: Whether the labels are wanted; otherwise the file may lack columns of the selection.

    Raises:
        UserError: The file has no header or no numbers, or a field is no number. The message names line, column and option.
    """
    if path.suffix not in TABLES:
        if labelled:
            refuse_selection(path, selection)
        x = arrays(path, "x")[0]
        with open_npz(path) as content:
            has_labels = "y" in content.files
        return SampleTable(x, arrays(path, "y")[0] if has_labels else None)
    table, known = read_columns(path), texts or {}
    if not labelled:
        selection = selection.among(table.names)
    table = without(path, table, selection)
    if not table.rows:
        raise UserError(f"{path}: {HEADER_WANTED}")
    no_labels = {*known, *(columns or ()), *features}
    label = label_column(path, table, selection, no_labels) if labelled or not columns else None
    places = column_places(table.names, columns, path) if columns else [n for n in range(len(table.names)) if n != label]
    if not places:
        raise UserError(f"{path}: it has the column {table.names[0]!r} alone; want a column for each number of a sample")
    x = np.array([numbers(path, table, n, known.get(table.names[n]), places) for n in places]).T
    labels = None if label is None else np.array([row[label] for row in table.rows])
    return SampleTable(x, labels, [table.names[n] for n in places], table.lines)


def without(path: Path, table: Columns, selection: Selection) -> Columns:
    """Return the columns that the user does not drop. UserError for a column that the header lacks, and for a dropped label."""
    for option, names in (("--drop", selection.drop), ("--label", [selection.label] if selection.label is not None else [])):
        for name in names:
            if name not in table.names:
                raise UserError(f"{path}: {option} {name}: the header names no such column; it names {', '.join(table.names)}")
    if selection.label in selection.drop:
        raise UserError(f"--label {selection.label}: --drop leaves this column out")
    kept = [n for n, name in enumerate(table.names) if name not in selection.drop]
    rows = [[row[n] for n in kept] for row in table.rows] if selection.drop else table.rows
    return Columns([table.names[n] for n in kept], rows, table.lines)


def refuse_selection(where: object, selection: Selection) -> None:
    """UserError where the user selects columns of something that names none."""
    for option, words in (("--label", selection.label), ("--drop", selection.drop)):
        if words:
            raise UserError(f"{option}: {where} names no columns; a .csv or .parquet does")


def label_column(path: Path, table: Columns, selection: Selection, features: Collection[str] = ()) -> int | None:
    """Return which column holds the labels, None where no column does.

    It is the one that the user names. Otherwise it is the only column of words or the only one that is called label, class or
    target; words that never repeat, such as times, are no labels. Without either it is the only column of true and false (or
    yes and no), or the column y of whole numbers.

    Args:
        path: The file, for messages.
        table: Its columns.
        selection: The user's label.
        features: Names of columns that hold no label.

    Raises:
        UserError: Several columns may hold the labels.
    """
    if selection.label is not None:
        return table.names.index(selection.label)
    others = [n for n, name in enumerate(table.names) if name not in features]
    likely = [n for n in others if table.names[n].casefold() in LABEL_NAMES or _holds_classes(table, n)]
    if len(likely) > 1:
        raise UserError(
            f"{path}: each of the columns {', '.join(table.names[n] for n in likely)} may hold the labels: --label COLUMN "
            "chooses one, --drop COLUMN leaves another out"
        )
    possible = [n for n in others if _holds_flags(table, n) or table.names[n].casefold() == AXIS and _holds_whole(table, n)]
    return likely[0] if likely else possible[0] if len(possible) == 1 else None


def numbers(path: Path, table: Columns, column: int, words: list[str] | None = None, read: Sequence[int] = ()) -> list[float]:
    """Return the numbers of a column; a missing one is NaN.

    Args:
        path: The file, for messages.
        table: Its columns.
        column: The column.
        words: What its numbers from 0 up stand for, if it holds words.
        read: All columns that are read as numbers: the message names those of them that hold words.

    Raises:
        UserError: A cell is no number. The message names line, column and the option that helps.
    """
    cells = [row[column] for row in table.rows]
    if not words and not any("_" in cell for cell in cells):
        with suppress(ValueError):  # of a cell that is no plain number
            return [*map(float, cells)]
    values = []
    for line, row in zip(table.lines, table.rows):
        if words and row[column]:
            values.append(float(words.index(row[column]) if row[column] in words else UNKNOWN))
            continue
        try:
            values.append(number(row[column]))
        except ValueError as error:
            name = table.names[column]
            others = [table.names[n] for n in read if n > column and any(map(is_word, _cells(table, n)))]
            drop = f"; --drop {shlex.join([name, *others])} leaves the {'columns' if others else 'column'} out"
            help_ = "" if "," in row[column] else f"{drop}, --label {shlex.quote(name)} makes it the label"
            raise UserError(f"{path}, line {line}: {name}: {error}{help_}") from None
    return values


def complete(where: object, table: SampleTable, selection: Selection = WHOLE, *, may_lack: bool = False) -> SampleTable:
    """Return the samples that lack nothing. It says on standard error how many it leaves out.

    Args:
        where: What the samples come from, for messages.
        table: The samples.
        selection: Whether to leave out those that lack something.
        may_lack: The models take samples that lack a number, so that those are an error in no case.

    Raises:
        UserError: A number or a label is missing, and the user has not said to leave such samples out.
    """
    x, labels, columns, lines = table
    if x.dtype.kind not in "fiub" or not x.ndim or (labels is not None and not labels.ndim):
        raise UserError(f"{where}: x is {x.dtype} of shape {x.shape}; want numbers (n, ...), and a label for each")
    no_number = np.isnan(x.reshape(len(x), -1)) if x.dtype.kind == "f" and x.size else np.zeros((len(x), 1), bool)
    no_label = np.zeros(len(x), bool) if labels is None else missing_labels(labels)
    if len(no_label) != len(x):
        return table  # the reader of the samples says so
    lacking = no_label | no_number.any(1)
    bad = lacking if not may_lack or selection.skip_missing else no_label
    if not bad.any():
        return table
    if not selection.skip_missing:
        first = int(np.argmax(bad))
        at = f", line {lines[first]}" if lines else f", sample {first}"
        column = f": {columns[int(np.argmax(no_number[first]))]}" if columns and not no_label[first] else ""
        what = "the label is missing" if no_label[first] else "a number is missing" + (" (NaN)" if lines is None else "")
        drop = f"; --drop{column[1:]} the column" if column else ""
        raise UserError(f"{where}{at}{column}: {what}, as in {int(bad.sum())} of {len(x)} samples; {SKIP}{drop}")
    if bad.all():
        empty = [columns[n] for n in np.flatnonzero(no_number.all(0))] if columns else []
        raise UserError(f"{where}: each sample lacks a number or its label" + (f"; --drop {' '.join(empty)}" if empty else ""))
    print(f"h2t2: {where}: {int(bad.sum())} of {len(x)} samples lack a number or their label and are left out", file=sys.stderr)
    kept = np.flatnonzero(~bad)
    return SampleTable(x[kept], None if labels is None else labels[kept], columns, [lines[n] for n in kept] if lines else None)


def missing_labels(labels: np.ndarray) -> np.ndarray:
    """Return which labels are missing, (n,) bool: empty texts and NaN."""
    labels = np.asarray(labels)
    if labels.dtype.kind == "f" and labels.size:
        return np.asarray(np.isnan(labels.reshape(len(labels), -1)).any(1))
    if labels.dtype.kind in "USO" and labels.size == len(labels):
        return np.array([text.strip().casefold() in ("", "nan") for text in labels.ravel().astype(str).tolist()], bool)
    return np.zeros(len(labels), bool)


def column_places(header: list[str], columns: list[str], path: Path) -> list[int]:
    """Return where the columns of a model stand in the header of a file. UserError, naming the file, where one is missing."""
    missing = [name for name in columns if name not in header]
    if missing:
        read = f"the model reads the columns {', '.join(columns)}"
        raise UserError(f"{path}: {read}; the header names no column {', '.join(missing)}")
    return [header.index(name) for name in columns]


def column_numbers(option: str, words: Sequence[str] | None, names: list[str] | None, where: object) -> list[int] | None:
    """Return the places of columns that a user names or numbers; None for None.

    Args:
        option: By which the user says it.
        words: Names of columns, or their numbers from 0.
        names: The names of the columns in their order; None: they have none.
        where: What has the columns, for messages.

    Raises:
        UserError: There is no such column.
    """
    if words is None:
        return None
    for word in words:
        if word not in (names or ()) and not (word.isascii() and word.isdigit() and len(word) < 10):
            known = f"it names {', '.join(names)}" if names else "it names no columns; want their numbers, from 0"
            raise UserError(f"{option} {word}: {where} has no such column; {known}")
    return [names.index(word) if names and word in names else int(word) for word in words]


def _cells(table: Columns, column: int) -> Iterator[str]:
    """The cells of a column that hold anything."""
    return (row[column] for row in table.rows if row[column].casefold() not in MISSING)


def _holds_classes(table: Columns, column: int) -> bool:
    """Whether a column holds words, no numbers, and some of them more than once."""
    if not all(word.casefold() in FLAGS or is_word(word) for word in _cells(table, column)):
        return False
    words = list(_cells(table, column))
    return any(map(is_word, words)) and len({*words}) < len(words)


def _holds_flags(table: Columns, column: int) -> bool:
    cells = _cells(table, column)
    return next(cells, "").casefold() in FLAGS and all(word.casefold() in FLAGS for word in cells)


def _holds_whole(table: Columns, column: int) -> bool:
    """Whether a column holds class names or whole numbers."""
    try:
        return all(math.isfinite(value) and value == round(value) for value in map(number, _cells(table, column)))
    except ValueError:
        return False

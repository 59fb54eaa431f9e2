"""Reads calibration and test data from .npy, .npz or a folder of images, and checks that a model can be evaluated by it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common import images, tables
from ...common.delimited import TABLES
from ...common.errors import UserError
from ...common.finite import check_finite
from ...common.labels import class_numbers, plain_name
from ...common.tables import WHOLE, SampleTable, Selection
from ..quality import spread
from .readers import Table

FEWEST = 10  # samples that give a range
FINEST = 2.0**-16  # of the range of most of a column's numbers: float32 may have coarser steps only beyond it
NO_TABLE = Table()


@dataclass(frozen=True)
class Samples:
    """Samples of a file.

    Attributes:
        path: The file.
        x: float32 (n, *shape); float64 where float32 would merge numbers, as floats() says.
        y: Class numbers (n,), or None.
        names: Names of the classes, or None.
        columns: Names of the numbers of a sample, or None.
    """

    path: Path
    x: np.ndarray
    y: np.ndarray | None
    names: list[str] | None = None
    columns: list[str] | None = None


def load(
    path: Path,
    shape: tuple[int, ...] | None,
    scale: float | None,
    columns: list[str] | None = None,
    table: Table = NO_TABLE,
    *,
    selection: Selection = WHOLE,
    labelled: bool = True,
) -> Samples:
    """Read samples.

    Args:
        path: .npy of x, .npz of x and perhaps y, .csv with a header, .parquet, or a folder with a folder of images for
            each class. Labels are what class_numbers() takes.
        shape: The model's input shape, or None for any.
        scale: Divisor of x (None: 255 for bytes, else 1).
        columns: Names of the numbers, in the order that x shall have them, for a file that names them; None: the file's order.
        table: What the models say of words, missing numbers, classes and columns.
        selection: What the user says of the columns of a table, and of samples that lack a number or their label.
        labelled: Whether the labels of a table are wanted.

    Raises:
        UserError: The data is missing, has the wrong shape, holds NaN, is constant or too little. The error names the reason.
    """
    read, folders = _read(path, shape, columns, table, selection, labelled=labelled)
    x, y, header, _ = tables.complete(path, read, selection, may_lack=table.missing)
    y, names = (None, None) if y is None else class_numbers(path, y, names=table.classes)
    names = folders or names
    if names and table.classes and names != [plain_name(name) for name in table.classes]:
        raise UserError(f"{path}: the labels are {', '.join(names)}, the model's classes {', '.join(table.classes)}")
    if x.ndim < 2 or (shape is not None and int(np.prod(x.shape[1:])) != int(np.prod(shape))):
        expected = f"the model takes {shape}" if shape else "want numbers (n, ...)"
        raise UserError(f"{path}: samples of shape {x.shape[1:]}; {expected}")
    if len(x) < FEWEST:
        raise UserError(f"{path}: {len(x)} samples; at least {FEWEST} are needed, a hundred or more are better")
    if y is not None and len(y) != len(x):
        raise UserError(f"{path}: {len(x)} samples and {len(y)} labels")
    divisor = scale if scale is not None else 255.0 if x.dtype == np.uint8 else 1.0
    x = floats(x.reshape(len(x), *(shape or x.shape[1:])) / divisor)
    check_finite(x, path, missing=table.missing, columns=header)
    if (x == x[0]).all():
        problem = "every number is the same" if (x == x.ravel()[0]).all() else "all samples are the same"
        raise UserError(f"{path}: {problem}: ranges cannot be learned from constant data")
    return Samples(path, x, y, names, header)


def floats(x: np.ndarray) -> np.ndarray:
    """Return samples (n, ...) as float32; rows of numbers as float64 where a column is far from 0, such as seconds since 1970.

    float32 has steps of 128 s there, so samples would become equal that a library of doubles tells apart.
    """
    if x.ndim == 2 and x.dtype.itemsize > 4 and len(x):
        steps = np.spacing(np.nan_to_num(np.abs(x), posinf=0).max(0).astype(np.float32))
        if ((steps > FINEST * spread(x)) & (spread(x) > 0)).any():
            return x.astype(np.float64)
    return x.astype(np.float32)


def _read(
    path: Path,
    shape: tuple[int, ...] | None,
    columns: list[str] | None,
    table: Table,
    selection: Selection,
    *,
    labelled: bool,
) -> tuple[SampleTable, list[str] | None]:
    """Return the samples, and the names of the classes where folders name them. Arguments: those of load()."""
    if path.suffix in (*TABLES, ".npz") and not path.is_dir():
        read = tables.read(path, selection, texts=table.texts, columns=columns, features=table.columns, labelled=labelled)
        return read, None
    if labelled:
        tables.refuse_selection(path, selection)
    if path.is_dir():
        return _pictures(path, shape)
    if path.suffix == ".npy":
        try:
            return SampleTable(np.load(path, allow_pickle=False)), None
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: not an .npy file: {error}") from None
    raise UserError(f"{path}: want an .npy, an .npz with x (and y), a .csv with a header, a .parquet, or a folder of images")


def _pictures(path: Path, shape: tuple[int, ...] | None) -> tuple[SampleTable, list[str] | None]:
    """Return the images of a folder, with labels where it has a folder for each class, and the names of these."""
    shape = shape or images.common_shape(path)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
        raise UserError(f"{path}: a folder holds images; the model takes {shape}")
    names = sorted({parts[0] for parts in (p.relative_to(path).parts for p in path.rglob("*.*")) if len(parts) > 1})
    size = shape[0], shape[1]
    classes = {name: n for n, name in enumerate(names)}
    x, y = images.read(path, lambda parts: classes[parts[0]] if len(parts) > 1 else 0, size, shape[2:] == (3,))
    x = x.reshape(len(x), *shape)
    return (SampleTable(x, y), [plain_name(name) for name in names]) if len(names) > 1 else (SampleTable(x), None)

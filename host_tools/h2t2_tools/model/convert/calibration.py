"""Reads calibration and test data from .npy, .npz or a folder of images, and checks that a model can be evaluated by it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common import images, labels
from ...common.delimited import PARQUET
from ...common.errors import UserError
from ...common.finite import check_finite
from ...common.labels import class_numbers, plain_name
from ...common.npz import arrays, open_npz
from ..quality import spread
from .open import Table

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
) -> Samples:
    """Read samples.

    Args:
        path: .npy of x, .npz of x and perhaps y, .csv with a header, .parquet, or a folder with a folder of images for
            each class. Labels are what class_numbers() takes.
        shape: The model's input shape, or None for any.
        scale: Divisor of x (None: 255 for bytes, else 1).
        columns: Names of the numbers, in the order that x shall have them, for a file that names them; None: the file's order.
        table: What the models say of words, missing numbers and classes.

    Raises:
        UserError: The data is missing, has the wrong shape, holds NaN, is constant or too little. The error names the reason.
    """
    x, y, folders, header = _read(path, shape, table.texts)
    if columns and header:
        x, header = x[:, places(header, columns, path)], columns
    y, names = (None, None) if y is None else class_numbers(path, y, names=table.classes)
    names = folders or names
    if x.dtype.kind not in "fiub":
        raise UserError(f"{path}: x is {x.dtype}, want numbers")
    if x.ndim < 2 or (shape is not None and int(np.prod(x.shape[1:])) != int(np.prod(shape))):
        expected = f"the model takes {shape}" if shape else "want numbers (n, ...)"
        raise UserError(f"{path}: samples of shape {x.shape[1:]}; {expected}")
    if len(x) < FEWEST:
        raise UserError(f"{path}: {len(x)} samples; at least {FEWEST} are needed, a hundred or more are better")
    if y is not None and len(y) != len(x):
        raise UserError(f"{path}: {len(x)} samples and {len(y)} labels")
    divisor = scale if scale is not None else 255.0 if x.dtype == np.uint8 else 1.0
    x = floats(x.reshape(len(x), *(shape or x.shape[1:])) / divisor)
    check_finite(x, path, missing=table.missing)
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


def places(header: list[str], columns: list[str], path: Path) -> list[int]:
    """Return where the columns stand in the header of a file. UserError, naming the file, where one is missing."""
    missing = [name for name in columns if name not in header]
    if missing:
        read = f"the model reads the columns {', '.join(columns)}"
        raise UserError(f"{path}: {read}; the header names no column {', '.join(missing)}")
    return [header.index(name) for name in columns]


def _read(
    path: Path, shape: tuple[int, ...] | None, texts: dict[str, list[str]]
) -> tuple[np.ndarray, np.ndarray | None, list[str] | None, list[str] | None]:
    """Return the samples, and if the file has them: labels, names of the folders of classes, names of the numbers."""
    if path.is_dir():
        shape = shape or images.common_shape(path)
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise UserError(f"{path}: a folder holds images; the model takes {shape}")
        names = sorted({parts[0] for parts in (p.relative_to(path).parts for p in path.rglob("*.*")) if len(parts) > 1})
        size = shape[0], shape[1]
        classes = {name: n for n, name in enumerate(names)}
        x, y = images.read(path, lambda parts: classes[parts[0]] if len(parts) > 1 else 0, size, shape[2:] == (3,))
        x = x.reshape(len(x), *shape)
        return (x, y, [plain_name(name) for name in names], None) if len(names) > 1 else (x, None, None, None)
    if path.suffix in (".csv", PARQUET):
        samples = labels.table(path, texts)
        return samples.x, samples.labels, None, samples.columns
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False), None, None, None
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: not an .npy file: {error}") from None
    if path.suffix == ".npz":
        x = arrays(path, "x")[0]
        with open_npz(path) as content:
            has_labels = "y" in content.files
        return x, arrays(path, "y")[0] if has_labels else None, None, None
    raise UserError(f"{path}: want an .npy, an .npz with x (and y), a .csv with a header, a .parquet, or a folder of images")

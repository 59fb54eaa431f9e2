"""Reads calibration and test data from .npy, .npz or a folder of images, and checks that a model can be evaluated by it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from ...common.finite import check_finite
from ...common.labels import class_numbers, plain_name, table
from ...lab.datasets import images
from ...lab.datasets.data import arrays

FEWEST = 10  # samples that give a range


@dataclass(frozen=True)
class Samples:
    """Samples of a file: x, float32 (n, *shape); y, class numbers (n,), or None; names of the classes, or None."""

    path: Path
    x: np.ndarray
    y: np.ndarray | None
    names: list[str] | None = None


def load(path: Path, shape: tuple[int, ...] | None, scale: float | None) -> Samples:
    """Read samples.

    Args:
        path: .npy of x, .npz of x and perhaps y, .csv with a header, or a folder with a folder of images for each class. Labels
            are what class_numbers() takes.
        shape: The model's input shape, or None for any.
        scale: Divisor of x (None: 255 for bytes, else 1).

    Raises:
        UserError: The data is missing, has the wrong shape, holds NaN, is constant or too little. The error names the reason.
    """
    x, labels, folders = _read(path, shape)
    y, names = (None, None) if labels is None else class_numbers(path, labels)
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
    x = (x.reshape(len(x), *(shape or x.shape[1:])) / divisor).astype(np.float32)
    check_finite(x, path)
    if (x == x[0]).all():
        problem = "every number is the same" if (x == x.ravel()[0]).all() else "all samples are the same"
        raise UserError(f"{path}: {problem}: ranges cannot be learned from constant data")
    return Samples(path, x, y, names)


def _read(path: Path, shape: tuple[int, ...] | None) -> tuple[np.ndarray, np.ndarray | None, list[str] | None]:
    """Return the samples, their labels or None, and the names of the folders that the classes come from, or None."""
    if path.is_dir():
        shape = shape or images.common_shape(path)
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise UserError(f"{path}: a folder holds images; the model takes {shape}")
        names = sorted({parts[0] for parts in (p.relative_to(path).parts for p in path.rglob("*.*")) if len(parts) > 1})
        size = shape[0], shape[1]
        classes = {name: n for n, name in enumerate(names)}
        x, y = images.read(path, lambda parts: classes[parts[0]] if len(parts) > 1 else 0, size, shape[2:] == (3,))
        x = x.reshape(len(x), *shape)
        return (x, y, [plain_name(name) for name in names]) if len(names) > 1 else (x, None, None)
    if path.suffix == ".csv":
        return *table(path), None
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False), None, None
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: not an .npy file: {error}") from None
    if path.suffix == ".npz":
        x = arrays(path, "x")[0]
        with np.load(path, allow_pickle=False) as content:
            has_labels = "y" in content.files
        return x, arrays(path, "y")[0] if has_labels else None, None
    raise UserError(f"{path}: want an .npy, an .npz with x (and y), a .csv with a header, or a folder of images")

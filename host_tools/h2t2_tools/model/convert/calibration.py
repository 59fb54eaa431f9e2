"""Reads calibration and test data from .npy, .npz or a folder of images, and checks that a model can be evaluated by it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from ...common.finite import check_finite
from ...lab.datasets import images
from ...lab.datasets.data import arrays

FEWEST = 10  # samples that give a range


@dataclass(frozen=True)
class Samples:
    """Samples of a file: x, float32 (n, *shape); y, class numbers (n,), or None."""

    path: Path
    x: np.ndarray
    y: np.ndarray | None


def load(path: Path, shape: tuple[int, ...] | None, scale: float | None) -> Samples:
    """Read samples.

    Args:
        path: .npy of x, .npz of x and perhaps y, or a folder of images, whose class is their folder's alphabetical place.
        shape: The model's input shape, or None for any.
        scale: Divisor of x (None: 255 for bytes, else 1).

    Raises:
        UserError: The data is missing, has the wrong shape, holds NaN, is constant or too little. The error names the reason.
    """
    x, y = _read(path, shape)
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
    return Samples(path, x, None if y is None else y.ravel().astype(np.int64))


def _read(path: Path, shape: tuple[int, ...] | None) -> tuple[np.ndarray, np.ndarray | None]:
    if path.is_dir() and shape is not None:
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise UserError(f"{path}: a folder holds images; the model takes {shape}")
        if shape[0] != shape[1]:
            raise UserError(f"{path}: images are scaled to squares; the model takes {shape}: give an .npz instead")
        names = sorted({parts[0] for parts in (p.relative_to(path).parts for p in path.rglob("*.*")) if len(parts) > 1})
        classes = {name: n for n, name in enumerate(names)}
        x, y = images.read(path, lambda parts: classes[parts[0]] if len(parts) > 1 else 0, shape[0], shape[2:] == (3,))
        return x, y if len(names) > 1 else None
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False), None
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: not an .npy file: {error}") from None
    if path.suffix == ".npz":
        x = arrays(path, "x")[0]
        try:
            return x, arrays(path, "y")[0]
        except UserError:
            return x, None
    folder = ", or a folder of images" if shape else ""
    raise UserError(f"{path}: want an .npy, or an .npz with x (and y){folder}")

"""Folders of images, one folder a class, at any depth: read, made grey or kept in colour, and scaled to one size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from ...common.errors import UserError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}


def read(
    folder: Path, label: Callable[[tuple[str, ...]], int | None], size: int, colour: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(images uint8 (n, size, size[, 3]), labels): label(parts of the path below `folder`) is the class, None to leave out.

    UserError naming the file that is no image, or the folder in which no class was found.
    """
    images, labels = [], []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in SUFFIXES:
            continue
        y = label(path.relative_to(folder).parts)
        if y is None:
            continue
        try:
            with Image.open(path) as image:
                picture = image.convert("RGB" if colour else "L").resize((size, size), Image.Resampling.BILINEAR)
                images.append(np.asarray(picture, np.uint8))
        except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
            raise UserError(f"{path}: not an image that can be read: {error}") from None
        labels.append(y)
    if not images:
        raise UserError(f"{folder}: no images in folders named by class")
    return np.stack(images), np.array(labels, np.uint8)


def by_name(names: dict[str, int]) -> Callable[[tuple[str, ...]], int | None]:
    """A label function: the first folder of the path whose name begins with one of `names`, without regard to case."""

    def label(parts: tuple[str, ...]) -> int | None:
        for folder_name in parts[:-1]:
            for name, y in names.items():
                if folder_name.lower().startswith(name):
                    return y
        return None

    return label

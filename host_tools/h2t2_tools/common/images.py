"""Folders of images, one a class, at any depth. Images are read as grey or colour and scaled to one size."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from .errors import UserError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}


def read(
    folder: Path, label: Callable[[tuple[str, ...]], int | None], size: int | tuple[int, int], colour: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Read the images below a folder.

    Args:
        folder: Folder to search.
        label: Returns the class for the parts of a path below `folder`; None: leave the image out.
        size: Height and width of the result, in pixels; one number for a square.
        colour: Keep the colours.

    Returns:
        Images uint8 (n, height, width[, 3]) and their classes (n,).

    Raises:
        UserError: A file is not an image, or no image belongs to a class.
    """
    height, width = (size, size) if isinstance(size, int) else size
    images, labels = [], []
    for path in _paths(folder):
        y = label(path.relative_to(folder).parts)
        if y is None:
            continue
        with _opened(path) as image:
            picture = image.convert("RGB" if colour else "L").resize((width, height), Image.Resampling.BILINEAR)
            images.append(np.asarray(picture, np.uint8))
        labels.append(y)
    if not images:
        raise UserError(f"{folder}: no images in folders named by class")
    return np.stack(images), np.array(labels, np.uint8)


def common_shape(folder: Path) -> tuple[int, int, int]:
    """Return height, width and channels (1 or 3) of the images below a folder. UserError unless all are of one size."""
    shapes = set()
    for path in _paths(folder):
        with _opened(path) as image:
            shapes.add((image.height, image.width, 1 if image.mode in ("L", "1", "I;16") else 3))
    if not shapes:
        raise UserError(f"{folder}: no images in folders named by class")
    if len({shape[:2] for shape in shapes}) > 1:
        raise UserError(f"{folder}: images of unlike sizes; --picture WxHxC scales all to one, as the camera gives it")
    return max(shapes)


def _paths(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """An image. UserError for what cannot be read."""
    try:
        with Image.open(path) as image:
            yield image
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise UserError(f"{path}: not a readable image: {error}") from None

"""Images in a folder for each class, or an .npz of images and labels: a part of them, drawn at random, is for the test."""

from pathlib import Path

import numpy as np

from h2t2_tools.common.images import read
from h2t2_tools.common.npz import arrays

from .data import Data, by_name, checked, find, split

SIZE = 64
CANCER = {"normal": 0, "adenocarcinoma": 1, "large.cell": 1, "squamous": 1, "cancer": 1}


def breakhis(folder: Path | None = None) -> Data:
    """BreaKHis (Spanhol et al.), histology_slides/breast/{benign,malignant}/SOB/...: 64 x 64 colour images, class 1 malignant.

    3,365 of the 7,909 are for the test, as in the paper.
    """
    path = find(folder, "breakhis*.npz", "[Bb]rea[Kk][Hh]is*", "histology_slides", "malignant", "breast")
    x, y, source = _images(path, ("malignant",), {"benign": 0, "malignant": 1}, True)
    return checked(Data("breakhis", *split(x, y, min(3365, len(y) * 3 // 7)), ("benign", "malignant"), source))


def chest_ct(folder: Path | None = None) -> Data:
    """Chest CT scans (the public set of about a thousand files): 64 x 64 grey images, class 1 cancer.

    A third of them, at most 278 as in the paper, are for the test.
    """
    path = find(folder, "chest_ct*.npz", "Data", "chest*ct*", "train", "normal")
    x, y, source = _images(path, ("train", "normal"), CANCER, False)
    return checked(Data("chest_ct", *split(x, y, min(278, len(y) // 3)), ("normal", "cancer"), source))


def _images(path: Path, inner: tuple[str, ...], names: dict[str, int], colour: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return images, labels and where they are from. inner: folders whose parent is meant."""
    if path.suffix == ".npz":
        x, y = arrays(path, "images", "labels")
        return x, y.ravel(), str(path)
    path = path.parent if path.name in inner else path
    return *read(path, by_name(names), SIZE, colour), str(path)

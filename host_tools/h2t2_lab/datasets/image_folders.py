"""Data sets of images in a folder for each class, or of an .npz with images and labels."""

from collections.abc import Sequence
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


def chest_xray(folder: Path | None = None) -> Data:
    """Chest X-rays (Kermany et al.), MedMNIST's .npz or train, val, test / NORMAL, PNEUMONIA: 28 x 28, class 1 pneumonia.

    Train and validation are together, shuffled; 624 are for the test.
    """
    path = find(folder, "pneumoniamnist*.npz", "chest_xray", "train/[Nn]ormal", "train/NORMAL")
    subsets = ("train", "val", "test")
    parts: list[Sequence[np.ndarray]]
    if path.suffix == ".npz":
        parts = [arrays(path, f"{subset}_images", f"{subset}_labels") for subset in subsets]
    else:
        path = path.parents[1] if path.name.lower() == "normal" else path
        parts = [read(path / subset, by_name({"normal": 0, "pneumonia": 1}), 28, False) for subset in subsets]
    x, y = (np.concatenate(column[:2]) for column in zip(*parts))
    order = np.random.default_rng(7).permutation(len(y))
    test_x, test_y = parts[2]
    classes = ("normal", "pneumonia")
    return checked(Data("chest_xray", x[order], y.ravel()[order], test_x, test_y.ravel(), classes, str(path)))


def _images(path: Path, inner: tuple[str, ...], names: dict[str, int], colour: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return images, labels and where they are from. inner: folders whose parent is meant."""
    if path.suffix == ".npz":
        x, y = arrays(path, "images", "labels")
        return x, y.ravel(), str(path)
    path = path.parent if path.name in inner else path
    return *read(path, by_name(names), SIZE, colour), str(path)

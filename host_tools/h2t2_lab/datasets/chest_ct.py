"""Chest CT scans (the public set of about a thousand files): .npz of images and labels, or folders of images a class."""

from pathlib import Path

from h2t2_tools.common.images import read
from h2t2_tools.common.npz import arrays

from .data import Data, by_name, checked, find, split

SIZE = 64
NAMES = {"normal": 0, "adenocarcinoma": 1, "large.cell": 1, "squamous": 1, "cancer": 1}


def load(folder: Path | None = None) -> Data:
    """Load 64 x 64 grey images, a third of them (at most 278, the paper's count) for the test; class 1 is cancer."""
    path = find(folder, "chest_ct*.npz", "Data", "chest*ct*", "train", "normal")
    if path.suffix == ".npz":
        x, y = arrays(path, "images", "labels")
    else:
        path = path.parent if path.name in ("train", "normal") else path
        x, y = read(path, by_name(NAMES), SIZE, False)
    return checked(Data("chest_ct", *split(x, y.ravel(), min(278, len(y) // 3)), ("normal", "cancer"), str(path)))

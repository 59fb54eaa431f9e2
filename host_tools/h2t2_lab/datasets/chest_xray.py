"""Chest X-rays (Kermany et al.): MedMNIST's PneumoniaMNIST .npz, or the folders train, val, test / NORMAL, PNEUMONIA."""

from pathlib import Path

import numpy as np

from h2t2_tools.common.images import read
from h2t2_tools.common.npz import arrays

from .data import Data, by_name, checked, find

SIZE = 28
CLASSES = ("normal", "pneumonia")


def load(folder: Path | None = None) -> Data:
    """Load 28 x 28 grey images: train and validation together, shuffled, and 624 for the test; class 1 is pneumonia."""
    path = find(folder, "pneumoniamnist*.npz", "chest_xray", "train/[Nn]ormal", "train/NORMAL")
    if path.suffix == ".npz":
        keys = [f"{subset}_{kind}" for subset in ("train", "val", "test") for kind in ("images", "labels")]
        x1, y1, x2, y2, x3, y3 = arrays(path, *keys)
    else:
        root = path.parents[1] if path.name.lower() == "normal" else path
        subsets = [
            read(root / subset, by_name({"normal": 0, "pneumonia": 1}), SIZE, False) for subset in ("train", "val", "test")
        ]
        (x1, y1), (x2, y2), (x3, y3) = subsets
        path = root
    x, y = np.concatenate([x1, x2]), np.concatenate([y1, y2]).ravel()
    order = np.random.default_rng(7).permutation(len(y))
    return checked(Data("chest_xray", x[order], y[order], x3, y3.ravel(), CLASSES, str(path)))

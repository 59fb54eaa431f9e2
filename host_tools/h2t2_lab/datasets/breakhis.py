"""BreaKHis (Spanhol et al.): histology_slides/breast/{benign,malignant}/SOB/..., or an .npz of images and labels."""

from pathlib import Path

from h2t2_tools.common.images import read
from h2t2_tools.common.npz import arrays

from .data import Data, by_name, checked, find, split

SIZE = 64
TEST = 3365  # as in the paper


def load(folder: Path | None = None) -> Data:
    """Load 64 x 64 colour images, 3,365 of the 7,909 for the test; class 1 is malignant."""
    path = find(folder, "breakhis*.npz", "[Bb]rea[Kk][Hh]is*", "histology_slides", "malignant", "breast")
    if path.suffix == ".npz":
        x, y = arrays(path, "images", "labels")
    else:
        path = path.parent if path.name == "malignant" else path
        x, y = read(path, by_name({"benign": 0, "malignant": 1}), SIZE, True)
    return checked(Data("breakhis", *split(x, y.ravel(), min(TEST, len(y) * 3 // 7)), ("benign", "malignant"), str(path)))

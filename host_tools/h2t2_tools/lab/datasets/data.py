"""The type of a data set, the search for its files, and the checks that all loaders share."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from ...common.places import SOURCE_TREE


@dataclass(frozen=True)
class Data:
    """A data set with its train and test part.

    Attributes:
        name: Name of the data set.
        x_train, x_test: (n, ...) numbers as published; images are uint8, (n, h, w) or (n, h, w, 3).
        y_train, y_test: (n,) class numbers, from 0.
        classes: Names of the classes.
        source: The file or folder that it came from.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: tuple[str, ...]
    source: str

    def all_samples(self) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of both parts, the train part first."""
        return np.concatenate([self.x_train, self.x_test]), np.concatenate([self.y_train, self.y_test])


def find(folder: Path | None, *patterns: str) -> Path:
    """Find the first file or folder that matches a pattern.

    Args:
        folder: Folder to search, or the file itself; None: $H2T2_DATA and shared/data.
        patterns: Glob patterns, in the order of preference.

    Raises:
        UserError: Nothing matches; it names the patterns and the searched places.
    """
    if folder is not None:
        looked = [folder]
        if folder.is_file():
            return folder
    else:
        looked = [Path(os.environ["H2T2_DATA"])] if os.environ.get("H2T2_DATA") else []
        looked.append(SOURCE_TREE.parent / "shared/data")
    for place in looked:
        for pattern in patterns:
            for path in sorted(place.glob(pattern)):
                return path
    raise UserError(
        f"no {' or '.join(patterns)} in {' or '.join(map(str, looked))}; name its folder with --data, or set H2T2_DATA"
    )


def arrays(path: Path, *keys: str) -> list[np.ndarray]:
    """Read arrays of an .npz file by key.

    Raises:
        UserError: The file is not an .npz, or an array is missing.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            missing = [key for key in keys if key not in data.files]
            if missing:
                raise UserError(f"{path}: no array {', '.join(missing)}; it has {', '.join(data.files)}")
            return [data[key] for key in keys]
    except (OSError, ValueError, EOFError) as error:
        remedy = ": save labels as text, y.astype(str)" if "Object arrays" in str(error) else ""
        raise UserError(f"{path}: not an .npz file of arrays: {error}{remedy}") from None


def split(x: np.ndarray, y: np.ndarray, test: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw `test` samples, each class in proportion; return x_train, y_train, x_test, y_test."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]  # sorted by class, so every n-th sample is a stratified draw
    picked = np.zeros(len(y), bool)
    picked[order[np.floor(np.arange(test) * len(y) / test + rng.random()).astype(int) % len(y)]] = True
    train = rng.permutation(np.flatnonzero(~picked))
    chosen = rng.permutation(np.flatnonzero(picked))
    return x[train], y[train], x[chosen], y[chosen]


def checked(data: Data) -> Data:
    """Return the data unchanged.

    Raises:
        UserError: A part is empty, has one class only, or has another number of labels than samples.
    """
    for subset, x, y in (("train", data.x_train, data.y_train), ("test", data.x_test, data.y_test)):
        if len(x) != len(y) or not len(y):
            raise UserError(f"{data.source}: {subset} part has {len(x)} samples and {len(y)} labels")
        if len(np.unique(y)) < 2:
            raise UserError(f"{data.source}: {subset} part holds one class only")
    return data


def pooled(x: np.ndarray, size: int) -> np.ndarray:
    """Return the means of the squares of size x size in pictures (n, h, w), as rows (n, h w / size^2)."""
    n, high, wide = x.shape
    means: np.ndarray = x.reshape(n, high // size, size, wide // size, size).mean((2, 4))
    return means.reshape(n, -1)

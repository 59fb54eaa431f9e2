"""The type of a data set, the search for its files, and the checks that all loaders share."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.places import SOURCE_TREE

SPLIT_SEED = 7


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


def split(x: np.ndarray, y: np.ndarray, test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw `test` samples, each class in proportion; return x_train, y_train, x_test, y_test."""
    rng = np.random.default_rng(SPLIT_SEED)
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


def by_name(names: dict[str, int]) -> Callable[[tuple[str, ...]], int | None]:
    """Return a label function: the first folder whose name begins with one of `names`, in any case, gives the class."""

    def label(parts: tuple[str, ...]) -> int | None:
        for folder_name in parts[:-1]:
            for name, y in names.items():
                if folder_name.lower().startswith(name):
                    return y
        return None

    return label

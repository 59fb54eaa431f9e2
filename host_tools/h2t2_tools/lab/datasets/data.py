"""What a data set is, where one is looked for, and the checks all loaders share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from ...common.places import SOURCE_TREE


@dataclass(frozen=True)
class Data:
    """x: (n, ...) numbers as published (images uint8, (n, h, w) or (n, h, w, 3)); y: (n,) class numbers, from 0."""

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: tuple[str, ...]
    source: str


def find(folder: Path | None, *patterns: str) -> Path:
    """The first file or folder that matches one of the patterns: under `folder` when given, else where data usually is.

    `folder` may be the file itself. UserError naming the patterns and the places.
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
    """Arrays of an .npz file, by key. UserError naming what is missing."""
    try:
        with np.load(path, allow_pickle=False) as data:
            missing = [key for key in keys if key not in data.files]
            if missing:
                raise UserError(f"{path}: no array {', '.join(missing)}; it has {', '.join(data.files)}")
            return [data[key] for key in keys]
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: not an .npz file of arrays: {error}") from None


def split(x: np.ndarray, y: np.ndarray, test: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x_train, y_train, x_test, y_test: `test` samples drawn at random, each class in proportion."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]  # by class, shuffled inside: every n-th is a stratified draw
    picked = np.zeros(len(y), bool)
    picked[order[np.floor(np.arange(test) * len(y) / test + rng.random()).astype(int) % len(y)]] = True
    train = rng.permutation(np.flatnonzero(~picked))
    chosen = rng.permutation(np.flatnonzero(picked))
    return x[train], y[train], x[chosen], y[chosen]


def checked(data: Data) -> Data:
    """The data, or UserError for a part that is empty, of unequal lengths, or of one class only."""
    for subset, x, y in (("train", data.x_train, data.y_train), ("test", data.x_test, data.y_test)):
        if len(x) != len(y) or not len(y):
            raise UserError(f"{data.source}: {subset} part has {len(x)} samples and {len(y)} labels")
        if len(np.unique(y)) < 2:
            raise UserError(f"{data.source}: {subset} part holds one class only")
    return data

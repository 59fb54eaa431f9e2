"""CIFAR-10's cats and dogs (Krizhevsky): the python batches, the binary batches, or an .npz of the two classes."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.npz import arrays

from .data import Data, checked, find

CAT, DOG = 3, 5  # CIFAR-10's class numbers
CLASSES = ("cat", "dog")


class _Arrays(pickle.Unpickler):
    """Unpickles arrays and refuses everything else, because a pickle can run any code."""

    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return super().find_class(module, name)


def _python(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        batch = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        return np.asarray(batch[b"data"], np.uint8).reshape(-1, 3072), np.asarray(batch[b"labels"], np.int64)
    except (pickle.UnpicklingError, KeyError, ValueError, TypeError, EOFError, AttributeError, IndexError) as error:
        raise UserError(f"{path}: not a CIFAR-10 python batch: {error}") from None


def _binary(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = np.fromfile(path, np.uint8)
    if not len(data) or len(data) % 3073:
        raise UserError(f"{path}: {len(data)} bytes, not a whole number of CIFAR-10's records of 3073")
    records = data.reshape(-1, 3073)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _pick(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cats and dogs: images (n, 32, 32, 3) and classes 0, 1."""
    x, y = (np.concatenate(column) for column in zip(*parts))
    keep = (y == CAT) | (y == DOG)
    return x[keep].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), (y[keep] == DOG).astype(np.uint8)


def load(folder: Path | None = None) -> Data:
    """Load 32 x 32 colour images, 10,000 to train and 2,000 for the test; class 1 is dog."""
    path = find(
        folder, "cifar_cats_dogs.npz", "cifar-10-batches-py", "data_batch_1", "cifar-10-batches-bin", "data_batch_1.bin"
    )
    if path.suffix == ".npz":
        x, y, xt, yt = arrays(path, "train_images", "train_labels", "test_images", "test_labels")
        order = np.random.default_rng(7).permutation(len(y))
        return checked(Data("cats_dogs", x[order], y.ravel()[order], xt, yt.ravel(), CLASSES, str(path)))
    root = path if path.is_dir() else path.parent
    batches = sorted(root.glob("data_batch_?")) or sorted(root.glob("data_batch_?.bin"))
    test = [root / "test_batch"] if (root / "test_batch").exists() else [root / "test_batch.bin"]
    if not batches or not test[0].exists():
        raise UserError(f"{root}: want data_batch_1.. and test_batch, python or binary (.bin)")
    read = _binary if batches[0].suffix == ".bin" else _python
    (x, y), (xt, yt) = (_pick([read(p) for p in paths]) for paths in (batches, test))
    return checked(Data("cats_dogs", x, y, xt, yt, CLASSES, str(root)))

"""Kept samples as files that other tools read: .npz, .csv, or a folder of pictures, one a class."""

import base64
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.link import wire

from ...common.errors import UserError
from ..rdl.models.pictures import png
from ..rdl.models.tensors import NUMBERS
from .sample_store import Sample

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
ABOUT = ("id", "at", "device", "model", "bin", "chance", "weight", "label", "score")
SUFFIX = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


def export(samples: Iterable[Sample], path: Path) -> int:
    """Write samples in the format of the path's suffix, or as pictures.

    Returns:
        The number of samples.

    Raises:
        UserError: the samples are of several kinds, which .npz cannot hold, or are no pictures.
    """
    if path.suffix == ".npz":
        return _npz(list(samples), path)
    if path.suffix == ".csv":
        return _csv(samples, path)
    if path.suffix:
        raise UserError(f"{path}: want .npz, .csv, or a folder for pictures")
    return _pictures(samples, path)


def tensor(sample: Sample) -> np.ndarray | bytes:
    """The data as they were sent: an array of the request's shape, or raw bytes."""
    return sample.data if sample.dtype == wire.RAW else np.frombuffer(sample.data, NUMBERS[sample.dtype]).reshape(sample.shape)


def _cell(value: object) -> object:
    """A value for a spreadsheet: a text that would be a formula there gets an apostrophe. A zero byte, which no .csv can hold,
    becomes U+FFFD."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "\ufffd")
    return f"'{value}" if value.startswith(FORMULA) else value


def _npz(samples: list[Sample], path: Path) -> int:
    kinds = {(sample.dtype, sample.shape if sample.dtype != wire.RAW else ()) for sample in samples}
    if len(kinds) > 1:
        raise UserError(f"{path}: samples of {len(kinds)} shapes or types in one file; pick a device or a model")
    columns: dict[str, Any] = {name: np.array([getattr(sample, name) for sample in samples]) for name in ABOUT}
    data = [tensor(sample) for sample in samples]
    x = np.array(data, dtype=object) if kinds and next(iter(kinds))[0] == wire.RAW else np.array(data)
    if x.dtype == object:  # bytes of many lengths, without pickle: one after the other, and where each begins
        ends = np.cumsum([0, *map(len, data)])
        np.savez_compressed(path, data=np.frombuffer(b"".join(map(bytes, data)), np.uint8), begin=ends, **columns)
    else:
        np.savez_compressed(path, x=x, **columns)
    return len(samples)


def _csv(samples: Iterable[Sample], path: Path) -> int:
    """A row a sample: its numbers, or raw bytes as base64."""
    count = 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for sample in samples:
            data = tensor(sample)
            values = [base64.b64encode(data).decode()] if isinstance(data, bytes) else data.ravel().tolist()
            if not count:
                names = ["data"] if isinstance(data, bytes) else [f"x{n}" for n in range(len(values))]
                writer.writerow([*ABOUT, *names])
            writer.writerow([*(_cell(getattr(sample, name)) for name in ABOUT), *values])
            count += 1
    return count


def _pictures(samples: Iterable[Sample], folder: Path) -> int:
    """FOLDER/<label>/<id>.jpg or .png."""
    count = 0
    for sample in samples:
        data = tensor(sample)
        try:
            content, suffix = (data, SUFFIX.get(sample.media)) if isinstance(data, bytes) else (png(data), ".png")
        except ValueError as error:
            raise UserError(f"{folder}: sample {sample.id}: {error}; export them to .npz or .csv") from None
        if suffix is None:
            kind = sample.media or "raw bytes"
            raise UserError(f"{folder}: sample {sample.id} is {kind}, no picture; export to .npz or .csv")
        place = folder / str(sample.label)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{sample.id}{suffix}").write_bytes(content)
        count += 1
    return count

"""Samples that devices offloaded and a worker kept, as a pair's recipe reads its data: numbers, labels, weights."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from h2t2.link import wire

from ...common.errors import UserError
from ...common.pairs import Pair
from ...fleet.rdl import models
from ...fleet.rdl.decoding import FORMATS, PIXELS
from ...fleet.samples import sample_store
from ...fleet.samples.sample_store import Sample

CAP = 20.0  # weight of one sample, at most: one that was rarely explored must not outvote all others


@dataclass(frozen=True)
class FieldSamples:
    """Samples of the field in the order of time.

    Attributes:
        x: Their numbers, float32 (n, ...), in the shape of the pair's test samples. Numbers that offloads lack are NaN.
        y: The remote model's labels (n,).
        weight: How many samples each stands for, (n,), 1 to CAP.
        skipped: How many samples have another shape or type than the pair's offloads have now.
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.y)

    def split(self, first: int) -> tuple[FieldSamples, FieldSamples]:
        """The first of them, and the later ones."""
        parts = slice(first), slice(first, None)
        earlier, later = (FieldSamples(self.x[part], self.y[part], self.weight[part]) for part in parts)
        return earlier, later


def load(pair: Pair, folder: Path, device: str | None) -> FieldSamples:
    """Read the samples of a pair's model; device: of this one only.

    Raises: UserError where there are none, or where they cannot train the pair's local model.
    """
    _check_offloads(pair)
    with sample_store.readable(folder) as base:
        rows = list(sample_store.read(base, device, pair.info.model_id))
    matching = [row for row in rows if _matches(pair, row)]
    if not matching:
        raise UserError(f"{folder}: no samples of the pair's model, {pair.info.model_id} ({len(rows)} of it in another shape)")
    y = np.array([row.label for row in matching])
    if y.max() >= pair.info.classes:
        raise UserError(f"{folder}: labels to {y.max()}; the pair has {pair.info.classes} classes")
    x = np.array([_numbers(pair, row) for row in matching], np.float32)
    weight = np.minimum([row.weight for row in matching], CAP)
    return FieldSamples(x, y, weight, len(rows) - len(matching))


def _check_offloads(pair: Pair) -> None:
    """UserError for a pair whose offloads lack numbers that the local model reads."""
    info = pair.info
    remote, local = info.columns["rdl"], info.columns["ldl"]
    if remote is not None and (local is None or not set(local) <= set(remote)):
        raise UserError(
            f"{pair.folder}: offloads hold the columns {remote}: too few to train the local model, which reads others"
        )
    if info.remote.dtype == "raw" and info.picture is None:
        raise UserError(f"{pair.folder}: offloads are {info.remote.media} bytes, not numbers; only pictures are read back")


def _matches(pair: Pair, sample: Sample) -> bool:
    """Whether a sample has the type and the shape of the pair's offloads."""
    remote = pair.info.remote
    if wire.DTYPES[sample.dtype] != remote.dtype:
        return False
    if sample.dtype == wire.RAW:
        return sample.media == remote.media
    return int(np.prod(sample.shape)) == int(np.prod(remote.shape))


def _numbers(pair: Pair, sample: Sample) -> np.ndarray:
    """A sample's numbers in the shape of the pair's samples."""
    info = pair.info
    if sample.dtype == wire.RAW:
        return _picture(pair, sample)
    batch = models.as_batch([sample.data], sample.dtype, tuple(info.remote.shape))
    values = np.asarray(models.floats(batch, models.of_pair(pair))[0])
    columns = info.columns["rdl"]
    if columns is None:
        return values.reshape(pair.x.shape[1:])
    numbers = np.full(pair.x.shape[1:], np.nan, np.float32)
    numbers[columns] = values.ravel()
    return numbers


def _picture(pair: Pair, sample: Sample) -> np.ndarray:
    """The numbers that a device computes from an encoded picture."""
    from PIL import Image, UnidentifiedImageError

    camera = pair.info.picture
    assert camera
    try:
        with Image.open(BytesIO(sample.data), formats=FORMATS) as image:
            if image.width * image.height > PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are more than {PIXELS:,}")
            pixels = np.asarray(image.convert("L" if camera.channels == 1 else "RGB").resize((camera.width, camera.height)))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"sample {sample.id} of {sample.device}: {error}") from None
    return camera.convert(pixels.reshape(camera.height, camera.width, -1))

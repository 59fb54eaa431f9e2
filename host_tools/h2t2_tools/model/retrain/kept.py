"""Kept samples as a pair's recipe knows its data: numbers of a sample, labels, weights."""

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
from ...fleet.samples import store
from ...fleet.samples.store import Sample

CAP = 20.0  # most that one sample counts: a rarely explored one must not outvote all others


@dataclass(frozen=True)
class Kept:
    """In the order of time. x: (n, ...) float32, as the pair's test samples; y: (n,) what the remote model said; weight: (n,)
    how many samples each stands for; raw: (n, height, width, channels) pictures that x was made of, or None. skipped: samples
    of another shape or type than the pair's offloads have now."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    skipped: int

    def part(self, which: slice) -> Kept:
        return Kept(self.x[which], self.y[which], self.weight[which], 0)

    def __len__(self) -> int:
        return len(self.y)


def load(pair: Pair, folder: Path, device: str | None) -> Kept:
    """Those of the pair's model. UserError where there are none, or a recipe could not be given them."""
    _checked(pair)
    with store.readable(folder) as base:
        rows = list(store.read(base, device, pair.info.model_id))
    fitting = [row for row in rows if _fits(pair, row)]
    if not fitting:
        raise UserError(f"{folder}: no samples of the pair's model, {pair.info.model_id} ({len(rows)} of it in another shape)")
    x = np.array([_numbers(pair, row) for row in fitting], np.float32)
    y = np.array([row.label for row in fitting])
    if y.max() >= pair.info.classes:
        raise UserError(f"{folder}: labels to {y.max()}; the pair has {pair.info.classes} classes")
    weight = np.minimum([row.weight for row in fitting], CAP)
    return Kept(x, y, weight, len(rows) - len(fitting))


def _checked(pair: Pair) -> None:
    """UserError for a pair whose offloads do not tell what the local model reads."""
    about = pair.info
    sent, read = about.columns["rdl"], about.columns["ldl"]
    if sent is not None and (read is None or not set(read) <= set(sent)):
        raise UserError(f"{pair.folder}: offloads hold the columns {sent}, the local model reads others; they cannot train it")
    if about.remote.dtype == "raw" and about.picture is None:
        raise UserError(f"{pair.folder}: offloads are {about.remote.media} bytes, not numbers; only pictures are read back")


def _fits(pair: Pair, sample: Sample) -> bool:
    remote = pair.info.remote
    if wire.DTYPES[sample.dtype] != remote.dtype:
        return False
    return (
        sample.media == remote.media if sample.dtype == wire.RAW else int(np.prod(sample.shape)) == int(np.prod(remote.shape))
    )


def _numbers(pair: Pair, sample: Sample) -> np.ndarray:
    """A sample's numbers, of the shape of the pair's; those that are not sent are NaN."""
    about = pair.info
    if sample.dtype == wire.RAW:
        return _picture(pair, sample)
    batch = models.as_batch([sample.data], sample.dtype, tuple(about.remote.shape))
    values = models.floats(batch, models.of_pair(pair))[0]
    if about.columns["rdl"] is None:
        return values.reshape(pair.x.shape[1:])
    made = np.full(pair.x.shape[1:], np.nan, np.float32)
    made[about.columns["rdl"]] = values.ravel()
    return made


def _picture(pair: Pair, sample: Sample) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    given = pair.info.picture
    assert given
    try:
        with Image.open(BytesIO(sample.data), formats=FORMATS) as image:
            if image.width * image.height > PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are more than {PIXELS:,}")
            pixels = np.asarray(image.convert("L" if given.channels == 1 else "RGB").resize((given.width, given.height)))
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"sample {sample.id} of {sample.device}: {error}") from None
    return given.convert(pixels.reshape(given.height, given.width, -1))

"""A request as a person can look at it: a picture, a curve, numbers, or words."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np

from h2t2.link import wire

from ...common.pairs import Pair
from .models import as_batch, floats, of_pair
from .models.pictures import picture

LEAST = 4  # pixels of a side, below which an array is no picture
CURVE = 25  # numbers, from which on a row of them is a curve


@dataclass(frozen=True)
class Shown:
    """One of: pixels, (height, width) or (height, width, 3) uint8; curve, numbers (n,) or of several channels (n, channels);
    numbers; words."""

    pixels: np.ndarray | None = None
    curve: np.ndarray | None = None
    numbers: list[float] | None = None
    words: str = ""


def shown(pair: Pair, request: wire.Request) -> Shown:
    """What a request holds, as the pair knows its samples. Bytes that cannot be read are words that say so."""
    if request.dtype == wire.RAW:
        return _raw(bytes(request.data), request.media)
    batch = as_batch([request.data], request.dtype, tuple(request.shape))
    x = floats(batch, of_pair(pair))[0]
    if x.ndim >= 2 and min(x.shape[:2]) >= LEAST and (x.ndim == 2 or x.shape[2:] in ((1,), (3,))):
        return Shown(pixels=picture(np.asarray(batch)[0] if request.dtype != wire.FLOAT32 else x))
    if x.ndim == 2 or x.size >= CURVE:
        return Shown(curve=x.reshape(len(x), -1) if x.ndim > 1 else x)
    return Shown(numbers=[float(value) for value in x.ravel()])


def _raw(data: bytes, media: str) -> Shown:
    if media.startswith("text/"):
        return Shown(words=data.decode(errors="replace"))
    if media.startswith("image/"):
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(BytesIO(data)) as image:
                image.draft("RGB", (1024, 1024))
                return Shown(pixels=np.asarray(image.convert("RGB")))
        except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
            return Shown(words=f"a picture that cannot be read: {error}")
    return Shown(words=f"{len(data):,} bytes of {media or 'no media type'}")

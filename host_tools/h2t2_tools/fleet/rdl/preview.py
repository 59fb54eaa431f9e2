"""A preview of a request for a person: a picture, a curve, numbers, or words."""

from dataclasses import dataclass

import numpy as np

from h2t2.cpython import worker_wire
from h2t2.link import wire

from ...common.pairs import Pair
from .decoding import decoded
from .models import as_batch, floats, of_pair
from .models.pictures import picture

LONGEST = 4000  # characters of a text
MIN_SIDE = 4  # pixels of a side, below which an array is no picture
CURVE = 25  # numbers from which on a row is shown as a curve


@dataclass(frozen=True)
class Preview:
    """One of these is set.

    Args:
        pixels: (height, width) or (height, width, 3) uint8.
        curve: (n, channels).
        numbers: a few.
        words: text.
    """

    pixels: np.ndarray | None = None
    curve: np.ndarray | None = None
    numbers: list[float] | None = None
    words: str = ""


def preview_of(pair: Pair, request: worker_wire.Request) -> Preview:
    """The preview of a request, by what the pair says of its samples. Unreadable bytes become words.

    A picture file takes a process and some tenths of a second: do not call this in an event loop.
    """
    if request.dtype == wire.RAW:
        return _raw(bytes(request.data), request.media)
    batch = as_batch([request.data], request.dtype, tuple(request.shape))
    x = floats(batch, of_pair(pair))[0]
    if x.ndim >= 2 and min(x.shape[:2]) >= MIN_SIDE and (x.ndim == 2 or x.shape[2:] in ((1,), (3,))):
        return Preview(pixels=picture(np.asarray(batch)[0] if request.dtype != wire.FLOAT32 else x))
    if x.ndim == 2 or x.size >= CURVE:
        return Preview(curve=x.reshape(len(x), -1))
    return Preview(numbers=[float(value) for value in x.ravel()])


def _raw(data: bytes, media: str) -> Preview:
    if media.startswith("text/"):
        text = data.decode(errors="replace")
        return Preview(words=text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text):,} characters)")
    if media.startswith("image/"):
        try:
            return Preview(pixels=decoded(data))
        except ValueError as error:
            return Preview(words=f"a picture that cannot be read: {error}")
    return Preview(words=f"{len(data):,} bytes of {media or 'no media type'}")

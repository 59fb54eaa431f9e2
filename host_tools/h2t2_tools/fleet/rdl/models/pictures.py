"""Payloads for models that see pictures: raw bytes as they are, numbers as a PNG."""

import base64
from io import BytesIO

import numpy as np

MIN_SIDE = 64  # pixels of a side; smaller pictures are enlarged by a whole factor, as such models see little in them
BLANK_PNG = base64.b64decode(  # a grey picture, MIN_SIDE wide and high: a remote model without Pillow can be tested with it
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAAAAACPAi4CAAAAKUlEQVR4nO3MQREAAAwCIJtb3RD77SAA6VEEAoFAIBAIBAKBQCAQfA8G18/wahAEfsIAAAAA"
    "SUVORK5CYII="
)


def picture(sample: np.ndarray) -> np.ndarray:
    """(height, width) or (height, width, 3) uint8 of a sample of numbers. ValueError for a shape that is no picture's."""
    x = sample[..., 0] if sample.ndim == 3 and sample.shape[2] == 1 else sample
    if x.ndim not in (2, 3) or (x.ndim == 3 and x.shape[2] != 3):
        raise ValueError(f"a sample of shape {sample.shape} is no picture: want (height, width), or with 1 or 3 channels")
    if x.dtype == np.int8:
        return (x.astype(np.int16) + 128).astype(np.uint8)
    if x.dtype == np.uint8:
        return x
    low, high = float(x.min()), float(x.max())
    top = 1.0 if low >= 0 and high <= 1 else 255.0
    return np.clip(x * (255 / top), 0, 255).astype(np.uint8)


def png(sample: np.ndarray) -> bytes:
    """A sample of numbers as a PNG file, enlarged to MIN_SIDE."""
    from PIL import Image

    pixels = picture(sample)
    factor = -(-MIN_SIDE // min(pixels.shape[:2]))
    with BytesIO() as file:
        Image.fromarray(pixels.repeat(factor, 0).repeat(factor, 1)).save(file, "PNG")
        return file.getvalue()


def data_url(sample: np.ndarray | bytes, media: str) -> str:
    """A sample as a data URL. media: type of bytes."""
    if isinstance(sample, bytes):
        if not media.startswith("image/"):
            raise ValueError(f"offloads of {media or 'no media type'}; want pictures, image/jpeg or the like")
        kind, data = media, sample
    else:
        kind, data = "image/png", png(sample)
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"

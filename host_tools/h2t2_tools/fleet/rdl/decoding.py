"""Decodes pictures of devices in a process of its own, which hostile bytes cannot leave.

The process runs this file, which imports nothing of ours. It has little memory and time, writes no file, and checks a picture's
size before it takes memory for the pixels.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

PIXELS = 1 << 24  # of a picture at most: twice what a Pi's camera takes at its default
PREVIEW_PIXELS = 1024  # of a side
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
MEMORY = 768 << 20  # bytes of address space, of which the interpreter and the library take half
CPU_S, WAIT_S = 5, 15.0  # of processor time; of patience on a busy machine


def decoded(data: bytes) -> np.ndarray:
    """The pixels of a picture in a file's format, (height, width, 3) uint8, no side longer than SHOWN.

    Raises:
        ValueError: the data are no picture, too large, or take too long; the text says which.
    """
    import numpy as np

    try:
        run = subprocess.run([sys.executable, "-I", __file__], input=data, capture_output=True, timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        raise ValueError(f"it takes longer than {WAIT_S:g} s to decode") from None
    if run.returncode < 0:
        raise ValueError(f"its decoder was ended by signal {-run.returncode}: it takes too much time or memory")
    head, _, pixels = run.stdout.partition(b"\n")
    if run.returncode:
        lines = run.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(lines[-1][:200] if lines else "it cannot be decoded")
    width, height = map(int, head.split()) if re.fullmatch(rb"\d{1,5} \d{1,5}", head) else (0, 0)
    if not 0 < width <= PREVIEW_PIXELS or not 0 < height <= PREVIEW_PIXELS or len(pixels) != 3 * width * height:
        raise ValueError("its decoder returned something else")
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def _limit() -> None:
    """Limit the resources of this process."""
    import resource

    for name, value in (("RLIMIT_AS", MEMORY), ("RLIMIT_CPU", CPU_S), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0)):
        resource.setrlimit(getattr(resource, name), (value, value))


def _decode() -> None:
    """Decode standard input to standard output: a line "WIDTH HEIGHT", then the pixels."""
    from io import BytesIO

    from PIL import Image, UnidentifiedImageError

    _limit()
    Image.MAX_IMAGE_PIXELS = None  # we check a smaller limit
    try:
        opened = Image.open(BytesIO(sys.stdin.buffer.read()), formats=FORMATS)
    except UnidentifiedImageError:
        sys.exit(f"it is none of {', '.join(FORMATS)}")
    with opened as image:
        width, height = image.size
        if width * height > PIXELS:
            sys.exit(f"{width} x {height} pixels are more than {PIXELS:,}")
        image.draft("RGB", (PREVIEW_PIXELS, PREVIEW_PIXELS))
        preview = image.convert("RGB")
        preview.thumbnail((PREVIEW_PIXELS, PREVIEW_PIXELS))
        sys.stdout.buffer.write(b"%d %d\n" % preview.size + preview.tobytes())


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    _decode()

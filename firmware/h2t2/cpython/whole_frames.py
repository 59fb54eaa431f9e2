"""A frame of the serial link as one piece. Boards send theirs piece by piece: h2t2.link.frames.Encoder."""

from io import BytesIO

from ..link.frames import Encoder


def encode(kind: int, payload: bytes) -> bytes:
    """Return the bytes of a frame."""
    line = BytesIO()
    frame = Encoder(line, kind)
    frame.write(payload)
    frame.end()
    return line.getvalue()

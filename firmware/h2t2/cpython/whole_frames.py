"""A frame of the serial link as one piece. Boards send theirs piece by piece: h2t2.link.frames.Encoder."""

from io import BytesIO

from ..link.frames import send


def encode(kind: int, payload: bytes) -> bytes:
    """Return the bytes of a frame."""
    line = BytesIO()
    send(line, kind, payload)
    return line.getvalue()

# The side of the wire format that only a worker has: what a request says, and its reply. Boards go without it.
from struct import pack, unpack_from

from ..link.wire import (
    ITEM,
    MALFORMED,
    MAX_DATA,
    MAX_DIMENSIONS,
    MAX_MEDIA,
    OTHER_VERSION,
    RAW,
    REPLY,
    REQUEST,
    REQUEST_HEADER,
    VERSION,
    size_of,
)


def looks_like_request(payload: bytes) -> bool:
    """Whether a payload is of this version and as long as a request's header: enough to look into it with *_of()."""
    return len(payload) >= REQUEST_HEADER and payload[0] == VERSION


def left_of(payload: bytes) -> int:
    """Milliseconds an answer to a request is of use, 0: it does not say."""
    return unpack_from("<I", payload, 12)[0]


class Request:
    """What a request says. data: a view of the bytes after the header; media: of RAW data, else "". left: ms; chance: Q15."""

    def __init__(self, model, boot, sequence, left, chance, k, dtype, shape, media, data):
        self.model = model
        self.boot = boot
        self.sequence = sequence
        self.left = left
        self.chance = chance
        self.k = k
        self.dtype = dtype
        self.shape = shape
        self.media = media
        self.data = data


def refusal(payload: bytes) -> int:
    """The status for bytes that are no request: OTHER_VERSION where they begin with one, else MALFORMED."""
    return OTHER_VERSION if payload and payload[0] != VERSION else MALFORMED


def peek_request(payload: bytes) -> tuple | None:
    """(boot, sequence) of a payload long enough to hold them, else None: enough to answer a malformed request."""
    if len(payload) < 12:
        return None
    return unpack_from("<II", payload, 4)


def decode_request(payload: bytes) -> Request:
    """The Request in a payload. ValueError, saying what is wrong, for anything else."""
    if len(payload) < 1 or payload[0] != VERSION:
        raise ValueError("request version %s, this one reads %d" % (payload[0] if payload else "of nothing", VERSION))
    if len(payload) < REQUEST_HEADER:
        raise ValueError("request of %d bytes is shorter than its header" % len(payload))
    _, flags, model, boot, sequence, left, chance, k, dtype, dimensions = unpack_from(REQUEST, payload, 0)
    if flags or chance > 32768:
        raise ValueError("request with flags %d, chance %d" % (flags, chance))
    if dtype >= len(ITEM):
        raise ValueError("dtype code %d is none of 0..%d" % (dtype, len(ITEM) - 1))
    raw = dtype == RAW
    at = REQUEST_HEADER + 2 * dimensions * (2 if raw else 1)
    if not 0 < dimensions <= (1 if raw else MAX_DIMENSIONS) or len(payload) < at + raw:
        raise ValueError("request with %d dimensions in %d bytes" % (dimensions, len(payload)))
    shape = unpack_from("<I" if raw else "<%dH" % dimensions, payload, REQUEST_HEADER)
    size = size_of(dtype, shape)
    if size < 0:
        raise ValueError("shape %s is empty or above %d bytes" % (shape, MAX_DATA))
    media = ""
    if raw:
        length = payload[at]
        at += 1 + length
        if length > MAX_MEDIA or len(payload) < at:
            raise ValueError("media type of %d bytes in %d" % (length, len(payload)))
        name = bytes(payload[at - length : at])
        if max(name + b" ") > 126 or min(name + b" ") < 32:
            raise ValueError("media type is not printable ASCII")
        media = name.decode()
    if len(payload) != at + size:
        raise ValueError("request of %d bytes, want %d for shape %s" % (len(payload), at + size, shape))
    return Request(model, boot, sequence, left, chance, k, dtype, shape, media, memoryview(payload)[at:])


def encode_reply(status: int, boot: int, sequence: int, label: int, score: int) -> bytes:
    """Reply payload; label: the class, -1 for none; score: Q15, 0..32768."""
    return pack(REPLY, VERSION, status, boot, sequence, label, score)

# The worker's side of the wire format: it reads requests and writes replies.
from dataclasses import KW_ONLY, dataclass
from struct import pack, unpack_from

from ..link import wire


@dataclass(slots=True)
class Request:
    """The content of a request.

    Attributes:
        model, boot, sequence: number of the model, of the device's start, of the request.
        remaining_ms: for which an answer is of use; 0: not told.
        chance: probability of this offload, Q15; 0: not told.
        k: the bin.
        dtype, shape: of the tensor; of RAW data the shape is their length.
        media: type of RAW data, else "".
        data: a view of the bytes after the header.
    """

    model: int
    boot: int
    sequence: int
    remaining_ms: int
    _: KW_ONLY
    chance: int
    k: int
    dtype: int
    shape: tuple[int, ...]
    media: str
    data: memoryview


def refusal(payload: bytes) -> int:
    """The status for bytes that are no request: OTHER_VERSION or MALFORMED."""
    return wire.OTHER_VERSION if payload and payload[0] != wire.VERSION else wire.MALFORMED


def peek_request(payload: bytes) -> tuple[int, int] | None:
    """(boot, sequence) of a payload that is long enough, else None: a reply to a malformed request needs no more."""
    if len(payload) < 12:
        return None
    boot, sequence = unpack_from("<II", payload, 4)
    return boot, sequence


def decode_request(payload: bytes) -> Request:
    """The Request in a payload. ValueError, with the reason, for bytes that are no request."""
    if len(payload) < 1 or payload[0] != wire.VERSION:
        raise ValueError("request version %s, this one reads %d" % (payload[0] if payload else "of nothing", wire.VERSION))
    if len(payload) < wire.REQUEST_HEADER:
        raise ValueError("request of %d bytes is shorter than its header" % len(payload))
    _, flags, model, boot, sequence, remaining_ms, chance, k, dtype, dimensions = unpack_from(wire.REQUEST, payload, 0)
    if flags or chance > 32768:
        raise ValueError("request with flags %d, chance %d" % (flags, chance))
    if dtype >= len(wire.ITEM):
        raise ValueError("dtype code %d is none of 0..%d" % (dtype, len(wire.ITEM) - 1))
    raw = dtype == wire.RAW
    at = wire.REQUEST_HEADER + 2 * dimensions * (2 if raw else 1)
    if not 0 < dimensions <= (1 if raw else wire.MAX_DIMENSIONS) or len(payload) < at + raw:
        raise ValueError("request with %d dimensions in %d bytes" % (dimensions, len(payload)))
    shape = unpack_from("<I" if raw else "<%dH" % dimensions, payload, wire.REQUEST_HEADER)
    size = wire.size_of(dtype, shape)
    if size < 0:
        raise ValueError("shape %s is empty or above %d bytes" % (shape, wire.MAX_DATA))
    media = ""
    if raw:
        length = payload[at]
        at += 1 + length
        if length > wire.MAX_MEDIA or len(payload) < at:
            raise ValueError("media type of %d bytes in %d" % (length, len(payload)))
        name = bytes(payload[at - length : at])
        if max(name + b" ") > 126 or min(name + b" ") < 32:
            raise ValueError("media type is not printable ASCII")
        media = name.decode()
    if len(payload) != at + size:
        raise ValueError("request of %d bytes, want %d for shape %s" % (len(payload), at + size, shape))
    data = memoryview(payload)[at:]
    return Request(model, boot, sequence, remaining_ms, chance=chance, k=k, dtype=dtype, shape=shape, media=media, data=data)


def encode_reply(status: int, boot: int, sequence: int, label: int, score: int) -> bytes:
    """The payload of a reply. label: the class, -1 for none. score: Q15, 0..32768."""
    return pack(wire.REPLY, wire.VERSION, status, boot, sequence, label, score)

# The wire format: request and reply payloads, both directions, CPython and MicroPython. No sockets, no policy.
#
# All little-endian. Request: version u8, flags u8, model u16, boot u32, sequence u32, dtype u8, dimensions u8,
# shape u16 each, then the raw tensor. Reply: version u8, status u8, boot u32, sequence u32, label i8, score u16 (Q15).
from struct import calcsize, pack, unpack_from

VERSION = 1
INT8 = 0  # dtype codes; other codes are refused
OK, MALFORMED, WRONG_MODEL, FAILED, BUSY = 0, 1, 2, 3, 4  # reply status
STATUS = ("ok", "malformed request", "model not served here", "the remote model failed", "busy")
MAX_TENSOR = 262144  # bytes; checked before any memory is taken
MAX_DIMENSIONS = 6
MAX_DEVICE = 64  # bytes of a device's name

_REQUEST = "<BBHIIBB"
_REPLY = "<BBIIbH"
REQUEST_HEADER = calcsize(_REQUEST)
MAX_REQUEST = REQUEST_HEADER + 2 * MAX_DIMENSIONS + MAX_TENSOR
REPLY_SIZE = calcsize(_REPLY)


def topic(device: str, leaf: str) -> str:
    """The topic h2t2/1/<device>/<leaf>; leaf: request, reply, status, state or command. '+' for any device."""
    return "h2t2/1/" + device + "/" + leaf


def device_of(name: str) -> str | None:
    """The device in a topic as topic() makes it, or None where it is no such topic."""
    parts = name.split("/")
    return parts[2] if len(parts) == 4 and is_device(parts[2]) and name == topic(parts[2], parts[3]) else None


def is_device(name: str) -> bool:
    """Whether a device may be called so: 1 to MAX_DEVICE bytes of UTF-8 without what means something in a topic."""
    return 0 < len(name.encode()) <= MAX_DEVICE and not [c for c in name if c in "/+#\0"]


def checked_device(name: str) -> str:
    """The name of a device, or ValueError for one that is_device() refuses."""
    if not is_device(name):
        raise ValueError("device name %r: want 1 to %d bytes without / + #" % (name, MAX_DEVICE))
    return name


def encode_request(model: int, boot: int, sequence: int, shape, tensor) -> bytes:
    """Request payload for an int8 tensor (bytes-like, len = product of shape). ValueError where they do not fit."""
    size = 1
    for n in shape:
        size *= n
    if size != len(tensor) or not 0 < size <= MAX_TENSOR or len(shape) > MAX_DIMENSIONS:
        raise ValueError("tensor of %d bytes does not fit shape %s" % (len(tensor), shape))
    head = pack(_REQUEST, VERSION, 0, model, boot, sequence, INT8, len(shape))
    for n in shape:
        head += pack("<H", n)
    return head + bytes(tensor)


def peek_request(payload: bytes) -> tuple | None:
    """(boot, sequence) of a payload long enough to hold them, else None: enough to answer a malformed request."""
    if len(payload) < REQUEST_HEADER:
        return None
    return unpack_from("<II", payload, 4)


def decode_request(payload: bytes) -> tuple:
    """(model, boot, sequence, shape, tensor memoryview) of a request. ValueError, saying what is wrong, for anything else."""
    if len(payload) < REQUEST_HEADER:
        raise ValueError("request of %d bytes is shorter than its header" % len(payload))
    version, flags, model, boot, sequence, dtype, dimensions = unpack_from(_REQUEST, payload, 0)
    if version != VERSION or flags:
        raise ValueError("request version %d, flags %d: want version %d, flags 0" % (version, flags, VERSION))
    if dtype != INT8:
        raise ValueError("dtype code %d is not int8 (0)" % dtype)
    start = REQUEST_HEADER + 2 * dimensions
    if not 0 < dimensions <= MAX_DIMENSIONS or len(payload) < start:
        raise ValueError("request with %d dimensions in %d bytes" % (dimensions, len(payload)))
    shape = unpack_from("<%dH" % dimensions, payload, REQUEST_HEADER)
    size = 1
    for n in shape:
        size *= n
        if not 0 < size <= MAX_TENSOR:
            raise ValueError("shape %s is empty or above %d bytes" % (shape, MAX_TENSOR))
    if len(payload) != start + size:
        raise ValueError("request of %d bytes, want %d for shape %s" % (len(payload), start + size, shape))
    return model, boot, sequence, shape, memoryview(payload)[start:]


def encode_reply(status: int, boot: int, sequence: int, label: int, score: int) -> bytes:
    """Reply payload; label: the class, -1 for none; score: Q15, 0..32768."""
    return pack(_REPLY, VERSION, status, boot, sequence, label, score)


def decode_reply(payload: bytes) -> tuple:
    """(status, boot, sequence, label, score) of a reply. ValueError for anything that is not one."""
    if len(payload) != REPLY_SIZE:
        raise ValueError("reply of %d bytes, want %d" % (len(payload), REPLY_SIZE))
    version, status, boot, sequence, label, score = unpack_from(_REPLY, payload, 0)
    if version != VERSION or status >= len(STATUS) or score > 32768 or (status == OK) != (label >= 0):
        raise ValueError("reply with version %d, status %d, label %d, score %d" % (version, status, label, score))
    return status, boot, sequence, label, score

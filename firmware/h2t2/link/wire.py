# The wire format, version 2: payloads of requests and replies, and topics. All little-endian. The functions that only a worker
# needs are in cpython/worker_wire.py.
#
# Request: version u8, flags u8, model u16, boot u32, sequence u32, remaining time u32 (milliseconds for which an answer is of
# use), chance u16 (probability of the offload,
# Q15; 0: not told), bin u8, dtype u8, dimensions u8, a u16 per dimension, then the data.
# A media type precedes data of dtype RAW: its length u8, then so many bytes of ASCII.
# Reply: version u8, status u8, boot u32, sequence u32, label i16 (-1: none), score u16 (Q15).
from struct import calcsize, pack, unpack_from

VERSION = 2
INT8, UINT8, FLOAT32, RAW = 0, 1, 2, 3  # dtypes; workers refuse others
DTYPES = ("int8", "uint8", "float32", "raw")  # their names in a configuration and in pair.json
ITEM = (1, 1, 4, 1)  # bytes per number of each
OK, MALFORMED, WRONG_MODEL, FAILED, BUSY = 0, 1, 2, 3, 4  # statuses
REFUSED, NOBODY, TOO_LARGE, OTHER_VERSION, LATER = 5, 6, 7, 8, 9
MAX_DATA = 262144  # bytes; checked before any memory is taken
MAX_DIMENSIONS, MAX_LENGTH = 6, 65535  # of a tensor, and along each of them
MAX_MEDIA = 64  # bytes of a media type

REQUEST = "<BBHIIIHBBB"
REPLY = "<BBIIhH"
REQUEST_HEADER = calcsize(REQUEST)
MAX_REQUEST = REQUEST_HEADER + 2 * MAX_DIMENSIONS + 1 + MAX_MEDIA + MAX_DATA
REPLY_SIZE = calcsize(REPLY)


def topic(device: str, leaf: str) -> str:
    """The topic h2t2/2/<device>/<leaf>. '+' for any device. Leaves: reply, status, state, command, answer, request_leaf()."""
    return "h2t2/2/" + device + "/" + leaf


def size_of(dtype: int, shape: tuple[int, ...] | list[int]) -> int:
    """Bytes of a tensor, or -1 for one that is empty or above MAX_DATA."""
    size = ITEM[dtype]
    for n in shape:
        size *= n
        if not 0 < size <= MAX_DATA:
            return -1
    return size


def checked_shape(shape: tuple[int, ...], dtype: int = INT8) -> tuple[int, ...]:
    """A tensor's shape, or ValueError where no request can hold it."""
    if not 0 < len(shape) <= MAX_DIMENSIONS or size_of(dtype, shape) < 0 or (dtype != RAW and max(shape) > MAX_LENGTH):
        raise ValueError("shape %s does not fit a request" % (shape,))
    return shape


def encode_request(
    model: int, boot: int, sequence: int, shape: tuple[int, ...], data: bytes, *, remaining_ms: int = 0, chance: int = 0,
    k: int = 0, dtype: int = INT8, media: str = ""
) -> bytes:  # fmt: skip
    """The payload of a request.

    Args:
        model, boot, sequence: number of the model, of the device's start, of the request.
        shape: of the tensor; of RAW data their length, (n,).
        data: bytes-like, as long as dtype and shape say.
        remaining_ms: for which an answer is of use; 0: not told.
        chance: probability of this offload, Q15; 0: not told.
        k: the bin, 0..255.
        dtype: INT8, UINT8, FLOAT32 or RAW.
        media: type of RAW data.

    Raises:
        ValueError: data, dtype and shape do not match.
    """
    checked_shape(shape, dtype)
    if size_of(dtype, shape) != len(data) or len(media) > MAX_MEDIA or k > 255:
        raise ValueError("%d bytes do not fit dtype %d and shape %s" % (len(data), dtype, shape))
    head = pack(REQUEST, VERSION, 0, model, boot, sequence, remaining_ms, min(chance, 32768), k, dtype, len(shape))
    for n in shape:
        head += pack("<H", n) if dtype != RAW else pack("<HH", n & 65535, n >> 16)
    if dtype == RAW:
        head += bytes([len(media)]) + media.encode()
    return head + bytes(data)


def request_size(shape: tuple[int, ...] | list[int], dtype: int = INT8, media: str = "") -> int:
    """Bytes of a request with a tensor of this shape; RAW: with n bytes, (n,), of that media type."""
    size = REQUEST_HEADER + 2 * len(shape) + size_of(dtype, shape)
    return size + 3 + len(media) if dtype == RAW else size


def decode_reply(payload: bytes) -> tuple[int, int, int, int, int]:
    """(status, boot, sequence, label, score) of a reply. ValueError for bytes that are no reply."""
    if len(payload) != REPLY_SIZE:
        raise ValueError("reply of %d bytes, want %d" % (len(payload), REPLY_SIZE))
    version, status, boot, sequence, label, score = unpack_from(REPLY, payload, 0)
    if version != VERSION or status > LATER or score > 32768 or (status == OK) != (label >= 0):
        raise ValueError("reply with version %d, status %d, label %d, score %d" % (version, status, label, score))
    return status, boot, sequence, label, score

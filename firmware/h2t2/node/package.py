# Update packages: their format, their chunks, and their signature. All integers are little-endian.
#
# A package: head, signature, body.
# Head: magic "H2TU", version u8, flags u8, model u16, counter u32, bytes of the body u32, samples of the trial u32, SHA-256 of
# the body. Signature: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 section 8.2) of the head, by a key of 2048 bits, exponent 65537.
# Body: parts, each a tag of four characters, its size u32, its bytes. With the flag ROTATES: the modulus of a key that replaces
# the one that signs this package; the counter is then that of keys, and model and trial are 0. With the flag RUNTIME: parts
# MORE and FILES; the model is then the lower 16 bits of the sys.implementation._mpy that loads the files (0: sources).
# With the flag FIRMWARE: parts MORE and IMAGE, of an ESP32; the model is then the chip's number in the image.
# FILES, a runtime: each file's name as its length u8, its size u32, the name, the bytes.
#
# A chunk, on the device's topic `command`: magic "H2UC", the package's id u32, its size u32, offset u32, CRC-32 of the data
# u32; then the data. A chunk without data asks how far the package has come. The id is the CRC-32 of head and signature.
import os
from binascii import crc32, hexlify
from struct import calcsize, unpack_from

if 0:  # for type checkers
    from ..annotations import IO, Any, BinaryIO

VERSION = 1
_HEAD = "<4sBBHIII32s"
HEAD = calcsize(_HEAD)
KEY = 256  # bytes of a modulus, and of a signature
SIGNED = HEAD + KEY  # bytes before the body
EXPONENT = 65537
ROTATES, RUNTIME, FIRMWARE = 1, 2, 3  # flags of a package that brings a key, a runtime, a firmware with its runtime
CHUNK = b"H2UC"  # commands begin otherwise: they are JSON
_CHUNK = "<4sIIII"
CHUNK_HEADER = calcsize(_CHUNK)
MOST_DATA = 192  # bytes of data in a chunk
LDL, TEST, DETAILS, APP = b"LDL ", b"TEST", b"MORE", b"APP "
FILES, IMAGE = b"RUN ", b"IMG "
TAGS = LDL, TEST, DETAILS, APP, FILES, IMAGE
PIECE = 512  # bytes to read, hash or copy at once
# DigestInfo of SHA-256, RFC 8017 section 9.2
_DIGEST = b"0\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"


class Head:
    """The head of a package.

    Attributes:
        model: Number of the remote model.
        counter: A later package has a higher one.
        size: Bytes of the body.
        trial: Samples of the trial.
        digest: SHA-256 of the body.
        rotates: Whether the body is a new key.
        runtime: Whether the body is a runtime or a firmware; model is then the number of its .mpy files, or of the chip.
        firmware: Whether it is a firmware.
    """

    def __init__(self, data: bytes):
        """Read the first SIGNED bytes of a package; their signature is not verified. ValueError for anything else."""
        if len(data) < SIGNED or bytes(data[:4]) != b"H2TU":
            raise ValueError("these bytes are no update package")
        _, version, flags, self.model, self.counter, self.size, self.trial, self.digest = unpack_from(_HEAD, data, 0)
        if version != VERSION or flags > FIRMWARE:
            words = "package version %d, flags %d; this runtime reads %d, 0 to %d"
            raise ValueError(words % (version, flags, VERSION, FIRMWARE))
        self.rotates = flags == ROTATES
        self.runtime = flags >= RUNTIME
        self.firmware = flags == FIRMWARE


def digest_info(digest: bytes) -> bytes:
    """Return what a signature of KEY bytes holds for a SHA-256: EMSA-PKCS1-v1_5, RFC 8017 section 9.2."""
    return b"\x00\x01" + b"\xff" * (KEY - 3 - len(_DIGEST) - len(digest)) + b"\x00" + _DIGEST + digest


def genuine(data: bytes, modulus: bytes) -> bool:
    """Return whether the first SIGNED bytes of a package have a valid signature by that key (KEY bytes, big-endian).

    ValueError on a board that cannot tell, as it lacks SHA-256 or powers of large integers. It takes one modular power.
    """
    try:
        from hashlib import sha256

        digest = sha256(bytes(data[:HEAD])).digest()
        n = int.from_bytes(modulus, "big")
        signature = int.from_bytes(bytes(data[HEAD:SIGNED]), "big")
        if signature >= n:
            return False
        return pow(signature, EXPONENT, n).to_bytes(KEY, "big") == digest_info(digest)
    except (ImportError, AttributeError, NotImplementedError, TypeError, OverflowError) as error:
        raise ValueError("this board cannot verify a signature: %s" % error) from None


def chunk_of(payload: bytes) -> "tuple[int, int, int, int, memoryview]":
    """Return id, size of the package, offset, CRC-32 and data of a chunk. ValueError for anything else."""
    if len(payload) < CHUNK_HEADER or bytes(payload[:4]) != CHUNK or len(payload) > CHUNK_HEADER + MOST_DATA:
        raise ValueError("%d bytes are no chunk of a package" % len(payload))
    _, number, size, offset, crc = unpack_from(_CHUNK, payload, 0)
    return number, size, offset, crc, memoryview(payload)[CHUNK_HEADER:]


def chunk_target(payload: bytes) -> "tuple[int, ...]":
    """Return id and size of the package of what may be a chunk; zeros if it is too short."""
    return unpack_from("<II", payload, 4) if len(payload) >= 12 else (0, 0)


def id_of(data: bytes) -> int:
    """Return the id of the package that begins with these SIGNED bytes."""
    return crc32(bytes(data[:SIGNED])) & 0xFFFFFFFF


def key_id(modulus: bytes) -> str:
    """Return the first 16 hexadecimal digits of a key's SHA-256; "" on a board that lacks SHA-256 and so takes no package."""
    try:
        from hashlib import sha256
    except ImportError:
        return ""
    return hexlify(sha256(modulus).digest()[:8]).decode()


def body_digest(file: "BinaryIO") -> bytes:
    """Return the SHA-256 of a package's body."""
    from hashlib import sha256

    digest = sha256()
    file.seek(SIGNED)
    buffer = memoryview(bytearray(PIECE))
    while True:
        n = file.readinto(buffer)
        if not n:
            return digest.digest()
        digest.update(buffer[:n])


def parts(file: "BinaryIO") -> "list[tuple[bytes, int, int]]":
    """Return (tag, offset, bytes) of each part of a package. ValueError if they do not fill it, or one is unknown."""
    end = file.seek(0, 2)
    at = SIGNED
    parts = []  # type: list[tuple[bytes, int, int]]
    while at < end:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise ValueError("the package ends within a part")
        tag, size = unpack_from("<4sI", head, 0)
        if tag not in TAGS or size > end - at - 8:
            raise ValueError("part %s of %d bytes" % (repr(tag)[2:-1], size))
        if tag in [row[0] for row in parts]:
            raise ValueError("part %s stands twice" % repr(tag)[2:-1])
        parts.append((tag, at + 8, size))
        at += 8 + size
    return parts


def copy(file: "BinaryIO", offset: int, size: int, path: str) -> None:
    """Copy a part of a package to a file of its own."""
    file.seek(offset)
    buffer = memoryview(bytearray(PIECE))
    with open(path, "wb") as out:
        while size:
            n = file.readinto(buffer[: min(size, PIECE)])
            if not n:
                raise ValueError("the package ends within a part")
            out.write(buffer[:n])
            size -= n
        sync(out)


def sync(file: "IO[Any] | BinaryIO") -> None:
    """Write to the disk what was written to a file; a board's file system does it at close."""
    file.flush()
    if hasattr(os, "fsync"):
        os.fsync(file.fileno())


def room(path: str) -> int:
    """Return the bytes free on the file system of that folder, -1 if it does not say."""
    try:
        disk = os.statvfs(path or ".")
    except (AttributeError, OSError):
        return -1
    return disk.f_frsize * disk.f_bavail if hasattr(disk, "f_frsize") else disk[1] * disk[4]

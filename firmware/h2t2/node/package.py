# Update packages: what one consists of, in which pieces it comes, and whether it is genuine. All little-endian.
#
# A package: head, signature, body.
# Head: magic "H2TU", version u8, flags u8, model u16, counter u32, bytes of the body u32, samples of the trial u32, SHA-256 of
# the body. Signature: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 section 8.2) of the head, by a key of 2048 bits, exponent 65537.
# Body: parts, each a tag of four characters, its size u32, its bytes.
#
# A chunk, on the device's topic `command`: magic "H2UC", the package's id u32, its size u32, offset u32, CRC-32 of the data
# u32; then the data. Without data it asks how far the package has come. The id: CRC-32 of head and signature.
import os
from binascii import crc32
from struct import calcsize, unpack_from

VERSION = 1
_HEAD = "<4sBBHIII32s"
HEAD = calcsize(_HEAD)
KEY = 256  # bytes of a modulus, and of a signature
SIGNED = HEAD + KEY  # bytes before the body
EXPONENT = 65537
CHUNK = b"H2UC"  # no command begins so: those are JSON
_CHUNK = "<4sIIII"
CHUNK_HEADER = calcsize(_CHUNK)
MOST_DATA = 192  # bytes of data in a chunk
LDL, TEST, MORE, APP = b"LDL ", b"TEST", b"MORE", b"APP "
TAGS = LDL, TEST, MORE, APP
PIECE = 512  # bytes that are read, hashed or copied at once
# DigestInfo of SHA-256, RFC 8017 section 9.2
_DIGEST = b"0\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"


class Head:
    """model: the remote model's number. counter: a later package's is higher. size: bytes of the body. trial: samples."""

    def __init__(self, *, model, counter, size, trial, digest):
        self.model = model
        self.counter = counter
        self.size = size
        self.trial = trial
        self.digest = digest


def head_of(data: bytes) -> Head:
    """The Head in a package's first SIGNED bytes, not verified. ValueError for anything else."""
    if len(data) < SIGNED or bytes(data[:4]) != b"H2TU":
        raise ValueError("these bytes are no update package")
    _, version, flags, model, counter, size, trial, digest = unpack_from(_HEAD, data, 0)
    if version != VERSION or flags:
        raise ValueError("package version %d, flags %d; this runtime reads %d, 0" % (version, flags, VERSION))
    return Head(model=model, counter=counter, size=size, trial=trial, digest=digest)


def digest_info(digest: bytes) -> bytes:
    """What a signature of KEY bytes holds of a SHA-256: EMSA-PKCS1-v1_5, RFC 8017 section 9.2."""
    return b"\x00\x01" + b"\xff" * (KEY - 3 - len(_DIGEST) - len(digest)) + b"\x00" + _DIGEST + digest


def genuine(data: bytes, modulus: bytes) -> bool:
    """Whether a package's first SIGNED bytes bear a signature by that key (KEY bytes, big-endian).

    ValueError where this board cannot tell: it lacks SHA-256 or powers of large integers. One modular power.
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


def chunk_of(payload: bytes) -> tuple:
    """(id, size of the package, offset, CRC-32, data) of a chunk. ValueError for anything else."""
    if len(payload) < CHUNK_HEADER or bytes(payload[:4]) != CHUNK or len(payload) > CHUNK_HEADER + MOST_DATA:
        raise ValueError("%d bytes are no chunk of a package" % len(payload))
    _, number, size, offset, crc = unpack_from(_CHUNK, payload, 0)
    return number, size, offset, crc, memoryview(payload)[CHUNK_HEADER:]


def named(payload: bytes) -> tuple:
    """(id, size of the package) of what may be a chunk; zeros where it is too short for that."""
    return unpack_from("<II", payload, 4) if len(payload) >= 12 else (0, 0)


def id_of(data: bytes) -> int:
    """What chunks call the package that begins with these SIGNED bytes."""
    return crc32(bytes(data[:SIGNED])) & 0xFFFFFFFF


def body_digest(file) -> bytes:
    """SHA-256 of what is in a file behind the head and the signature."""
    from hashlib import sha256

    made = sha256()
    file.seek(SIGNED)
    buffer = memoryview(bytearray(PIECE))
    while True:
        n = file.readinto(buffer)
        if not n:
            return made.digest()
        made.update(buffer[:n])


def parts(file) -> list:
    """[(tag, offset, bytes)] of a package in a file, in order. ValueError where they do not fill it, or one is unknown."""
    end = file.seek(0, 2)
    at = SIGNED
    found = []  # type: list[tuple]
    while at < end:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise ValueError("the package ends within a part")
        tag, size = unpack_from("<4sI", head, 0)
        if tag not in TAGS or size > end - at - 8:
            raise ValueError("part %s of %d bytes" % (tag, size))
        if tag in [other for other, _, _ in found]:
            raise ValueError("part %s stands twice" % tag)
        found.append((tag, at + 8, size))
        at += 8 + size
    return found


def copy(file, offset: int, size: int, path: str) -> None:
    """A part of a package as a file of its own."""
    file.seek(offset)
    buffer = memoryview(bytearray(PIECE))
    with open(path, "wb") as out:
        while size:
            n = file.readinto(buffer[: min(size, PIECE)])
            if not n:
                raise ValueError("the package ends within a part")
            out.write(buffer[:n])
            size -= n
        settle(out)


def settle(file) -> None:
    """Have what was written reach the disk; a board's file system does it at close."""
    file.flush()
    if hasattr(os, "fsync"):
        os.fsync(file.fileno())


def room(path: str) -> int:
    """Bytes free on the file system of that folder, -1 where it does not say."""
    try:
        told = os.statvfs(path or ".")
    except (AttributeError, OSError):
        return -1
    return told[1] * told[4] if not hasattr(told, "f_frsize") else told.f_frsize * told.f_bavail

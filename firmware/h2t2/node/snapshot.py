# Snapshots: a policy's whole state as bytes, and a store of two alternating slots that survives a power cut at any byte.
# Not part of a step: may allocate. What a state consists of is the policy's own to say (core/policy.py); when it is saved and
# what becomes of one that does not fit is in keeper.
import errno
import os
from struct import calcsize, pack, unpack_from

VERSION = 4
KEPT = 10  # files set aside by one name
SERIALS = 0x3FFFFFFF  # the largest serial number of a slot; then 0 again
_HEADER = "<4sBBHI"  # magic, version, kind, options, bytes of the body; then the body, then a CRC-24
_MAGIC = b"H2T2"
_SIZE = calcsize(_HEADER)

# what four bits more do to a CRC-24
_NIBBLES = (
    0x000000, 0x864CFB, 0x8AD50D, 0x0C99F6, 0x93E6E1, 0x15AA1A, 0x1933EC, 0x9F7F17,
    0xA18139, 0x27CDC2, 0x2B5434, 0xAD18CF, 0x3267D8, 0xB42B23, 0xB8B2D5, 0x3EFE2E,
)  # fmt: skip


def crc24(data: bytes | memoryview) -> int:
    """CRC-24 of RFC 4880 section 6.1 (polynomial 0x864CFB, start 0xB704CE): fits a 31-bit small int."""
    crc = 0xB704CE
    for byte in data:
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte >> 4]
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte & 15]
    return crc


class Mismatch(ValueError):
    """A snapshot that is whole, and not of this policy: of another version, kind, size, or made with other options."""


def save(policy, given) -> bytes:
    """The state of a policy as bytes: what it has learned, counters, costs, draws and options.

    given: costs() as it was configured, which tell at restore() whether they were changed since.
    """
    state = policy.state()
    options = tuple(given) + policy.options
    body = pack("<%di" % len(options), *options) + pack("<%di" % len(state), *state)
    head = pack(_HEADER, _MAGIC, VERSION, policy.kind, len(options), len(body))
    return head + body + pack("<I", crc24(head + body))


def restore(policy, blob, given) -> bool:
    """Put a saved state into a policy made with the same options; it goes on bit for bit.

    given: costs() as it is configured now. Where they are those of save(), the costs in force then come back (a command
    may have set them); else these are in force, and it returns True. Mismatch for another version, kind, size or options,
    ValueError for bytes that are truncated, changed or out of range, or costs it cannot have; its state is untouched then.
    """
    if len(blob) < _SIZE + 4:
        raise ValueError("snapshot: %d bytes are too few" % len(blob))
    magic, version, kind, options, size = unpack_from(_HEADER, blob, 0)
    if magic != _MAGIC:
        raise ValueError("snapshot: these bytes are not one")
    if len(blob) != _SIZE + size + 4:
        raise ValueError("snapshot: %d bytes, want %d (truncated?)" % (len(blob), _SIZE + size + 4))
    if unpack_from("<I", blob, _SIZE + size)[0] != crc24(memoryview(blob)[: _SIZE + size]):
        raise ValueError("snapshot: the checksum does not match")
    if version != VERSION:
        raise Mismatch("snapshot: version %d, this runtime reads %d" % (version, VERSION))
    if kind != policy.kind or options != len(given) + len(policy.options) or size < 4 * options or size & 3:
        raise Mismatch("snapshot: of another kind or size of policy")
    made = unpack_from("<%di" % options, blob, _SIZE)
    if made[len(given) :] != tuple([int(value) for value in policy.options]):
        raise Mismatch("snapshot: made with other options than this policy's")
    other = made[: len(given)] != tuple(given)
    try:
        if other:
            _configure(policy, given)  # costs that this policy cannot have are refused before its state is touched
        policy.restore(unpack_from("<%di" % ((size >> 2) - options), blob, _SIZE + 4 * options))
    except ValueError as error:
        raise ValueError("snapshot: %s" % error) from None
    if other:
        _configure(policy, given)
    return other


def costs(policy) -> tuple:
    """The costs in force: beta and both deltas, or, of more classes than two, beta and the matrix."""
    if policy.classes > 2:
        return (policy.beta,) + tuple(policy.costs)
    return policy.beta, policy.delta_fp, policy.delta_fn


def _configure(policy, given):
    if policy.classes > 2:
        policy.set_costs(given[1:])
    else:
        policy.set_deltas(given[1], given[2])
    policy.set_beta(given[0])


class Store:
    """Two slots written in turn, each with a serial number and a checksum. Give it two `read() -> bytes`, `write(bytes)`.

    A cut at any byte of a save leaves the other slot, the last complete save, readable.
    """

    def __init__(self, slots):
        self.slots = slots
        self.damaged = 0  # slots that held something unreadable at the last load

    def _load(self):
        """[(serial, slot number, blob)] of the readable slots, newest first."""
        found = []
        self.damaged = 0
        for n in (0, 1):
            data = self.slots[n].read()
            if len(data) < 12:
                self.damaged += 1 if data and data.strip(b"\xff") else 0
                continue
            serial, size = unpack_from("<II", data, 0)
            if (
                serial <= SERIALS
                and size <= len(data) - 12
                and unpack_from("<I", data, 8 + size)[0] == crc24(memoryview(data)[: 8 + size])
            ):
                found.append((serial, n, bytes(data[8 : 8 + size])))
            elif bytes(data).strip(b"\xff"):  # not merely erased flash
                self.damaged += 1
        found.sort(reverse=True)
        if len(found) == 2 and found[0][0] - found[1][0] > SERIALS >> 1:  # the newer one has begun again at 0
            found.reverse()
        return found

    def set_aside(self) -> str:
        """Keep what is in the slots under other names, which it returns; OSError where that cannot be."""
        return ", ".join([name for name in [slot.set_aside() for slot in self.slots] if name])

    def load(self) -> bytes | None:
        """The newest complete blob, or None where there is none."""
        found = self._load()
        return found[0][2] if found else None

    def save(self, blob: bytes) -> None:
        """Write a blob over the older slot."""
        found = self._load()
        serial, newest, _ = found[0] if found else (0, 1, None)
        data = pack("<II", (serial + 1) & SERIALS, len(blob)) + blob
        self.slots[1 - newest].write(data + pack("<I", crc24(data)))


class FileSlot:
    """A slot in a file of its own. OSError of the file system (full, read-only) is the caller's."""

    def __init__(self, path):
        self.path = path

    def read(self) -> bytes:
        """What it holds, nothing where there is no file; OSError where it cannot be read."""
        if not _exists(self.path):
            return b""
        with open(self.path, "rb") as file:
            return file.read()

    def write(self, data: bytes) -> None:
        with open(self.path, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fsync"):  # CPython's; a board's file system writes at close
                os.fsync(file.fileno())

    def set_aside(self) -> str:
        """Keep the file under another name, which it returns; OSError where there are KEPT of them already."""
        if not _exists(self.path):
            return ""
        for n in range(1, KEPT + 1):
            name = "%s.kept%d" % (self.path, n)
            if not _exists(name):
                os.rename(self.path, name)
                return name
        raise OSError("%s: %d kept files are there already: remove some" % (self.path, KEPT))


def _exists(path):
    try:
        os.stat(path)
    except OSError as error:
        if error.args[0] == errno.ENOENT:
            return False
        raise
    return True


class BufferSlot:
    """A slot in raw memory: `size` bytes of a writable buffer (flash, FRAM, a bytearray) from `start`."""

    def __init__(self, buffer, start, size):
        self.view = memoryview(buffer)[start : start + size]

    def read(self) -> bytes:
        return bytes(self.view)

    def write(self, data: bytes) -> None:
        if len(data) > len(self.view):
            raise ValueError("snapshot: %d bytes do not fit a slot of %d" % (len(data), len(self.view)))
        self.view[: len(data)] = data

    def set_aside(self) -> str:
        """A memory of two slots has no room for that: OSError."""
        raise OSError("there is no room to keep it")


def file_store(path: str) -> Store:
    """A Store in the files <path>.0 and <path>.1."""
    return Store([FileSlot(path + ".0"), FileSlot(path + ".1")])

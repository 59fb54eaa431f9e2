# Snapshots: a learner's whole state as bytes, and a store of two alternating slots that survives a power cut at any byte.
# Not part of a step: may allocate. What a policy's state consists of is listed here, and only here.
import os
from struct import calcsize, pack, unpack_from

from .experts import COARSEST
from .fixed import ONE

VERSION = 3
_HEADER = "<4sBBHI"  # magic, version, kind, options, bytes of the body; then the body, then a CRC-24
_MAGIC = b"H2T2"
_SIZE = calcsize(_HEADER)
_MOST = 0x7FFFFFFF
_TICKET = 268435455
_SMALL = 0x3FFFFFFF  # the largest small int


# what four bits more do to a CRC-24
_NIBBLES = (
    0x000000, 0x864CFB, 0x8AD50D, 0x0C99F6, 0x93E6E1, 0x15AA1A, 0x1933EC, 0x9F7F17,
    0xA18139, 0x27CDC2, 0x2B5434, 0xAD18CF, 0x3267D8, 0xB42B23, 0xB8B2D5, 0x3EFE2E,
)  # fmt: skip


def crc24(data):
    """CRC-24 of RFC 4880 section 6.1 (polynomial 0x864CFB, start 0xB704CE): fits a 31-bit small int."""
    crc = 0xB704CE
    for byte in data:
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte >> 4]
        crc = (crc << 4 & 0xFFFFFF) ^ _NIBBLES[crc >> 20 ^ byte & 15]
    return crc


def _parts(policy):
    """(kind, scalars as (object, ((name, least, most), ...)), arrays as (array, bounds)): all that changes while it runs.

    bounds: (least, most) of the items; several where items of several meanings alternate; None: a tree's losses, sums over
    ranges of bins, each at most twice its `spent`; (): what is below a unit in each.
    """
    tickets = policy.tickets
    scalars = [
        (policy, (("beta", 0, ONE), ("age", 0, _MOST), ("taught", 0, _MOST), ("ticket", 0, _TICKET), ("local", 0, 255))),
        (policy.rng, (("x", 1, 30268), ("y", 1, 30306), ("z", 1, 30322))),
        (tickets, (("last", 0, _TICKET), ("lost", 0, _MOST), ("refused", 0, _MOST))),
    ]
    if not hasattr(policy, "trees"):
        scalars.append((policy, (("delta_fp", 0, ONE), ("delta_fn", 0, ONE))))
    trees = []
    arrays = []
    bins = 0
    if hasattr(policy, "labels"):
        bins = policy.n
        arrays += [(policy.labels, ((0, _MOST),)), (policy.events, ((0, _MOST),))]
    else:
        scalars.append((policy, (("t", 0, 16777215), ("root", 3, 1024), ("epsilon", 1, ONE))))
        trees = policy.trees if hasattr(policy, "trees") else [policy.experts]
    for tree in trees:
        bins += tree.n
        scalars.append((tree, (("spent", 0, 1 << 28), ("unit", 0, COARSEST))))
        arrays += [(tree.losses, None), (tree.fine, ())]
    arrays.insert(0, (tickets.slots, ((0, _TICKET), (0, bins - 1), (0, ONE), (0, 255), (0, _SMALL))))
    return (3 if not trees else 2 if hasattr(policy, "trees") else 1), scalars, arrays


def save(policy):
    """The state of an H2T2, Pairwise or Calibrating policy as bytes: losses, counters, draws, tickets and options."""
    kind, scalars, arrays = _parts(policy)
    body = b""
    for value in policy.options:
        body += pack("<i", value)
    for owner, names in scalars:
        for name, _, most in names:
            body += pack("<i", min(most, getattr(owner, name)))  # a counter of many years stays at its most
    for array, _ in arrays:
        body += pack("<%di" % len(array), *array)
    head = pack(_HEADER, _MAGIC, VERSION, kind, len(policy.options), len(body))
    return head + body + pack("<I", crc24(head + body))


def restore(policy, blob):
    """Put a saved state into a policy made with the same options; it goes on bit for bit.

    ValueError, and the policy untouched, for bytes that are truncated, changed, out of range, of another version, kind or
    options.
    """
    if len(blob) < _SIZE + 4:
        raise ValueError("snapshot: %d bytes are too few" % len(blob))
    magic, version, kind, options, size = unpack_from(_HEADER, blob, 0)
    if magic != _MAGIC:
        raise ValueError("snapshot: these bytes are not one")
    if version != VERSION:
        raise ValueError("snapshot: version %d, this runtime reads %d" % (version, VERSION))
    if len(blob) != _SIZE + size + 4:
        raise ValueError("snapshot: %d bytes, want %d (truncated?)" % (len(blob), _SIZE + size + 4))
    if unpack_from("<I", blob, _SIZE + size)[0] != crc24(memoryview(blob)[: _SIZE + size]):
        raise ValueError("snapshot: the checksum does not match")
    own, scalars, arrays = _parts(policy)
    count = options + sum([len(names) for _, names in scalars]) + sum([len(array) for array, _ in arrays])
    if kind != own or options != len(policy.options) or size != 4 * count:
        raise ValueError("snapshot: of another kind or size of policy")
    if unpack_from("<%di" % options, blob, _SIZE) != tuple([int(value) for value in policy.options]):
        raise ValueError("snapshot: made with other options than this policy's")
    for put in (False, True):  # look at everything first
        at = _SIZE + 4 * options
        limits = []
        for owner, names in scalars:
            for name, least, most in names:
                value = _within(blob, at, least, most)
                if put:
                    setattr(owner, name, value)
                if name == "spent":
                    limits.append(2 * value + 64)
                elif name == "unit":
                    limits.append((16384 << value) - 1)
                at += 4
        for array, bounds in arrays:
            limit = 0 if bounds else limits.pop(0)
            for n in range(len(array)):
                if bounds:
                    least, most = bounds[n % len(bounds)]
                elif bounds is None:  # the first of each half is no node's
                    most = limit if n % (len(array) >> 1) else 0
                    least = -most
                else:
                    least, most = 0, limit
                value = _within(blob, at, least, most)
                if put:
                    array[n] = value
                at += 4
    if kind != 2:
        policy.set_deltas(policy.delta_fp, policy.delta_fn)
    policy.set_beta(policy.beta)
    if kind != 3:
        for tree in policy.trees if kind == 2 else [policy.experts]:
            tree.rebuild(False, False)


def _within(blob, at, least, most):
    value = unpack_from("<i", blob, at)[0]
    if not least <= value <= most:
        raise ValueError("snapshot: %d is not in %d..%d" % (value, least, most))
    return value


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
            if size <= len(data) - 12 and unpack_from("<I", data, 8 + size)[0] == crc24(memoryview(data)[: 8 + size]):
                found.append((serial, n, bytes(data[8 : 8 + size])))
            elif bytes(data).strip(b"\xff"):  # not merely erased flash
                self.damaged += 1
        found.sort(reverse=True)
        return found

    def load(self):
        """The newest complete blob, or None where there is none."""
        found = self._load()
        return found[0][2] if found else None

    def save(self, blob):
        """Write a blob over the older slot."""
        found = self._load()
        serial, newest, _ = found[0] if found else (0, 1, None)
        data = pack("<II", (serial + 1) & 0x3FFFFFFF, len(blob)) + blob
        self.slots[1 - newest].write(data + pack("<I", crc24(data)))


class FileSlot:
    """A slot in a file of its own. OSError of the file system (full, read-only) is the caller's."""

    def __init__(self, path):
        self.path = path

    def read(self):
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError:
            return b""

    def write(self, data):
        with open(self.path, "wb") as file:
            file.write(data)
            file.flush()
            if hasattr(os, "fsync"):  # CPython's; a board's file system writes at close
                os.fsync(file.fileno())


class BufferSlot:
    """A slot in raw memory: `size` bytes of a writable buffer (flash, FRAM, a bytearray) from `start`."""

    def __init__(self, buffer, start, size):
        self.view = memoryview(buffer)[start : start + size]

    def read(self):
        return bytes(self.view)

    def write(self, data):
        if len(data) > len(self.view):
            raise ValueError("snapshot: %d bytes do not fit a slot of %d" % (len(data), len(self.view)))
        self.view[: len(data)] = data


def file_store(path):
    """A Store in the files <path>.0 and <path>.1."""
    return Store([FileSlot(path + ".0"), FileSlot(path + ".1")])

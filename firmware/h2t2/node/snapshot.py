# Snapshots: the state of a policy as bytes, written and read a stretch at a time, so that a full heap has room for it.
# core/policy.py defines the state; store.py knows where snapshots lie, keeper.py when to save one.
from struct import calcsize, pack, pack_into, unpack_from

if 0:  # for type checkers
    from collections.abc import Iterator

    from ..core.policy import Policy
    from .store import Content

VERSION = 5
_HEADER = "<4sBBHI"  # magic, version, kind, number of costs and settings, bytes of the body (these and the state, int32 each)
_MAGIC = b"H2T2"
_SIZE = calcsize(_HEADER)
_STRETCH = 64  # bytes that are written or read at once


class Mismatch(ValueError):
    """An intact snapshot of another policy: its version, kind, size or settings differ."""


def encode(policy: "Policy", costs: "tuple[int, ...]") -> "tuple[int, Iterator[bytes | bytearray | memoryview]]":
    """Encode the state of a policy.

    Args:
        policy: What it has learned, counters, costs, draws and settings are encoded.
        costs: policy.cost_list() as it was configured; restore() compares it with the configuration of the next start.

    Returns:
        Number of bytes, and chunks. Use each chunk before you take the next: they share a buffer.
    """
    fixed = tuple(costs) + policy.settings()
    size = 4 * (len(fixed) + policy.state_size())
    return _SIZE + size, _chunks(policy, fixed, pack(_HEADER, _MAGIC, VERSION, policy.kind, len(fixed), size))


def _chunks(policy: "Policy", fixed: "tuple[int, ...]", header: bytes) -> "Iterator[bytes | bytearray | memoryview]":
    yield header
    buffer = bytearray(_STRETCH)
    at = 0
    for values in (fixed, policy.state()):
        for value in values:
            pack_into("<i", buffer, at, value)
            at += 4
            if at == _STRETCH:
                yield buffer
                at = 0
    yield memoryview(buffer)[:at]


class Integers:
    """The 32-bit integers of a store.Content from byte `start` on: a sequence with two stretches of it in memory."""

    def __init__(self, content: "Content", start: int, count: int):
        self.content = content
        self.start = start
        self.count = count
        self.page = self.other_page = -1
        self.bytes = bytearray(_STRETCH)
        self.other_bytes = bytearray(_STRETCH)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, n: int) -> int:
        page, at = divmod(4 * n, _STRETCH)
        if page != self.page:
            self.page, self.other_page = self.other_page, self.page
            self.bytes, self.other_bytes = self.other_bytes, self.bytes
            if page != self.page:
                self.content.readinto(self.start + page * _STRETCH, self.bytes)
                self.page = page
        return unpack_from("<i", self.bytes, at)[0]  # type: ignore[no-any-return]


def restore(policy: "Policy", content: "Content", costs: "tuple[int, ...]") -> bool:
    """Put a saved state into a policy with equal settings; it continues bit for bit.

    If the configured costs are those of the save, the costs in force at the save return; a command may have set them. Otherwise
    the configured costs are in force.

    Args:
        policy: Its state is unchanged after an exception.
        content: A store.Content.
        costs: policy.cost_list() as it is configured now.

    Returns:
        Whether the configured costs have changed since the save.

    Raises:
        Mismatch: The version, kind, size or settings differ.
        ValueError: Bytes are missing or out of range, or the policy cannot have such costs.
    """
    header = bytearray(_SIZE)
    if content.size >= _SIZE:
        content.readinto(0, header)
    magic, version, kind, count, size = unpack_from(_HEADER, header, 0)
    if magic != _MAGIC:
        raise ValueError("snapshot: these bytes are not one")
    if version not in (4, VERSION):
        raise Mismatch("snapshot: version %d, this runtime reads %d" % (version, VERSION))
    end = _SIZE + size + (4 if version == 4 else 0)  # version 4 had a checksum of its own there
    if content.size != end:
        raise ValueError("snapshot: %d bytes, want %d (truncated?)" % (content.size, end))
    settings = policy.settings()
    state = policy.state_size()
    if kind != policy.kind or count != len(costs) + len(settings) or size != 4 * (count + state):
        raise Mismatch("snapshot: of another kind or size of policy")
    blob = bytearray(4 * count)
    content.readinto(_SIZE, blob)
    saved = unpack_from("<%di" % count, blob, 0)
    if saved[len(costs) :] != tuple([int(value) for value in settings]):
        raise Mismatch("snapshot: made with other options than this policy's")
    changed = saved[: len(costs)] != tuple(costs)
    try:
        if changed:
            policy.set_cost_list(costs)  # an invalid cost is refused here, before the state changes
        policy.restore(Integers(content, _SIZE + 4 * count, state))  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError("snapshot: %s" % error) from None
    if changed:
        policy.set_cost_list(costs)
    return changed

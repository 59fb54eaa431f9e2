# Snapshots: the state of a policy as bytes, written and read a stretch at a time, so that a full heap has room for it.
# core/policy.py defines the state; store.py knows where snapshots lie, keeper.py when to save one, restoring.py reads them.
from struct import calcsize, pack, pack_into

if 0:  # for type checkers
    from collections.abc import Iterator

    from ..core.policy import Policy

VERSION = 7
HEADER = "<4sBBHI"  # magic, version, kind, number of costs and settings, bytes of the body (these and the state, int32 each)
MAGIC = b"H2T2"
SIZE = calcsize(HEADER)
STRETCH = 64  # bytes that are written or read at once


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
    return SIZE + size, _chunks(policy, fixed, pack(HEADER, MAGIC, VERSION, policy.kind, len(fixed), size))


def _chunks(policy: "Policy", fixed: "tuple[int, ...]", header: bytes) -> "Iterator[bytes | bytearray | memoryview]":
    yield header
    buffer = bytearray(STRETCH)
    at = 0
    for values in (fixed, policy.state()):
        for value in values:
            pack_into("<i", buffer, at, value)
            at += 4
            if at == STRETCH:
                yield buffer
                at = 0
    yield memoryview(buffer)[:at]

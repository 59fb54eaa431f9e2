# Snapshots: the state of a policy as bytes, written and read a stretch at a time, so that a full heap has room for it.
# core/policy.py defines the state; store.py knows where snapshots lie, keeper.py when to save one, restoring.py reads them.
from struct import calcsize, pack, pack_into

if 0:  # for type checkers
    from ..annotations import Any, Iterator
    from ..core.policy import Policy

VERSION = 7
HEADER = "<4sBBHI"  # magic, version, kind, number of costs and settings, bytes of the body (these and the state, int32 each)
MAGIC = b"H2T2"
SIZE = calcsize(HEADER)
STRETCH = 64  # bytes that are written or read at once
ORIGIN = "<III"  # after the body: CRC-32 of the local model, number of the remote one, CRC-32 of event and classes; or nothing


def encode(policy: "Policy", costs: "tuple[int, ...]", origin: bytes = b"") -> "tuple[int, Iterator[Any]]":
    """Encode the state of a policy.

    Args:
        policy: What it has learned, counters, costs, draws and settings are encoded.
        costs: policy.cost_list() as it was configured; restore() compares it with the configuration of the next start.
        origin: Of which models and classes it has learned, as ORIGIN; empty: unknown.

    Returns:
        Number of bytes, and chunks. Use each chunk before you take the next: they share a buffer.
    """
    fixed = tuple(costs) + policy.settings()
    size = 4 * (len(fixed) + policy.state_size())
    header = pack(HEADER, MAGIC, VERSION, policy.kind, len(fixed), size)
    return SIZE + size + len(origin), _chunks(policy, fixed, header, origin)


def _chunks(policy: "Policy", fixed: "tuple[int, ...]", header: bytes, origin: bytes) -> "Iterator[Any]":
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
    yield origin

"""Snapshots as bytes; the runtime itself writes and reads them a stretch at a time."""

from h2t2.node import restoring, snapshot
from h2t2.node.memory_slots import Stream
from h2t2.node.stored import Content


def saved(policy, costs) -> bytes:
    """Return the bytes that a node writes of a policy."""
    size, chunks = snapshot.encode(policy, costs)
    blob = b"".join(bytes(chunk) for chunk in chunks)
    assert len(blob) == size
    return blob


def restored(policy, blob, costs) -> bool:
    """Restore a policy from these bytes, as a node does at its start."""
    return restoring.restore(policy, Content(Stream(memoryview(bytes(blob))), 0, len(blob)), costs)

# Snapshots: the whole state of a policy as bytes, written and read a stretch at a time, so that a full heap has room for it.
# What a state consists of is for the policy to say (core/policy.py); where it is kept is in store, and when, in keeper.
from struct import calcsize, pack, pack_into, unpack_from

VERSION = 5
_HEADER = "<4sBBHI"  # magic, version, kind, options, bytes of the body: options and state as 32-bit integers
_MAGIC = b"H2T2"
_SIZE = calcsize(_HEADER)
_STRETCH = 64  # bytes that are written or read at once


class Mismatch(ValueError):
    """A snapshot that is whole, and not of this policy: of another version, kind, size, or made with other options."""


def encode(policy, costs) -> tuple:
    """(bytes, chunks) of the state of a policy: what it has learned, counters, costs, draws and options. Use each chunk
    before you take the next: they share one buffer.

    costs: costs_of() as it was configured, which tell at restore() whether they were changed since.
    """
    options = tuple(costs) + policy.settings()
    size = 4 * (len(options) + policy.state_size())
    return _SIZE + size, _chunks(policy, options, pack(_HEADER, _MAGIC, VERSION, policy.kind, len(options), size))


def _chunks(policy, options, header):
    yield header
    buffer = bytearray(_STRETCH)
    at = 0
    for values in (options, policy.integers()):
        for value in values:
            pack_into("<i", buffer, at, value)
            at += 4
            if at == _STRETCH:
                yield buffer
                at = 0
    yield memoryview(buffer)[:at]


class Integers:
    """The 32-bit integers of a store.Content, from byte `start` on: a sequence with two stretches of it in memory."""

    def __init__(self, content, start, count):
        self.content = content
        self.start = start
        self.count = count
        self.page = self.other_page = -1
        self.bytes = bytearray(_STRETCH)
        self.other_bytes = bytearray(_STRETCH)

    def __len__(self):
        return self.count

    def __getitem__(self, n):
        page, at = divmod(4 * n, _STRETCH)
        if page != self.page:
            self.page, self.other_page = self.other_page, self.page
            self.bytes, self.other_bytes = self.other_bytes, self.bytes
            if page != self.page:
                self.content.readinto(self.start + page * _STRETCH, self.bytes)
                self.page = page
        return unpack_from("<i", self.bytes, at)[0]


def restore(policy, content, costs) -> bool:
    """Put a saved state (a store.Content) into a policy made with the same options; it goes on bit for bit.

    costs: costs_of() as it is configured now. Where they are those of the save, the costs in force then come back (a command
    may have set them); else these are in force, and it returns True. Mismatch for another version, kind, size or options,
    ValueError for bytes that are too few or out of range, or costs it cannot have; its state is untouched then.
    """
    header = bytearray(_SIZE)
    if content.size >= _SIZE:
        content.readinto(0, header)
    magic, version, kind, options, size = unpack_from(_HEADER, header, 0)
    if magic != _MAGIC:
        raise ValueError("snapshot: these bytes are not one")
    if version not in (4, VERSION):
        raise Mismatch("snapshot: version %d, this runtime reads %d" % (version, VERSION))
    end = _SIZE + size + (4 if version == 4 else 0)  # version 4 had a checksum of its own there
    if content.size != end:
        raise ValueError("snapshot: %d bytes, want %d (truncated?)" % (content.size, end))
    state = policy.state_size()
    settings = policy.settings()
    if kind != policy.kind or options != len(costs) + len(settings) or size != 4 * (options + state):
        raise Mismatch("snapshot: of another kind or size of policy")
    blob = bytearray(4 * options)
    content.readinto(_SIZE, blob)
    saved = unpack_from("<%di" % options, blob, 0)
    if saved[len(costs) :] != tuple([int(value) for value in settings]):
        raise Mismatch("snapshot: made with other options than this policy's")
    changed = saved[: len(costs)] != tuple(costs)
    try:
        if changed:
            _configure(policy, costs)  # costs that this policy cannot have are refused before its state is touched
        policy.restore(Integers(content, _SIZE + 4 * options, state))
    except ValueError as error:
        raise ValueError("snapshot: %s" % error) from None
    if changed:
        _configure(policy, costs)
    return changed


def costs_of(policy) -> tuple:
    """The costs in force: beta and both deltas, or, of more classes than two, beta and the matrix."""
    if policy.classes > 2:
        return (policy.beta,) + tuple(policy.costs)
    return policy.beta, policy.delta_fp, policy.delta_fn


def _configure(policy, costs):
    if policy.classes > 2:
        policy.set_costs(costs[1:])
    else:
        policy.set_deltas(costs[1], costs[2])
    policy.set_beta(costs[0])

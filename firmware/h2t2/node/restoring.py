# Restores what a policy had learned, and sets a snapshot aside that does not fit. A board forgets this module once it runs.
import os
from struct import calcsize, unpack_from

from ..core.restoring import restore as restore_state
from .snapshot import HEADER, MAGIC, ORIGIN, SIZE, STRETCH, VERSION
from .store import exists

if 0:  # for type checkers
    from ..annotations import Any
    from ..core.policy import Policy
    from .keeper import Keeper
    from .store import Store
    from .stored import Content

UNLIKE = "snapshot: of another kind or size of policy"
ORIGINS = "local model", "remote model", "event or other classes"  # that a snapshot belongs to
MAX_ASIDE = 10  # files set aside of each slot


class Mismatch(ValueError):
    """An intact snapshot of another policy: its version, kind, size, settings or origin differ."""


def begin(keeper: "Keeper", store: "Store", stop: bool) -> None:
    """Restore a keeper's policy from its store. stop: raise ValueError for a snapshot of another policy."""
    try:
        _read(keeper, store)
    except Mismatch as error:
        if stop:
            raise ValueError("%s; remove it, or set snapshot_mismatch to fresh" % error) from None
        _set_aside(keeper, store, error)
    except (ValueError, OSError) as error:
        _set_aside(keeper, store, error)


def _read(keeper: "Keeper", store: "Store") -> None:
    content = store.open()
    if store.damaged:
        consequence = "the other one is used" if content else "nothing is left of what was learned"
        keeper.log("snapshot damaged (%d of 2): %s" % (store.damaged, consequence))
    elif content is None and getattr(store, "empty", False):
        keeper.log("snapshot: its files are empty; beginning anew")
    if content is None:
        return
    try:
        if restore(keeper.policy, content, keeper.costs, keeper.origin):
            fades = "" if keeper.policy.reprices else "; what was learned under the old ones fades as new labels come"
            keeper.log("other costs than at the last start: those of the configuration are in force%s" % fades)
    finally:
        content.close()
    keeper.restored = True
    if keeper.policy.limit:
        keeper.policy.limit.go_on()


def _set_aside(keeper: "Keeper", store: "Store", error: Exception) -> None:
    try:
        keeper.log("%s; kept as %s; beginning anew" % (error, _keep(store)))
    except OSError as reason:
        keeper.store = None
        keeper.log("%s; it cannot be kept under another name (%s), so nothing is saved; beginning anew" % (error, reason))


def _keep(store: "Store") -> str:
    """Keep the content of a store's slots under other names and return these; OSError if that is impossible."""
    names = [name for name in [_renamed(slot) for slot in store.slots] if name]
    store.newest = None
    return ", ".join(names)


def _renamed(slot: "Any") -> str:
    """Rename the file of a slot and return the new name; "" if it does not exist. OSError: MAX_ASIDE exist, or it is memory."""
    path = getattr(slot, "path", None)
    if path is None:
        raise OSError("there is no room to keep it")
    if not exists(path):
        return ""
    for n in range(1, MAX_ASIDE + 1):
        name = "%s.kept%d" % (path, n)
        if not exists(name):
            os.rename(path, name)
            return name
    raise OSError("%s: %d kept files are there already: remove some" % (path, MAX_ASIDE))


class Integers:
    """The 32-bit integers of a store.Content from byte `start` on: a sequence with two stretches of it in memory."""

    def __init__(self, content: "Content", start: int, count: int):
        self.content = content
        self.start = start
        self.count = count
        self.page = self.other_page = -1
        self.bytes = bytearray(STRETCH)
        self.other_bytes = bytearray(STRETCH)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, n: int) -> int:
        page, at = divmod(4 * n, STRETCH)
        if page != self.page:
            self.page, self.other_page = self.other_page, self.page
            self.bytes, self.other_bytes = self.other_bytes, self.bytes
            if page != self.page:
                self.content.readinto(self.start + page * STRETCH, self.bytes)
                self.page = page
        value: int = unpack_from("<i", self.bytes, at)[0]
        return value


def _check_origin(content: "Content", end: int, origin: bytes) -> None:
    if origin and content.size > end:
        saved = bytearray(len(origin))
        content.readinto(end, saved)
        for name, old, new in zip(ORIGINS, unpack_from(ORIGIN, saved, 0), unpack_from(ORIGIN, origin, 0)):
            if old != new:
                raise Mismatch("snapshot: of another %s" % name)


def _header(content: "Content", origin: bytes) -> "tuple[int, int, int, int]":
    """Return version, kind, number of costs and settings, and bytes of the body. Raises as restore()."""
    header = bytearray(SIZE)
    if content.size >= SIZE:
        content.readinto(0, header)
    magic, version, kind, count, size = unpack_from(HEADER, header, 0)
    if magic != MAGIC:
        raise ValueError("snapshot: these bytes are not one")
    if version not in (4, 5, 6, VERSION):
        raise Mismatch("snapshot: version %d, this runtime reads %d" % (version, VERSION))
    end = SIZE + size + (4 if version == 4 else 0)  # version 4 had a checksum of its own there
    if content.size not in (end, end + calcsize(ORIGIN)):
        raise ValueError("snapshot: %d bytes, want %d (truncated?)" % (content.size, end))
    _check_origin(content, end, origin)
    return version, kind, count, size


def restore(policy: "Policy", content: "Content", costs: "tuple[int, ...]", origin: bytes = b"") -> bool:
    """Put a saved state into a policy with equal settings; it continues bit for bit.

    If the configured costs are those of the save, the costs in force at the save return; a command may have set them. Otherwise
    the configured costs are in force.

    Args:
        policy: Its state is unchanged after an exception.
        content: A store.Content.
        costs: policy.cost_list() as it is configured now.
        origin: As of encode(); what a former release wrote has none and is not compared.

    Returns:
        Whether the configured costs have changed since the save.

    Raises:
        Mismatch: The version, kind, size, settings or origin differ.
        ValueError: Bytes are missing or out of range, or the policy cannot have such costs.
    """
    version, kind, count, size = _header(content, origin)
    settings = policy.settings()
    older = version < 6
    taken = (policy, 0, None)  # type: tuple[Any, int, Any] | None
    if kind != policy.kind:
        from .former import taken_over

        taken = taken_over(kind, policy)
    if not taken:
        raise Mismatch(UNLIKE)
    target, left_out, shorter = taken
    absent = len(policy.older) if older else 0
    unanswered = policy.answers if version < 7 else None
    state = target.state_size() - absent - len(unanswered or ()) + left_out
    if count != len(costs) + len(settings) or size != 4 * (count + state):
        raise Mismatch(UNLIKE)
    blob = bytearray(4 * count)
    content.readinto(SIZE, blob)
    saved = unpack_from("<%di" % count, blob, 0)
    if saved[len(costs) :] != tuple([int(value) for value in settings]):
        raise Mismatch("snapshot: made with other options than this policy's")
    changed = saved[: len(costs)] != tuple(costs)
    in_force = policy.cost_list()
    try:
        if changed:
            policy.set_cost_list(costs)  # an invalid cost is refused here, before the state changes
        integers = Integers(content, SIZE + 4 * count, state)  # type: Any
        if shorter:
            integers = shorter(policy, integers)
        restore_state(target, integers, older, unanswered)
    except ValueError as error:
        policy.set_cost_list(in_force)
        raise ValueError("snapshot: %s" % error) from None
    if changed:
        policy.set_cost_list(costs)
    return changed

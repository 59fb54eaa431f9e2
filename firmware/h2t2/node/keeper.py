# The keeper saves what a policy has learned. restoring.py restores it at the start; snapshot.py defines the format.
from ..clock import Stopwatch
from ..modules import IS_BOARD, call_once, forget
from .snapshot import encode

if 0:  # for type checkers
    from ..annotations import Any, Callable, Iterator
    from ..core.policy import Policy
    from .model_state import ModelState
    from .store import Store

MISMATCH = ("fresh", "stop")  # reactions to a snapshot of another kind, size, version or settings


class Keeper:
    """Saves a policy after the first 1, 2, 4, 8 ... lessons of this start, then after every `every` lessons.

    It also saves before the budget spends more than `spent` says, and when Policy.is_due() says so.

        keeper = Keeper(policy, file_store("learned"))  # restores what learned.0 and learned.1 hold
        if keeper.is_due():  # after a label
            keeper.save()

    Attributes:
        spent: What the budget has spent; None: nothing to keep.
        restored: Whether this start continued from a snapshot.
        saves, unsaved: Counters of saves that succeeded and that failed.
    """

    def __init__(
        self,
        policy: "Policy",
        store: "Store | None",
        *,
        every: int = 250,
        mismatch: str = "fresh",
        complain: "Callable[[str, Exception], object]" = print,
        log: "Callable[[str], object]" = print,
        model_state: "ModelState | None" = None,
        origin: bytes = b"",
    ):
        """Restore the policy.

        Args:
            policy: In its first state.
            store: Where snapshots lie; None: nowhere.
            every: Lessons between two saves.
            mismatch: What to do with a snapshot of another policy, which is never overwritten. "fresh": keep it under another
                name and begin anew; "stop": raise ValueError.
            complain: Called with a kind of trouble and its description.
            log: Called with a line of text.
            model_state: Of a streaming model; the keeper saves it with the policy.
            origin: As of snapshot.encode(). A snapshot of another origin is one of another policy.
        """
        if not IS_BOARD and mismatch not in MISMATCH:  # on a board entries.py checks the configuration
            raise ValueError("snapshot_mismatch %r is not one of %s" % (mismatch, ", ".join(MISMATCH)))
        self.policy = policy
        self.store = store
        self.model_state = model_state
        self.spent: "Any" = None
        self.origin = origin
        self.every = every
        self.complain = complain
        self.log = log
        self.costs = policy.cost_list()  # as configured
        self.saves = self.unsaved = 0
        self.restored = False
        self.watch = Stopwatch()
        self.saved_at = -1  # seconds of `watch`
        if store:
            call_once("node.restoring.begin", self, store, mismatch == "stop")
            if IS_BOARD:  # at once: the start of a node takes the most memory
                forget("node.former")
                forget("core.restoring")
        self.lessons = 0  # of this start, at the last save
        self.wait = 1  # lessons until the next
        self.policy_lessons = policy.lessons  # at the last save

    def age(self) -> int:
        """Return the seconds since the last save of this start; -1: there was none."""
        return self.watch.seconds() - self.saved_at if self.saved_at >= 0 else -1

    def is_due(self) -> bool:
        """Return whether there have been enough lessons for a save."""
        lessons = self.policy.lessons
        if lessons < self.policy_lessons:  # the policy was reset
            self.policy_lessons = lessons
        limit = self.policy.limit
        unmarked = self.spent and self.spent.budget.is_due()
        return bool(self.store and (unmarked or lessons - self.policy_lessons >= self.wait or (limit and limit.is_due())))

    def save(self) -> None:
        """Write a snapshot over the older of the two. A failure is counted and reported; the node continues."""
        for _ in self.saving():
            pass

    def saving(self) -> "Iterator[None]":
        """Do the same in pieces; yield after each. Nothing may change the policy before the last."""
        if not self.store:
            return
        self.lessons += max(0, self.policy.lessons - self.policy_lessons)
        self.policy_lessons = self.policy.lessons
        self.wait = max(1, min(self.lessons, self.every))
        try:
            size, chunks = encode(self.policy, self.costs, self.origin)
            yield
            yield from self.store.writing(size, chunks)
            if self.policy.limit:
                self.policy.limit.note_saved()
            for other in (self.model_state, self.spent):
                if other:
                    yield from other.saving()
            self.saves += 1
            self.saved_at = self.watch.seconds()
        except (OSError, ValueError, MemoryError) as error:
            self.unsaved += 1
            self.complain("snapshot not saved", error)

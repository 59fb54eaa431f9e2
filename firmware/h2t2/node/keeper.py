# What was learned stays learned: when a policy's state is saved, what is read at the start, and what becomes of a snapshot that
# does not fit. What a snapshot is, is in snapshot.
from ..clock import Stopwatch
from .snapshot import Mismatch, costs_of, encode, restore

MISMATCH = ("fresh", "stop")  # what a snapshot of another kind, size, version or options leads to


class Keeper:
    """Saves after the first 1, 2, 4, 8 ... lessons of this start, then every `every`. store: a store.Store or None.

    mismatch: a snapshot that is not this policy's is never overwritten: "fresh": it is kept under another name, and the policy
    begins anew; "stop": ValueError. complain(kind, what): told what went wrong. memory: a Memory, saved with the policy.
    Counters: `saves`, `unsaved` (saves that failed). `restored`: whether this start went on from a snapshot.
    """

    def __init__(self, policy, store, *, every=250, mismatch="fresh", complain=None, log=print, memory=None):
        if mismatch not in MISMATCH:
            raise ValueError("snapshot_mismatch %r is not one of %s" % (mismatch, ", ".join(MISMATCH)))
        self.policy = policy
        self.store = store
        self.memory = memory
        self.every = every
        self.complain = complain
        self.log = log
        self.costs = costs_of(policy)  # as configured
        self.saves = self.unsaved = 0
        self.restored = False
        self.watch = Stopwatch()
        self.saved_at = -1  # seconds of `watch`
        if store:
            self._restore(mismatch == "stop")
        self.lessons = 0  # of this start, at the last save
        self.wait = 1  # lessons until the next
        self.taught = policy.taught

    def _restore(self, stop):
        try:
            self._read()
        except Mismatch as error:
            if stop:
                raise ValueError("%s; remove it, or set snapshot_mismatch to fresh" % error) from None
            self._set_aside(error)
        except (ValueError, OSError) as error:
            self._set_aside(error)

    def _read(self):
        content = self.store.open()
        if self.store.damaged:
            less = "the one before it is used" if content else "nothing is left of what was learned"
            self.log("snapshot damaged (%d of 2): %s" % (self.store.damaged, less))
        if content is None:
            return
        try:
            if restore(self.policy, content, self.costs):
                self.log("other costs than at the last start: those of the configuration are in force%s" % self._kept())
        finally:
            content.close()
        self.restored = True

    def _kept(self):
        """What a change of costs means for what was learned: the labels' losses were charged at the costs of their time."""
        return "" if self.policy.reprices else "; what was learned under the old ones fades as new labels come"

    def _set_aside(self, error):
        try:
            self.log("%s; kept as %s; beginning anew" % (error, self.store.set_aside()))
        except OSError as why:
            self.store = None
            self.log("%s; it cannot be kept under another name (%s), so nothing is saved; beginning anew" % (error, why))

    def age(self) -> int:
        """Seconds since the last save of this start; -1: none."""
        return self.watch.seconds() - self.saved_at if self.saved_at >= 0 else -1

    def look(self) -> None:
        """Save when it is time to; called once a turn."""
        taught = self.policy.taught
        if taught < self.taught:  # it was reset
            self.taught = taught
        if self.store and taught - self.taught >= self.wait:
            self.save()

    def save(self) -> None:
        """Write a snapshot over the older of the two; what cannot be written is counted and said, and work goes on."""
        if not self.store:
            return
        self.lessons += max(0, self.policy.taught - self.taught)
        self.taught = self.policy.taught
        self.wait = max(1, min(self.lessons, self.every))
        try:
            self.store.write(*encode(self.policy, self.costs))
            if self.memory:
                self.memory.save()
            self.saves += 1
            self.saved_at = self.watch.seconds()
        except (OSError, ValueError, MemoryError) as error:
            self.unsaved += 1
            self.complain("snapshot not saved", error)

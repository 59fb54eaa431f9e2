# Sleep between two samples, where a schedule leaves time for it: `light` keeps RAM, `deep` starts the program anew at waking
# and goes on from what was saved. What both save is counted, and reckoned in energy.
from struct import calcsize, pack, unpack

from ..clock import ticks_diff, ticks_ms

LEAST_MS = {"light": 50, "deep": 1000}  # less is not worth going to sleep for
_KEPT = "<4sQQQQ"
_MAGIC = b"H2Z1"


class Sleep:
    """kind: "light" or "deep". down(ms): the machine's. path: of the file that keeps the counters over deep sleep. power: (what
    being awake and being asleep take, microwatts, and what an offload adds, microjoules), or None: no energy is reckoned.
    at_once: milliseconds of light sleep between two feedings of a watchdog, which may go on running meanwhile, 0: any.

    Counters, since they were first counted: `wakes`, `awake_ms`, `asleep_ms`, `offloads`.
    """

    def __init__(self, kind, down, path="h2t2.sleep", power=None, at_once=0):
        self.kind = kind
        self.deep = kind == "deep"
        self.down = down
        self.path = path
        self.power = power
        self.at_once = at_once
        self.wakes = self.awake_ms = self.asleep_ms = self.offloads = 0
        self.counted = 0  # offloads of this start that are in it
        if self.deep:
            self._load()
        self.since = ticks_ms()  # awake

    def worth(self, ms) -> bool:
        """Whether so many milliseconds are slept rather than waited."""
        return ms >= LEAST_MS[self.kind]

    def nap(self, ms, offloads, feed) -> None:
        """Sleep for so long; deep sleep does not return. offloads: of this start. feed: a watchdog's."""
        self.count(offloads)
        self.wakes += 1
        self.asleep_ms += ms
        feed()
        part = self.at_once or ms
        if self.deep:
            self._save()
            part = ms
        while ms > 0:
            self.down(min(ms, part))
            feed()
            ms -= part
        self.since = ticks_ms()

    def count(self, offloads) -> None:
        """Count the time awake, and the offloads of this start, up to now."""
        now = ticks_ms()
        self.awake_ms += max(0, ticks_diff(now, self.since))
        self.since = now
        self.offloads += offloads - self.counted
        self.counted = offloads

    def report(self) -> dict:
        """For the state: wakes, seconds awake and asleep, the share of the time awake in thousandths, energy in millijoules."""
        made = {"wakes": self.wakes, "awake_s": self.awake_ms // 1000, "asleep_s": self.asleep_ms // 1000}
        made["duty"] = self.awake_ms * 1000 // max(1, self.awake_ms + self.asleep_ms)
        if self.power:
            awake, asleep, offload = self.power
            nanojoules = self.awake_ms * awake + self.asleep_ms * asleep
            made["energy_mj"] = nanojoules // 1000000 + self.offloads * offload // 1000
        return made

    def _load(self):
        try:
            with open(self.path, "rb") as file:
                kept = file.read(calcsize(_KEPT))
        except OSError:  # the first start
            return
        if len(kept) == calcsize(_KEPT) and kept[:4] == _MAGIC:  # else its writing was cut
            _, self.wakes, self.awake_ms, self.asleep_ms, self.offloads = unpack(_KEPT, kept)

    def _save(self):
        try:
            with open(self.path, "wb") as file:
                file.write(pack(_KEPT, _MAGIC, self.wakes, self.awake_ms, self.asleep_ms, self.offloads))
        except OSError:  # a full flash: counters are not worth a sample
            pass

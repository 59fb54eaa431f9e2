# Sleep between two samples, where a schedule leaves time for it: `light` keeps RAM, `deep` starts the program anew at waking
# and goes on from what was saved. What both save is counted, and reckoned in energy: by the time that passed, not by what was
# asked for.
from struct import calcsize, pack, unpack

from ..clock import remaining, ticks_add, ticks_diff, ticks_ms, unix_now
from . import board, ports

LEAST_MS = {"light": 50, "deep": 1000}  # less is not worth going to sleep for
CREDIBLE_MS = 1 << 31  # a longer sleep is a clock that was set meanwhile
_KEPT = "<4sQQQQQIII"
_MAGIC = b"H2Z2"


def wall_ms() -> int:
    """Milliseconds by the time of day, set or not: it may run on in deep sleep, where nothing else does."""
    from time import time_ns

    return time_ns() // 1000000


def configured(config, node, cause):
    """The Sleep of a configuration for a node. cause: why this start was. ValueError where the machine has no such sleep."""
    try:
        import machine  # type: ignore[import-not-found]
    except ImportError:
        machine = None
    sleep = Sleep(
        config["sleep"]["kind"],
        machine,
        power=config["sleep"]["power"],
        watchdog_ms=config.get("watchdog_ms", 0),
        budget=node.budget,
        woken=cause == board.WOKEN,
    )
    if sleep.leaves_radio_off():
        node.link.hold()
    return sleep


class Sleep:
    """kind: "light" or "deep". machine: the module; ValueError where it has no such sleep. path: of the file that keeps the
    counters, and the budget's level, over deep sleep. power: (what being awake and being asleep take, microwatts, and what an
    offload adds, microjoules), or None: no energy is reckoned. watchdog_ms: of the watchdog, which goes on running; 0: none.
    budget: a Budget, or None. woken: this start ends a deep sleep.

    alone: wakings in a row that found no connection.
    Counters, since they were first counted: `wakes`, `awake_ms`, `asleep_ms`, `offloads`. `level_kept`: whether the budget's
    level is what it was before this start.
    """

    def __init__(self, kind, machine, *, path="h2t2.sleep", power=None, watchdog_ms=0, budget=None, woken=False):
        if not hasattr(machine, kind + "sleep"):
            raise ValueError("sleep = %s: this machine has no %ssleep" % (kind, kind))
        self.kind = kind
        self.deep = kind == "deep"
        self.machine = machine
        self.port = ports.here()
        self.path = path
        self.power = power
        self.part_ms = watchdog_ms >> 1
        self.budget = budget
        self.wakes = self.awake_ms = self.asleep_ms = self.offloads = 0
        self.counted = 0  # offloads of this start that are in it
        self.alone = 0
        self.level_kept = False
        booted = ticks_ms() if woken and self.port else 0  # a chip that wakes counts from 0
        if self.deep:
            self._load(woken, booted)
        self.since = ticks_add(ticks_ms(), -booted)  # awake

    def worth(self, ms, link) -> bool:
        """Whether so many milliseconds are slept rather than waited. Connecting anew comes out of them."""
        return ms - self._lead(ms, link) >= LEAST_MS[self.kind]

    def nap(self, ms, node, feed) -> None:
        """Sleep for so long, less what connecting anew takes; deep sleep does not return. feed: a watchdog's."""
        link = node.link
        ms -= self._lead(ms, link)
        if self.deep or not self._outlives(ms, link):
            link.close()
        feed()
        self.count(node.offloads)
        self.wakes += 1
        if self.deep:
            self.alone = 0 if link.connections else self.alone + 1
            if self.budget:
                self.budget.credit(ticks_diff(ticks_ms(), node.credited_at))
            if not (self.port and self.port.pieces):
                self._save(wall_ms())
                self.machine.deepsleep(ms)
        passed = self._doze(ms, feed)
        self.asleep_ms += passed
        if self.deep:
            if self.budget:
                self.budget.credit(passed)
            self._save(0)
            board.restart(board.WOKEN)
        self.since = ticks_ms()

    def leaves_radio_off(self) -> bool:
        """Whether this waking tries for no connection: after ever more that had none only every 2nd, 4th ... 32nd does."""
        return self.alone & (self.alone + 1) > 0 and self.alone % 32 != 31

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

    def _outlives(self, ms, link):
        """Whether the link's connection is there after a light sleep of so many milliseconds."""
        return ms <= link.outlives_ms and (not self.port or self.port.radio)

    def _lead(self, ms, link):
        """Milliseconds before a sample that a light sleep must end for it to find a connection."""
        return 0 if self.deep or self._outlives(ms, link) else link.lead_ms

    def _doze(self, ms, feed):
        """Sleep lightly for so long: in pieces, each over before the watchdog, and again where one ends early. The milliseconds
        of it that were slept."""
        end = ticks_add(ticks_ms(), ms)
        slept = 0
        left = ms
        while left:
            part = min(left, self.part_ms or left)
            began = ticks_ms()
            self.machine.lightsleep(part)
            passed = max(0, ticks_diff(ticks_ms(), began))
            slept += passed
            feed()
            if passed < part >> 1:  # something wants to be done first: the radio's packets
                board.rest(10)
            left = remaining(end, ms)
        return slept

    def _load(self, woken, booted):
        try:
            with open(self.path, "rb") as file:
                kept = file.read(calcsize(_KEPT))
        except OSError:  # the first start
            return
        if len(kept) != calcsize(_KEPT) or kept[:4] != _MAGIC:  # its writing was cut
            return
        _, self.wakes, self.awake_ms, self.asleep_ms, self.offloads, slept_at, level, owed, alone = unpack(_KEPT, kept)
        self.alone = alone if woken else 0
        passed = wall_ms() - slept_at if woken and slept_at else 0
        if not 0 <= passed < CREDIBLE_MS:
            passed = 0
        self.asleep_ms += max(0, passed - booted)
        budget = self.budget
        if budget and woken:
            self.level_kept = True
            budget.level = min(level, budget.capacity)
            budget.owed = owed % budget.period
            if unix_now():  # else nobody knows how long it was
                budget.credit(passed)

    def _save(self, slept_at):
        budget = self.budget
        level, owed = (budget.level, budget.owed) if budget else (0, 0)
        kept = pack(_KEPT, _MAGIC, self.wakes, self.awake_ms, self.asleep_ms, self.offloads, slept_at, level, owed, self.alone)
        try:
            with open(self.path, "wb") as file:
                file.write(kept)
        except OSError:  # a full flash: counters are not worth a sample
            pass

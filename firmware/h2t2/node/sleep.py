# Sleep between two samples, if the schedule leaves time for it: `light` keeps RAM; `deep` starts the program anew at waking,
# and the node continues from its snapshot. The counters use the time that passed, not the time that was requested.
from struct import calcsize, pack, unpack

from ..clock import FAR_MS, remaining, ticks_add, ticks_diff, ticks_ms, unix_now
from ..modules import call_once
from . import board, ports

if 0:  # for type checkers
    from ..annotations import Any, Callable, Service
    from ..core.budget import Budget
    from ..link.link import Link
    from .node import Node

MIN_MS = {"light": 50, "deep": 1000}  # a shorter sleep is not worth it
LONGEST_STRETCH_MS = 3600000  # an RP2 refuses a light sleep of more than 2^32 us (ports/rp2/modmachine.c)
NO_SLEEP_MS = 50  # a light sleep that lasts no longer was none (micropython issues 16181 and 17204)
CREDIBLE_MS = 1 << 31  # a longer sleep shows that the clock was set meanwhile
_RECORD = "<4sQQQQQI9i"  # magic, wakes, ms awake and asleep, offloads, wall clock, alone; Budget.memory()
_MAGIC = b"H2Z3"


def wall_ms() -> int:
    """Return the time of day in milliseconds, set or not: in deep sleep this clock alone may continue."""
    from time import time_ns

    return time_ns() // 1000000


def configured(config: "dict[str, Any]", node: "Node", cause: str) -> "Sleep":
    """Return the Sleep of a configuration. cause: of this start. ValueError for a machine without such a sleep."""
    try:
        import machine
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
    if sleep.passed:
        node.decided_at = ticks_add(ticks_ms(), -min(sleep.passed, FAR_MS - 1))
    if sleep.leaves_radio_off():
        node.link.hold()
    return sleep


class Sleep:
    """Puts a board to sleep and counts.

    Args:
        kind: "light" or "deep".
        machine: The module; ValueError if it has no such sleep.
        path: File that keeps the counters and the level of the budget in deep sleep.
        power: Consumption awake and asleep, microwatts, and of an offload, microjoules; None: no energy is computed.
        watchdog_ms: Limit of the watchdog, which continues in sleep; 0: none.
        budget: It is credited for the time asleep.
        woken: Whether this start ends a deep sleep.

    Attributes:
        alone: Wakings in a row without a connection.
        wakes, awake_ms, asleep_ms, offloads: Counters since the file was made.
        woken: As the argument.
        passed: Milliseconds of the deep sleep that this start ends; 0: unknown.
    """

    def __init__(
        self,
        kind: str,
        machine: "Any",
        *,
        path: str = "h2t2.sleep",
        power: "tuple[int, int, int] | list[int] | None" = None,
        watchdog_ms: int = 0,
        budget: "Budget | None" = None,
        woken: bool = False,
    ):
        if not hasattr(machine, kind + "sleep"):
            raise ValueError("sleep = %s: this machine has no %ssleep" % (kind, kind))
        self.kind = kind
        self.deep = kind == "deep"
        self.machine = machine
        self.port = ports.this_port()
        self.path = path
        self.power = power
        self.stretch_ms = watchdog_ms >> 1 or LONGEST_STRETCH_MS
        self.budget = budget
        self.wakes = self.awake_ms = self.asleep_ms = self.offloads = 0
        self.counted = 0  # offloads of this start that `offloads` contains
        self.alone = 0
        self.woken = woken
        self.passed = 0
        self.behind_ms = 0  # the time of day is behind by so much, less than a second
        booted = ticks_ms() if woken and self.port else 0  # ticks of a chip that wakes begin at 0
        if self.deep:
            self._load(woken, booted)
        self.since = ticks_add(ticks_ms(), -booted)  # awake

    def take_turn(self, ms: int, running: "Service") -> bool:
        """Sleep until the next sample is due, if that is worth it. Deep sleep ends this start; the policy is saved before."""
        node = running.node
        if not node.samples or node.in_flight or node.link.is_connecting() or not self.worth(ms, node.link):
            return False
        if self.deep:
            if node.policy.limit:
                node.policy.limit.end()
            running.save()
            if running.updates:
                running.updates.pause(running)
            running.report_state()
        self.nap(ms, node, running.watchdog)
        return True

    def worth(self, ms: int, link: "Link") -> bool:
        """Return whether to sleep so many milliseconds, less the time to connect again, rather than to wait."""
        return ms - self._lead(ms, link) >= MIN_MS[self.kind]

    def nap(self, ms: int, node: "Node", feed: "Callable[[], object]") -> None:
        """Sleep so long, less the time to connect again; deep sleep does not return. feed: feeds the watchdog."""
        link = node.link
        ms -= self._lead(ms, link)
        if self.deep or not self._outlives(ms, link):
            link.close()
        feed()
        self.count(node.offloads)
        self.wakes += 1
        if self.deep:
            self.alone = 0 if link.connections else self.alone + 1
            node.credit_budget(False)
            if not (self.port and self.port.splits_sleep):
                self._save(wall_ms())
                self.machine.deepsleep(ms)
        slept = self._doze(ms, feed)
        self.asleep_ms += slept
        passed = max(0, ticks_diff(ticks_ms(), self.since))
        if self.deep:
            self.awake_ms += max(0, passed - slept)
            node.credit_budget(False)
            self._save(0)
            board.restart(board.WOKEN)
        self.since = ticks_add(ticks_ms(), -max(0, passed - slept))  # stretches that ended at once were time awake

    def leaves_radio_off(self) -> bool:
        """Return whether this waking makes no connection: after failures only every 2nd, 4th ... 32nd waking does."""
        return self.alone & (self.alone + 1) > 0 and self.alone % 32 != 31

    def count(self, offloads: int) -> None:
        """Count the time awake up to now and the offloads of this start."""
        ticks = ticks_ms()
        self.awake_ms += max(0, ticks_diff(ticks, self.since))
        self.since = ticks
        self.offloads += offloads - self.counted
        self.counted = offloads

    def report(self) -> "dict[str, int]":
        """Return entries for the state: wakes, seconds awake and asleep, thousandths of the time awake, millijoules."""
        entries = {"wakes": self.wakes, "awake_s": self.awake_ms // 1000, "asleep_s": self.asleep_ms // 1000}
        entries["duty"] = self.awake_ms * 1000 // max(1, self.awake_ms + self.asleep_ms)
        if self.power:
            awake, asleep, offload = self.power
            nanojoules = self.awake_ms * awake + self.asleep_ms * asleep
            entries["energy_mj"] = nanojoules // 1000000 + self.offloads * offload // 1000
        return entries

    def _outlives(self, ms: int, link: "Link") -> bool:
        """Return whether the connection survives a light sleep of so many milliseconds."""
        return ms <= link.outlives_ms and (not self.port or self.port.radio)

    def _lead(self, ms: int, link: "Link") -> int:
        """Return how many milliseconds before a sample a light sleep must end, to connect in time."""
        return 0 if self.deep or self._outlives(ms, link) else link.lead_ms

    def _doze(self, ms: int, feed: "Callable[[], object]") -> int:
        """Sleep lightly in stretches shorter than the watchdog's limit; a stretch may end early. Return the time asleep.

        A stretch that ends at once was no sleep, and counts as time awake.
        """
        end = ticks_add(ticks_ms(), ms)
        slept = 0
        wait = ms
        while wait:
            stretch = min(wait, self.stretch_ms)
            began = ticks_ms()
            wall = wall_ms()
            self.machine.lightsleep(stretch)
            passed = max(0, ticks_diff(ticks_ms(), began))
            if passed >= min(stretch, NO_SLEEP_MS):
                slept += passed
            self._set_clock_on(wall + passed)
            feed()
            if passed < stretch >> 1:  # the radio has packets to process first
                board.pause(10)
            wait = remaining(end, ms)
        return slept

    def _set_clock_on(self, wall: int) -> None:
        """Set the time of day after a light sleep, if it has fallen behind: an RP2's stands still (micropython issue 16519).

        wall: what the clock would say, milliseconds, had it gone on.
        """
        if not unix_now():
            return
        self.behind_ms = max(0, self.behind_ms + wall - wall_ms())
        if self.behind_ms >= 1000:
            now = wall_ms() + self.behind_ms
            call_once("link.rtc.set_clock", now // 1000)
            self.behind_ms = now % 1000

    def _load(self, woken: bool, booted: int) -> None:
        try:
            with open(self.path, "rb") as file:
                record = file.read(calcsize(_RECORD))
        except OSError:  # the first start
            return
        if len(record) != calcsize(_RECORD) or record[:4] != _MAGIC:  # a power cut interrupted its writing
            return
        _, self.wakes, self.awake_ms, self.asleep_ms, self.offloads, slept_at, alone = unpack(_RECORD, record)[:7]
        self.alone = alone if woken else 0
        passed = wall_ms() - slept_at if woken and slept_at else 0
        if not 0 <= passed < CREDIBLE_MS:
            passed = 0
        self.asleep_ms += max(0, passed - booted)
        if unix_now():  # otherwise the time asleep is unknown
            self.passed = passed
        budget = self.budget
        if budget and woken:
            budget.recall(unpack(_RECORD, record)[7:])
            budget.credit(self.passed, budget.turn)

    def _save(self, slept_at: int) -> None:
        memory = self.budget.memory() if self.budget else [0] * 9
        record = pack(_RECORD, _MAGIC, self.wakes, self.awake_ms, self.asleep_ms, self.offloads, slept_at, self.alone, *memory)
        try:
            with open(self.path, "wb") as file:
                file.write(record)
        except OSError:  # the flash is full; counters matter less than a sample
            pass

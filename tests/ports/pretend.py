# Makes MicroPython's unix port one of the boards of ports/world.py, for a program that is started again after every reset until
# it ends. What outlives a reset is kept in world.json. First in a program: `from ports import pretend; pretend.be("rp2040")`.
import json
import os
import sys

import uselect  # type: ignore[import-not-found]
import utime  # type: ignore[import-not-found]
from ports import sensors
from ports.world import NAMES, World, date, unix_seconds

KEPT = ("now", "scratch", "cause", "clock", "slept", "resets", "asked", "utc", "woken_by")
REAL_MS = 2  # really waited for a socket at most, whatever the program wants to wait


class Lasting(World):
    """A World that goes on in the next process."""

    def begin(self):
        """Go on where the process before ended."""
        if "world.json" in os.listdir():
            with open("world.json") as file:
                kept = json.load(file)
            for name in KEPT:
                setattr(self, name, kept[name])
            self.boot = self.now

    def save(self):
        with open("world.json", "w") as file:
            json.dump({name: getattr(self, name) for name in KEPT}, file)

    def reset(self, cause):
        self.resets.append(cause)
        self.boot = self.now
        if self.chip != "esp32":
            self.clock = 1609459200000 - self.now
        self.cause = cause
        self.save()
        os.system("kill -KILL $PPID")  # what a reset leaves undone is left undone

    def locked_up(self):
        print("LOCKED UP")
        self.save()
        os.system("kill -KILL $PPID")


class Time:
    """Module `time`, of a world. Its members are no methods: MicroPython imports none of an object."""

    def __init__(self, world):
        self.ticks_add, self.ticks_diff, self.mktime = utime.ticks_add, utime.ticks_diff, utime.mktime
        self.ticks_ms = lambda: world.ticks()
        self.sleep_ms = lambda ms: world.pass_ms(ms)
        self.sleep = lambda seconds: world.pass_ms(int(seconds * 1000))
        self.time = lambda: world.unix_ms() // 1000
        self.time_ns = lambda: world.unix_ms() * 1000000
        self.gmtime = lambda seconds=None: date(self.time() if seconds is None else seconds)


class Select:
    """Module `select`: waiting for a socket takes the world's time."""

    POLLIN, POLLOUT, POLLHUP, POLLERR = uselect.POLLIN, uselect.POLLOUT, uselect.POLLHUP, uselect.POLLERR

    def __init__(self, world):
        self._world = world

    def poll(self):
        return Poll(self._world)


class Poll:
    def __init__(self, world):
        self._world = world
        self._poll = uselect.poll()

    def register(self, *arguments):
        self._poll.register(*arguments)

    def poll(self, wait_ms=0):
        events = self._poll.poll(min(wait_ms, REAL_MS))
        if not events and wait_ms:
            self._world.pass_ms(wait_ms)
        return events


def be(chip, faults=None, **options):
    """The world, as that chip; faults: of its sensors (sensors.py); options: World's."""
    world = Lasting(chip, **options)
    world.begin()
    sys.modules.update(sensors.attach(world, faults or {}))
    sys.modules.update({"machine": world.machine, "network": world.network, "time": Time(world), "select": Select(world)})
    from h2t2.node import board

    board.PLATFORM, board.MACHINE = NAMES[chip]
    return world


assert unix_seconds(2026, 11, 25, 0, 0, 0) == 1795564800 and date(1795564800)[:3] == (2026, 11, 25)

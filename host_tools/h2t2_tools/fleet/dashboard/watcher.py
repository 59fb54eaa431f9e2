"""What the pages show: the fleet as it was at the last tick, and its history. One thread ticks, pages only read.

No message of a device and no failure of the history's file ends that thread: `trouble` names what is wrong, for the pages and
for /healthz, until it works again.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ...common import durations
from ..monitoring import fleet_report
from ..monitoring.follower import Follower
from ..monitoring.history import History, Line
from .times import clock_time

TICK_S = 1.0
PRUNE_S = 600.0
PENDING_LINES = 5000  # lines of the log that may wait for the history; one more drops the oldest
PENDING_STARTS = 1000  # ended starts that may wait for the history
LOG = logging.getLogger(__name__)
Row = TypeVar("Row")


class Watcher:
    """From start() to close().

    Attributes:
        latest: the fleet as `h2t2 fleet --json` prints it.
        devices: its devices, by name.
        tick_seconds: seconds that the last tick took.
    """

    def __init__(self, follower: Follower, history: History, clock: Callable[[], float] = time.time) -> None:
        self.latest: dict[str, Any] = {"at": clock(), "lost": None, "devices": [], "workers": [], "unread": 0, "refused": ""}
        self.devices: dict[str, dict[str, Any]] = {}
        self.tick_seconds = 0.0
        self._follower, self._history, self._clock = follower, history, clock
        self._lock = threading.Lock()  # of the history
        self._recalled: set[str] = set()
        self._alarms: dict[str, set[str]] = {}
        self._starts: dict[str, tuple[int, int]] = {}  # device -> its start, and the update package in force
        self._pending_lines: deque[Line] = deque(maxlen=PENDING_LINES)
        self._ended_starts: deque[dict[str, Any]] = deque(maxlen=PENDING_STARTS)  # devices as their last start left them
        self._failures: dict[str, str] = {}  # the part that fails -> why
        self._pruned = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> Watcher:
        self.tick()
        self._thread.start()
        return self

    def close(self) -> None:
        """Write the last tick, and end."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join(10)
        self._follower.close()
        with self._lock:
            self._history.close()

    @property
    def blindness(self) -> str:
        """Since when no message can come, and how old the newest is; "" while there is a connection to the broker."""
        if not self._follower.trouble:
            return ""
        unix_s = self._clock()
        since = self.latest["lost"] or unix_s
        newest = max((device["heard"] or 0.0 for device in self.latest["devices"]), default=0.0)
        age = f", data {durations.in_words(unix_s - newest)} old" if newest else ""
        return f"broker unreachable since {clock_time(since)}{age}"

    @property
    def trouble(self) -> str:
        """What is wrong now in a line, "" for nothing."""
        blind = self.blindness
        unreachable = [f"{blind} ({self._follower.trouble}); connecting again"] if blind else []
        return "; ".join([*unreachable, *self._failures.values()])

    @property
    def refused_text(self) -> str:
        """A sentence about the messages that were refused, "" for none."""
        return str(self.latest["refused"])

    def series(self, device: str, since: float, until: float = math.inf) -> list[dict[str, Any]]:
        """History.series(), and the device as it is now; [] where the history cannot be read."""
        rows = self._read(lambda: self._history.series(device, since, until=until))
        latest = self.devices.get(device)
        if latest and latest["state"] and latest["heard"] and latest["heard"] < until:
            rows.append(fleet_report.minute(latest))
        return rows

    def log(self, device: str) -> list[dict[str, Any]]:
        """History.log(); [] where the history cannot be read."""
        return self._read(lambda: self._history.log(device))

    def remembers(self, device: str) -> bool:
        """History.remembers(); False where the history cannot be read."""
        return any(self._read(lambda: [self._history.remembers(device)]))

    def remove(self, device: str) -> None:
        """Remove a device from the broker and from the history. Failure: it is online, or the broker keeps its messages."""
        self._follower.remove(device)
        with self._lock:
            self._history.remove(device)

    def _read(self, query: Callable[[], list[Row]]) -> list[Row]:
        """Query the history; [] where that fails."""
        with self._lock, self._noted("history, reading", "the history cannot be read"):
            return query()
        return []

    def _run(self) -> None:
        while not self._ended.wait(max(0.05, TICK_S - self.tick_seconds)):
            self.tick()
        self.tick()

    def tick(self) -> None:
        """Read the fleet and write the history. It raises nothing."""
        began = time.perf_counter()
        unix_s = self._clock()
        with self._noted("watcher", "the fleet cannot be shown as it is now"):
            latest = self._look(unix_s)
            before, self.devices = self.devices, {device["device"]: device for device in latest["devices"]}
            self._log_alarms(unix_s)
            self._log_starts(unix_s, before)
            self._write(latest["devices"] if latest["lost"] is None else [], unix_s)
            self.latest = latest  # last: the pages draw again when it has changed
        self.tick_seconds = time.perf_counter() - began

    def _look(self, unix_s: float) -> dict[str, Any]:
        """The fleet as JSON. For a new device, recall what the history holds."""
        with self._follower.fleet() as fleet, self._lock:
            with self._noted("history, recalling", "the history cannot be read"):
                for name in fleet.devices.keys() - self._recalled:
                    self._history.recall(fleet.devices[name])
                    self._recalled.add(name)
            self._recalled &= fleet.devices.keys()
            while fleet.events:
                device, kind, text = fleet.events.popleft()
                self._pending_lines.append(Line(unix_s, device, kind, text))
            return fleet_report.of_fleet(fleet, unix_s)

    def _write(self, devices: list[dict[str, Any]], unix_s: float) -> None:
        """Write rows and pending lines. Where that fails, the next tick does it."""
        with self._lock, self._noted("history, writing", "the history is not written"):
            self._history.write(devices, unix_s, list(self._pending_lines), self._ended_starts)
            self._pending_lines.clear()
            self._ended_starts.clear()
            if abs(unix_s - self._pruned) > PRUNE_S:  # the clock may be set back
                self._history.prune(unix_s)
                self._pruned = unix_s

    def _log_alarms(self, unix_s: float) -> None:
        """Log alarms that begin and end."""
        current: dict[str, set[str]] = {}
        for name, device in self.devices.items():
            texts = {alarm["kind"]: alarm["text"] for alarm in device["alarms"]}
            before = self._alarms.get(name, set())
            for kind in texts.keys() - before:
                self._pending_lines.append(Line(unix_s, name, "alarm", f"{kind}: {texts[kind]}"))
            for kind in before - texts.keys():
                self._pending_lines.append(Line(unix_s, name, "alarm", f"{kind}: over"))
            current[name] = set(texts)
        self._alarms = current

    def _log_starts(self, unix_s: float, earlier: dict[str, dict[str, Any]]) -> None:
        """Log restarts, and updates that come into force. earlier: the devices at the last tick."""
        for name, device in self.devices.items():
            state = device["state"]
            if state is None:
                continue
            update = state["update"] or {"counter": 0, "said": ""}
            current = state["boot"], update["counter"]
            before = self._starts.get(name, current)
            if current[1] != before[1]:
                self._pending_lines.append(Line(unix_s, name, "update", f"{current[1]} {update['said']}".strip()))
            if current[0] != before[0]:
                self._pending_lines.append(Line(unix_s, name, "restart", state["start"]))
                if name in earlier and earlier[name]["state"] and earlier[name]["heard"]:
                    self._ended_starts.append(earlier[name])
            self._starts[name] = current

    @contextmanager
    def _noted(self, source: str, words: str) -> Iterator[None]:
        """Name a failure of a part on the pages until it works again, and once in the log. The caller goes on."""
        try:
            yield
        except Exception as error:
            text = f"{words}: {error}"
            if self._failures.get(source) != text:
                self._failures[source] = text
                LOG.error(text, exc_info=None if isinstance(error, sqlite3.Error) else error)
        else:
            if self._failures.pop(source, None):
                LOG.info("%s: it works again", source)

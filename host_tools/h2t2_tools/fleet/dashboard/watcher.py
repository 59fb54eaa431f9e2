"""What the pages show: the fleet as it was at the last tick, and its history. One thread ticks, pages only read.

Nothing that devices say and nothing that happens to the history's file ends that thread: `troubles` says what is wrong, for the
pages and for /healthz, until it is over.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..monitoring import report
from ..monitoring.follower import Follower
from ..monitoring.history import History, Line

TICK_S = 1.0
PRUNE_S = 600.0
UNWRITTEN = 5000  # lines of the log that wait for the history at most; one more drops the oldest
LOG = logging.getLogger(__name__)


class Watcher:
    """From start() to close(). seen: what `h2t2 fleet --json` would say. took: seconds that the last tick took."""

    def __init__(self, follower: Follower, history: History, clock: Callable[[], float] = time.time) -> None:
        self.seen: dict[str, Any] = {"at": clock(), "lost": None, "devices": [], "workers": [], "unread": 0, "refused": ""}
        self.by_name: dict[str, dict[str, Any]] = {}
        self.took = 0.0
        self._follower, self._history, self._clock = follower, history, clock
        self._lock = threading.Lock()  # of the history
        self._known: set[str] = set()
        self._alarms: dict[str, set[str]] = {}
        self._unwritten: deque[Line] = deque(maxlen=UNWRITTEN)
        self._failing: dict[str, str] = {}  # the part that fails -> why
        self._pruned = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> Watcher:
        self.tick()
        self._thread.start()
        return self

    def close(self) -> None:
        """The last tick is written."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join(10)
        self._follower.close()
        with self._lock:
            self._history.close()

    @property
    def troubles(self) -> list[str]:
        """What is wrong now, a sentence each."""
        lost = self._follower.trouble
        since = self.seen["lost"]
        shown = time.strftime("; what is shown is of %Y-%m-%d %H:%M:%S", time.localtime(since)) if since else ""
        return [*([f"the broker: {lost}; connecting again{shown}"] if lost else []), *self._failing.values()]

    @property
    def trouble(self) -> str:
        """What is wrong now in a line, "" where nothing is."""
        return "; ".join(self.troubles)

    @property
    def refused_text(self) -> str:
        """What was refused so far, "" where nothing was."""
        return str(self.seen["refused"])

    def series(self, device: str, since: float) -> list[dict[str, Any]]:
        """As History.series; [] where the history cannot be read."""
        return self._read(lambda: self._history.series(device, since))

    def log(self, device: str) -> list[dict[str, Any]]:
        """As History.log; [] where the history cannot be read."""
        return self._read(lambda: self._history.log(device))

    def _read(self, query: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        with self._lock:
            try:
                rows = query()
            except Exception as error:
                self._fails("history, reading", "the history cannot be read", error)
                return []
        self._works("history, reading")
        return rows

    def _run(self) -> None:
        while not self._ended.wait(max(0.05, TICK_S - self.took)):
            self.tick()
        self.tick()

    def tick(self) -> None:
        """Look at the fleet, and write down what is to be kept. It raises nothing."""
        began = time.perf_counter()
        now = self._clock()
        try:
            seen = self._look(now)
            self.by_name = {one["device"]: one for one in seen["devices"]}
            self._note_changes(now)
        except Exception as error:
            self._fails("watcher", "the fleet cannot be shown as it is now", error)
        else:
            self._works("watcher")
            self._write(seen["devices"] if seen["lost"] is None else [], now)
            self.seen = seen  # last: the pages look again when it is another
        self.took = time.perf_counter() - began

    def _look(self, now: float) -> dict[str, Any]:
        """The fleet as JSON. A device that is met for the first time is told what the history knows of it."""
        with self._follower.fleet() as fleet, self._lock:
            for name in fleet.devices.keys() - self._known:
                try:
                    self._history.recall(fleet.devices[name])
                except Exception as error:
                    self._fails("history, recalling", "the history cannot be read", error)
                    break
                self._known.add(name)
            else:
                self._works("history, recalling")
            self._known &= fleet.devices.keys()
            while fleet.events:
                device, kind, text = fleet.events.popleft()
                self._unwritten.append(Line(now, device, kind, text))
            return report.of_fleet(fleet, now)

    def _write(self, devices: list[dict[str, Any]], now: float) -> None:
        """Write what waits. Where that fails it waits for the next tick."""
        with self._lock:
            lines = list(self._unwritten)
            try:
                self._history.write(devices, now, lines)
                self._unwritten.clear()
                if now - self._pruned > PRUNE_S:
                    self._history.prune(now)
                    self._pruned = now
            except Exception as error:
                self._fails("history, writing", "the history is not written", error)
                return
        self._works("history, writing")

    def _note_changes(self, now: float) -> None:
        """Alarms that begin and end, for the log."""
        for name, one in self.by_name.items():
            texts = {alarm["kind"]: alarm["text"] for alarm in one["alarms"]}
            before = self._alarms.get(name, set())
            for kind in texts.keys() - before:
                self._unwritten.append(Line(now, name, "alarm", f"{kind}: {texts[kind]}"))
            for kind in before - texts.keys():
                self._unwritten.append(Line(now, name, "alarm", f"{kind}: over"))
            self._alarms[name] = set(texts)

    def _fails(self, part: str, words: str, error: Exception) -> None:
        """Say so on the pages until it works again, and once in the log."""
        text = f"{words}: {error}"
        if self._failing.get(part) != text:
            self._failing[part] = text
            LOG.error(text, exc_info=None if isinstance(error, sqlite3.Error) else error)

    def _works(self, part: str) -> None:
        if self._failing.pop(part, None):
            LOG.info("%s: it works again", part)

"""What the pages show: the fleet as it was at the last tick, and its history. One thread ticks, pages only read."""

from __future__ import annotations

import threading
import time
from typing import Any

from ..seen import report
from ..seen.follower import Follower
from ..seen.history import History

TICK_S = 1.0
PRUNE_S = 600.0


class Watcher:
    """From start() to close(). seen: what `h2t2 fleet --json` would say. took: seconds that the last tick took."""

    def __init__(self, follower: Follower, history: History) -> None:
        self.seen: dict[str, Any] = {"devices": [], "workers": [], "unread": 0}
        self.by_name: dict[str, dict[str, Any]] = {}
        self.took = 0.0
        self._follower, self._history = follower, history
        self._lock = threading.Lock()  # of the history
        self._known: set[str] = set()
        self._alarms: dict[str, set[str]] = {}
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
        self._thread.join(10)
        self._follower.close()
        with self._lock:
            self._history.close()

    @property
    def trouble(self) -> str:
        """Why nothing new is heard, "" where it is."""
        return self._follower.trouble

    def series(self, device: str, since: float) -> list[dict[str, Any]]:
        """As History.series."""
        with self._lock:
            return self._history.series(device, since)

    def log(self, device: str) -> list[dict[str, Any]]:
        """As History.log."""
        with self._lock:
            return self._history.log(device)

    def _run(self) -> None:
        while not self._ended.wait(max(0.05, TICK_S - self.took)):
            self.tick()
        self.tick()

    def tick(self) -> None:
        """Look at the fleet, and write down what is to be kept."""
        began = time.perf_counter()
        now = time.time()
        with self._follower.fleet() as fleet, self._lock:
            for name in fleet.devices.keys() - self._known:
                self._history.recall(fleet.devices[name])
            self._known = set(fleet.devices)
            made = report.of_fleet(fleet, now)
            self._history.note(made["devices"], now)
            while fleet.events:
                self._history.say(*fleet.events.popleft(), now)
        self.by_name = {one["device"]: one for one in made["devices"]}
        with self._lock:
            self._changes(now)
            if now - self._pruned > PRUNE_S:
                self._pruned = now
                self._history.prune(now)
        self.seen = made  # last: the pages look again when it is another
        self.took = time.perf_counter() - began

    def _changes(self, now: float) -> None:
        """Alarms that begin and end, for the log."""
        for name, one in self.by_name.items():
            texts = {alarm["kind"]: alarm["text"] for alarm in one["alarms"]}
            before = self._alarms.get(name, set())
            for kind in texts.keys() - before:
                self._history.say(name, "alarm", f"{kind}: {texts[kind]}", now)
            for kind in before - texts.keys():
                self._history.say(name, "alarm", f"{kind}: over", now)
            self._alarms[name] = set(texts)

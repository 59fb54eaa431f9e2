"""Measures how long the machine keeps a process from running or from writing, because both delay every deadline."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

PAUSE_S = 0.005
WRITE_PAUSE_S = 0.2


class Stalls:
    """Measures inside the context.

    Args:
        folder: Where the nodes keep their snapshots.

    Attributes:
        worst_ms: The longest excess of a short sleep.
        worst_sync_ms: The longest time of storing a file of four kilobytes, with the fsync() that a snapshot ends with.
    """

    def __init__(self, folder: Path) -> None:
        self.worst_ms = self.worst_sync_ms = 0.0
        self._file = folder / "stalls"
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=measure, daemon=True) for measure in (self._sleep, self._write)]

    def __enter__(self) -> Stalls:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _sleep(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            time.sleep(PAUSE_S)
            self.worst_ms = max(self.worst_ms, (time.monotonic() - began - PAUSE_S) * 1000)

    def _write(self) -> None:
        while not self._ended.wait(WRITE_PAUSE_S):
            began = time.monotonic()
            with self._file.open("wb") as file:
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())
            self.worst_sync_ms = max(self.worst_sync_ms, (time.monotonic() - began) * 1000)

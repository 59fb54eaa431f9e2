"""Measures how long the machine keeps a process from running, because a busy machine delays every deadline."""

from __future__ import annotations

import threading
import time

PAUSE_S = 0.005


class Stalls:
    """Measures inside the context. worst_ms: the longest excess of a short sleep."""

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            time.sleep(PAUSE_S)
            self.worst_ms = max(self.worst_ms, (time.monotonic() - began - PAUSE_S) * 1000)

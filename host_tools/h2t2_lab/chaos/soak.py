"""Measures memory, descriptors, threads and latency of the processes of a long run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .subjects import Subject

EVERY_S = 20.0


class Soak:
    """Collects `rows` {hours, process, life, memory_mb, descriptors, threads} each EVERY_S; nodes also p99_ms and worst_ms.

    workers: Returns the current processes of the remote model.
    """

    def __init__(self, workers: Callable[[], Sequence[Popen[bytes]]], subjects: Sequence[Subject], hours: float) -> None:
        self.rows: list[dict[str, Any]] = []
        self._workers, self._subjects, self._hours = workers, subjects, hours
        self._began = self._last = time.monotonic()

    def share(self) -> float:
        """Return the share of the time that has passed."""
        return (time.monotonic() - self._began) / 3600 / self._hours

    def look(self) -> None:
        """Measure if EVERY_S have passed."""
        time_s = time.monotonic()
        if time_s - self._last < EVERY_S:
            return
        self._last = time_s
        hours = (time_s - self._began) / 3600
        for subject in self._subjects:
            times, subject.account.latencies = sorted(subject.account.latencies), []
            if subject.process and times:
                row = {"p99_ms": times[len(times) * 99 // 100], "worst_ms": times[-1], "life": subject.account.lives}
                self._add(hours, f"node {subject.name}", subject.process.pid, row)
        for n, worker in enumerate(self._workers()[:2]):
            self._add(hours, f"rdl {n}", worker.pid, {"life": worker.pid})

    def _add(self, hours: float, process: str, number: int, extra: dict[str, Any]) -> None:
        try:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{number}/status").read_text().splitlines())
            descriptors = len(os.listdir(f"/proc/{number}/fd"))
        except OSError:  # the process was just killed
            return
        used = {"memory_mb": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"])}
        self.rows.append({"hours": hours, "process": process, "descriptors": descriptors, **used, **extra})

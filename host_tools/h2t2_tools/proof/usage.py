"""What a process uses, as Linux counts it."""

from __future__ import annotations

import os
import time
from pathlib import Path

CPU_CLOCK = 2  # clock_getcpuclockid(3): the CPU clock of a process, in nanoseconds


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, to the nanosecond. /proc counts ticks of ten milliseconds only."""
    return time.clock_gettime((~pid << 3) | CPU_CLOCK)


def rss_mb(pid: int) -> float:
    """Resident memory of a process, MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def children(pid: int) -> list[int]:
    """Living processes that a process has started, for example the workers of `h2t2 rdl`."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []

"""What a process has used, as Linux tells it."""

from __future__ import annotations

import os
import time
from pathlib import Path

CPU_CLOCK = 2  # of a process, clock_getcpuclockid(3): the others count ticks


def cpu_s(pid: int) -> float:
    """Seconds of a processor that a process has had, to the nanosecond: /proc counts in ticks of ten milliseconds."""
    return time.clock_gettime((~pid << 3) | CPU_CLOCK)


def rss_mb(pid: int) -> float:
    """Its memory, MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def children(pid: int) -> list[int]:
    """Processes that it has started, and that are there: the workers of `h2t2 rdl`, say."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []

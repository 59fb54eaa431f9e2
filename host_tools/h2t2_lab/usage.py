"""Resources that a process uses, as Linux counts them."""

import os
import time
from pathlib import Path

CPU_CLOCK = 2  # clock_getcpuclockid(3): the CPU clock of a process, in nanoseconds


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process, to the nanosecond. /proc counts only ticks of ten milliseconds."""
    return time.clock_gettime((~pid << 3) | CPU_CLOCK)


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def children(pid: int) -> list[int]:
    """Return the living child processes of a process, for example the workers of `h2t2 rdl`."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []

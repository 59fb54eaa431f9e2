"""Policies over score traces, compiled: what every policy would have cost.

What numba compiled is kept by what was compiled: numba itself looks at the file of a function alone, not at those it calls, and
a change of the runtime's core would go on with the old one.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from ...common import places


def _keep_compiled() -> None:
    """Set NUMBA_CACHE_DIR to a folder named after the sources, unless the user has set it or there is no room for one."""
    stamp = 0
    for path in sorted([*(places.RUNTIME / "core").glob("*.py"), *Path(__file__).parent.rglob("*.py")]):
        stamp = zlib.crc32(path.read_bytes(), stamp)
    folder = places.cache() / "numba" / f"{stamp:08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))


_keep_compiled()

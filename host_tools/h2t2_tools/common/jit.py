"""The compiler of the runtime's integer code on a host, numba, and where it keeps what it compiled: by what was compiled.

numba itself looks at the file of a function alone, not at those it calls, and a change of the runtime's core would go on with
the old one.
"""

from __future__ import annotations

import zlib
from types import FunctionType
from typing import Any

import numba

from . import places


def _set_cache_folder() -> None:
    """Have it kept in a folder named after the sources, unless the user has named one or there is no room for one."""
    if numba.config.CACHE_DIR:
        return
    sources = [*(places.RUNTIME / "core").glob("*.py"), *(places.RUNTIME / "ldl").glob("*.py")]
    sources += [*(places.PACKAGE / "lab/simulation").rglob("*.py"), *(places.PACKAGE / "model").glob("compiled.py")]
    stamp = 0
    for path in sorted(sources):
        stamp = zlib.crc32(path.read_bytes(), stamp)
    folder = places.cache() / "numba" / f"{stamp:08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    numba.config.CACHE_DIR = str(folder)


_set_cache_folder()
njit = numba.njit(cache=True)
njit_nogil = numba.njit(cache=True, nogil=True)  # several at once, one a thread


def compile_function(function: Any, **names: Any) -> Any:
    """A device function, compiled; names: what its globals are here."""
    return njit(FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__))

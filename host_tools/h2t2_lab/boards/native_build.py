"""Builds the native modules of MicroPython, firmware/native/kernels.c and the steps of the policies: `make native`.

It needs Debian's cross compilers, and MicroPython's sources and linker, which it fetches from Debian as the emulators do.
"""

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from h2t2_tools.boards import native
from h2t2_tools.boards.emulators import catalogue, debian
from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure

from .. import material
from ..emulators import source

PACKAGES = {"arm-none-eabi-gcc": "gcc-arm-none-eabi", "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf", "make": "make"}
# -fwrapv: sizes of a stranger's bundle may overflow. The other one: no call of memset, which no library is linked for
FLAGS = "-O2 -fwrapv -fno-tree-loop-distribute-patterns"
MAKEFILE = material.text("boards/native_module.mk")


def lacking() -> str | None:
    """Return why the module cannot be built here, or None."""
    packages = [package for command, package in PACKAGES.items() if not shutil.which(command)]
    if packages:
        return f"no compiler for the native module; run: sudo apt-get install {' '.join(packages)}"
    if not importlib.util.find_spec("elftools"):
        return "MicroPython's linker for native modules needs pyelftools; run: pip install pyelftools"
    return debian.absent()


def build(progress: Callable[[str], None]) -> None:
    """Build each module for every processor for which it is not built yet. Raise Failure if that fails."""
    absent = [(arch, name) for arch in native.ARCHITECTURES for name in native.NAMES if not native.built(arch, name).exists()]
    if not absent:
        return
    if reason := lacking():
        raise Failure(reason)
    with tempfile.TemporaryDirectory(prefix="h2t2-native-") as name:
        tree = source.Tree(Path(name), source.build_logs(), catalogue.DEBIAN_13)
        progress("fetching MicroPython's sources")
        tree.fetch([])
        for arch, name in absent:
            progress(f"{name}, {arch}")
            with places.written_whole(native.built(arch, name)) as partial:
                partial.write_bytes(compiled(tree, f"{name}-{arch}", arch, FLAGS, native.code(name)))


def compiled(tree: source.Tree, name: str, arch: str, flags: str, code: bytes) -> bytes:
    """Compile and link a module.

    Args:
        tree: MicroPython's sources.
        name: Name of a new folder in the tree.
        arch: Processor as mpy-cross names it.
        flags: Options of the compiler.
        code: The C source.

    Returns:
        The content of the .mpy file.
    """
    folder = tree.folder / name
    folder.mkdir()
    (folder / "module.c").write_bytes(code)
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
    for path in (native.built(arch, name) for arch in native.ARCHITECTURES for name in native.NAMES):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

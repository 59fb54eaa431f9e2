"""Predicts the heap of a frozen runtime on an interpreter that has none in its firmware.

The interpreter runs the compiled modules in place, from a read-only file system: code and texts stay there, as in a firmware.
Two things still take heap that a firmware holds in flash: each module's constants, and the pools of the modules' names.
"""

from ..common import places
from . import mpy_file
from .emulators import romfs

IMAGE = "runtime.img"
FILES = 'sys.path[:] = [""]  # as on a board: every module keeps its path\n'
MOUNT = places.text("boards/programs/mount.py.txt").format(image=IMAGE)


def packed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of a board with the modules of the runtime inside IMAGE."""
    modules = {path: data for path, data in files.items() if path.startswith("h2t2/")}
    others = {path: data for path, data in files.items() if path not in modules}
    return {**others, IMAGE: romfs.image(modules)}


def constants(files: dict[str, bytes], loaded: list[str]) -> int:
    """Return the bytes of heap that the constants of loaded modules take, with their tables."""
    return sum(map(mpy_file.constants, mpy_file.of_modules(files, loaded)))

"""Predicts the heap of a frozen runtime on an interpreter that has none in its firmware.

The interpreter runs the compiled modules in place, from a read-only file system: code and texts stay there, as in a firmware.
Two things still take heap that a firmware holds in flash: each module's constants, and the pools of the modules' names.
"""

from __future__ import annotations

from .emulators import romfs

IMAGE = "runtime.img"
FILES = 'sys.path[:] = [""]  # as on a board: every module keeps its path\n'
MOUNT = f"""import os, vfs
image = bytearray(os.stat("{IMAGE}")[6])
with open("{IMAGE}", "rb") as file:
    file.readinto(image)
vfs.mount(vfs.VfsRom(memoryview(image)), "/runtime")
sys.path[:] = ["/runtime", ""]
"""
BLOCK = 16  # bytes that the heap of 32-bit MicroPython hands out at once
NAME_BYTES, OBJECT_BYTES = 2, 4  # of a table's entry
HEADER = 4  # bytes of an .mpy file before the sizes of its tables


def packed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of a board with the modules of the runtime inside IMAGE."""
    modules = {path: data for path, data in files.items() if path.startswith("h2t2/")}
    others = {path: data for path, data in files.items() if path not in modules}
    return {**others, IMAGE: romfs.image(modules)}


def constants(files: dict[str, bytes]) -> int:
    """Return the bytes of heap that the constants of the compiled modules take, with their tables."""
    return sum(_constants(data) for path, data in files.items() if path.startswith("h2t2/"))


def _constants(module: bytes) -> int:
    """Return the bytes of a module's two tables, of names and of objects, whose sizes follow its header, and of the objects.

    An object takes a block, because its text stays in the file.
    """
    names, position = _number(module, HEADER)
    objects, _ = _number(module, position)
    return _blocks(NAME_BYTES * names) + _blocks(OBJECT_BYTES * objects) + BLOCK * objects


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _number(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of an .mpy file, seven bits a byte, and the position behind it."""
    value = 0
    while True:
        byte = data[position]
        position += 1
        value = value << 7 | byte & 127
        if byte < 128:
            return value, position

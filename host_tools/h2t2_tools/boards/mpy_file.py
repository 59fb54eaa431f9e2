"""What an .mpy file (format 6.3) takes of a board's heap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

BLOCK = 16  # bytes that the heap of 32-bit MicroPython hands out at once
NAME_BYTES, OBJECT_BYTES = 2, 4  # of a table's entry
HEADER = 4  # bytes before the sizes of the two tables, of names and of objects
STATIC = 1  # bit of a name that every MicroPython has: its number follows, not its text
TEXT, BYTES, TUPLE = 5, 6, 10  # kinds of objects; a text and bytes end with a zero
NATIVE, CHILDREN = 3, 4  # bits of a code's head: it is machine code; code of inner functions follows


def of_modules(files: dict[str, bytes], names: list[str]) -> list[bytes]:
    """Return the .mpy files of modules, for example h2t2.core.numbers; those that are among the files of a board."""
    paths = [f"{name.replace('.', '/')}{end}.mpy" for name in names for end in ("", "/__init__")]
    return [files[path] for path in paths if path in files]


def constants(module: bytes) -> int:
    """Return the bytes of a module's two tables, of names and of objects, and of the objects.

    An object takes a block, because its text stays in the file.
    """
    names, objects, _ = _tables(module)
    return _blocks(NAME_BYTES * names) + _blocks(OBJECT_BYTES * objects) + BLOCK * objects


def machine_code(module: bytes) -> int:
    """Return the bytes of a module's machine code."""
    return sum(_blocks(size) for size in _sizes(code(module)))


@dataclass
class Code:
    """The code of a module, a class or a function: bytes of machine code, and the code inside it."""

    size: int
    children: list[Code]


def code(module: bytes) -> Code:
    """Return the code of a module."""
    names, objects, position = _tables(module)
    for _ in range(names):
        size, position = _number(module, position)
        position += 0 if size & STATIC else (size >> 1) + 1
    for _ in range(objects):
        position = _after_object(module, position)
    return _read_code(module, position)[0]


def _sizes(code: Code) -> Iterator[int]:
    yield code.size
    for child in code.children:
        yield from _sizes(child)


def _tables(module: bytes) -> tuple[int, int, int]:
    """Return the numbers of names and of objects, and the position of the first name."""
    names, position = _number(module, HEADER)
    objects, position = _number(module, position)
    return names, objects, position


def _after_object(module: bytes, position: int) -> int:
    kind = module[position]
    position += 1
    if kind < TEXT:  # None, True and so on
        return position
    size, position = _number(module, position)
    if kind != TUPLE:
        return position + size + (kind in (TEXT, BYTES))
    for _ in range(size):
        position = _after_object(module, position)
    return position


def _read_code(module: bytes, position: int) -> tuple[Code, int]:
    """Return the code at a position, and the position behind it."""
    head, position = _number(module, position)
    code = Code(head >> 3 if head & NATIVE else 0, [])
    position += head >> 3
    if head & NATIVE:
        _, position = _number(module, position)  # flags
    if head & CHILDREN:
        children, position = _number(module, position)
        for _ in range(children):
            inner, position = _read_code(module, position)
            code.children.append(inner)
    return code, position


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

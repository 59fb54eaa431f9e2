"""Runs one script on any emulated board, with the runtime and further files beside it."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from ...common import places
from ...common.errors import Failure
from ..kinds import KINDS, fingerprint, modules
from ..repl import RawRepl
from . import romfs
from .built import PICO, PICO_FROZEN, PICO_NEXT, Built, Xtensa
from .catalogue import Emulator
from .lwip import Port
from .pico import Pico
from .qemu import MACHINES, QemuBoard
from .source import written_whole

CACHED_IMAGES = 6  # newest flash contents that stay in the cache


def run(
    board: Emulator | Built, source: str, data: dict[str, bytes], seconds: float = 600, count: bool = False,
    compiled: bool = True,
) -> str:  # fmt: skip
    """Run a script on an emulated board and return what it prints.

    The script can import the runtime. The name `FOLDER` is the prefix of the paths of `data`.

    Args:
        board: The board.
        source: The script.
        data: Files for the script, name to content. native.MODULE among them: the native module for the board's processor, for
            a board with firmware from here and a compiled runtime.
        seconds: Longest run.
        count: Define T(), a rising number: on the Pico microseconds of the chip's time, on QEMU's boards ticks of a clock that
            counts instructions.
        compiled: Give boards with firmware from here the runtime as .mpy. Otherwise the Pico and Xtensa compile the part of it
            that local models need.

    Raises:
        Failure: The script raises; the message quotes the board's output.
    """
    if isinstance(board, Emulator | Port | Xtensa):
        return _process(board, source, data, seconds, compiled)
    if board in (PICO, PICO_NEXT, PICO_FROZEN):
        return _pico(board, source, data, seconds, count, compiled)
    machine = MACHINES[board.name]
    files = {**romfs.runtime(_modules(), places.RUNTIME.parent, machine.arch), **data, "script.py": source.encode()}
    with QemuBoard(board.name, romfs.image(files), count) as repl:
        names = "FOLDER='/rom/'\n" + (machine.ticks + "\n" if count else "")
        return repl.run(names + "exec(open('/rom/script.py').read())", seconds)


def _process(board: Emulator | Port | Xtensa, source: str, data: dict[str, bytes], seconds: float, compiled: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in data.items():
            (Path(folder) / name).write_bytes(content)
        script = Path(folder) / "script.py"
        script.write_text(f"FOLDER = {folder + '/'!r}\n{source}")
        if isinstance(board, Emulator | Port):
            return board.run(script, sorted(places.RUNTIME.rglob("*.py")), places.RUNTIME.parent, seconds)
        if not compiled:
            return board.run(script, places.RUNTIME.parent, seconds)
        for path, content in romfs.runtime(_modules(), places.RUNTIME.parent, board.arch).items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_bytes(content)
        return board.run(script, Path(folder), seconds)


def _pico(board: Built, source: str, data: dict[str, bytes], seconds: float, count: bool, compiled: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        flash = Path(folder) / "flash.bin"
        if board is PICO_FROZEN:
            image = prepared({}, board=board)
        elif compiled:
            image = prepared(romfs.runtime(_modules(), places.RUNTIME.parent, KINDS["pico"].arch or ""), _of_a_node(), board)
        else:
            image = prepared(_sources(), board=board)
        shutil.copy(image, flash)
        with Pico(flash, board=board) as pico:
            with RawRepl(pico.port, pace=False) as repl:
                for name, content in {**data, "script.py": source.encode()}.items():
                    repl.write_file(name, content, check=False)
            with RawRepl(pico.port, pace=False) as repl:  # a new start, so that the heap is in one piece
                names = "FOLDER=''\n" + ("from time import ticks_us as T\n" if count else "")
                return repl.run(names + "exec(open('script.py').read())", seconds)


def _modules() -> list[Path]:
    """Return the modules of the runtime, except those for CPython only."""
    return sorted(path for path in places.RUNTIME.rglob("*.py") if path.parent.name != "cpython")


def _sources() -> dict[str, bytes]:
    """Return the sources that local models need."""
    files = [path.relative_to(places.RUNTIME.parent) for path in _modules()]
    model_files = [path for path in files if path.parent.name in ("h2t2", "ldl", "core")]
    return {path.as_posix(): (places.RUNTIME.parent / path).read_bytes() for path in model_files}


def prepared(files: dict[str, bytes], base: dict[str, bytes] | None = None, board: Built = PICO) -> Path:
    """Return a Pico's flash image with these files, which the Pico's own MicroPython writes. A cache keeps the image.

    Args:
        files: Path to content.
        base: Files of another cached image, which is copied first.
        board: The Pico whose firmware writes the image.
    """
    folder = board.firmware().parent / "flash"
    image = folder / f"{fingerprint(files, board.firmware().read_bytes())[:16]}.bin"
    if image.exists():
        return image
    copied = base or {}
    with written_whole(image) as partial:
        _write(partial, files, copied, board)
    for old in sorted(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime)[:-CACHED_IMAGES]:
        old.unlink(missing_ok=True)
    return image


def _write(partial: Path, files: dict[str, bytes], copied: dict[str, bytes], board: Built) -> None:
    """Let a Pico write a flash image and check it. copied: files of a cached image, which the new one begins as."""
    if copied:
        shutil.copy(prepared(copied, board=board), partial)
    with Pico(partial, board=board) as pico, RawRepl(pico.port, pace=False) as repl:
        for above in sorted(_folders(files) - _folders(copied)):
            repl.run(f"import os\nos.mkdir({above!r})")
        for path, data in files.items():
            if path not in copied:
                repl.write_file(path, data, check=False)
        wrong = repl.run(CHECK.replace("WANTED", repr({p: hashlib.sha256(d).digest() for p, d in files.items()}))).split()
    if wrong:
        raise Failure(f"the emulated Pico holds other bytes in {', '.join(wrong)}")


def _folders(files: dict[str, bytes]) -> set[str]:
    return {"/".join(path.split("/")[:n]) for path in files for n in range(1, path.count("/") + 1)}


def runtime_on_a_pico(flash: Path, board: Built = PICO) -> None:
    """Write a flash image of a Pico that already holds the compiled runtime."""
    shutil.copy(prepared(_of_a_node(), board=board), flash)


def _of_a_node() -> dict[str, bytes]:
    """Return the compiled modules of a node on a Pico."""
    kind = KINDS["pico"]
    return romfs.runtime([places.RUNTIME.parent / path for path in modules(kind)], places.RUNTIME.parent, kind.arch or "")


CHECK = """import hashlib
for path, digest in WANTED.items():
    with open(path, "rb") as file:
        if hashlib.sha256(file.read()).digest() != digest:
            print(path)
"""

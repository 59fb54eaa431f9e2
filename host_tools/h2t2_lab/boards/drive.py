"""Runs one script on any emulated board, with the runtime and further files beside it."""

import platform
import shutil
import tempfile
from pathlib import Path

from h2t2_tools.boards.emulators import flash_image, romfs
from h2t2_tools.boards.emulators.catalogue import Emulator, Interpreter, Rp2040
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS, VIPER
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.common import places

from ..emulators.built import PICO_FROZEN, Xtensa
from .qemu import MACHINES, QemuBoard

# of MicroPython's unix port, as mpy-cross names them; "" for another machine than x86-64
PROCESSORS = {"unix": "x64" if platform.machine() == "x86_64" else "", "arm32": "armv6m", "arm32-forky": "armv6m"}


def run(
    board: Emulator, source: str, data: dict[str, bytes], seconds: float = 600, count: bool = False,
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
            that local models need, and QEMU's get bytecode.

    Raises:
        Failure: The script raises; the message quotes the board's output.
    """
    if isinstance(board, Interpreter):
        return _process(board, source, data, seconds, compiled)
    if isinstance(board, Rp2040):
        return _pico(board, source, data, seconds, count, compiled)
    machine = MACHINES[board.name]
    chosen = [path for path in _modules() if compiled or not path.name.endswith(VIPER)]
    runtime = romfs.runtime(chosen, places.RUNTIME.parent, machine.arch if compiled else None)
    files = {**runtime, **data, "script.py": source.encode()}
    with QemuBoard(board.name, romfs.image(files), count) as repl:
        names = "FOLDER='/rom/'\n" + (machine.ticks + "\n" if count else "")
        return repl.run(names + "exec(open('/rom/script.py').read())", seconds)


def _process(board: Interpreter, source: str, data: dict[str, bytes], seconds: float, compiled: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in data.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        script = Path(folder) / "script.py"
        script.write_text(f"FOLDER = {folder + '/'!r}\n{source}")
        arch = board.arch if isinstance(board, Xtensa) else PROCESSORS.get(board.name)
        if compiled and arch:
            return board.run(script, [], write_runtime(Path(folder), arch), seconds)
        return board.run(script, sorted(places.RUNTIME.rglob("*.py")), places.RUNTIME.parent, seconds)


def _pico(board: Rp2040, source: str, data: dict[str, bytes], seconds: float, count: bool, compiled: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        flash = Path(folder) / "flash.bin"
        if board is PICO_FROZEN:
            image = flash_image.prepared({}, board=board)
        elif compiled:
            image = flash_image.prepared(
                romfs.runtime(_modules(), places.RUNTIME.parent, KINDS["pico"].arch or ""), flash_image.of_a_node(), board
            )
        else:
            image = flash_image.prepared(_sources(), board=board)
        shutil.copy(image, flash)
        with Pico(flash, board=board) as pico:
            with RawRepl(pico.port, pace=False) as repl:
                for name, content in {**data, "script.py": source.encode()}.items():
                    repl.write_file(name, content, check=False)
            with RawRepl(pico.port, pace=False) as repl:  # a new start, so that the heap is in one piece
                names = "FOLDER=''\n" + ("from time import ticks_us as T\n" if count else "")
                return repl.run(names + "exec(open('script.py').read())", seconds)


def write_runtime(folder: Path, arch: str) -> Path:
    """Write the compiled runtime into a folder, and return it. arch: processor as mpy-cross names it."""
    for path, content in romfs.runtime(_modules(), places.RUNTIME.parent, arch).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def _modules() -> list[Path]:
    """Return the modules of the runtime, except those for CPython only."""
    return sorted(path for path in places.RUNTIME.rglob("*.py") if path.parent.name != "cpython")


def _sources() -> dict[str, bytes]:
    """Return the sources that local models need."""
    files = [path.relative_to(places.RUNTIME.parent) for path in _modules()]
    model_files = [path for path in files if path.parent.name in ("h2t2", "ldl", "core")]
    return {path.as_posix(): (places.RUNTIME.parent / path).read_bytes() for path in model_files}

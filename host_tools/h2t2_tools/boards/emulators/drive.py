"""One script on any emulated board: the whole runtime beside it, files that it reads, what it prints."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from ...common import places
from ...common.errors import Failure
from ..kinds import KINDS, fingerprint, modules
from ..repl import RawRepl
from . import romfs
from .built import PICO, PICO_NEXT, Built, Xtensa
from .catalogue import Emulator
from .lwip import Port
from .pico import Pico
from .qemu import MACHINES, QemuBoard

CACHED_IMAGES = 6  # flash contents kept in the cache, the newest


def run(
    board: Emulator | Built, source: str, data: dict[str, bytes], seconds: float = 600, count: bool = False,
    compiled: bool = True,
) -> str:  # fmt: skip
    """What a script prints. It finds the runtime to import, and `FOLDER`, a name to put before that of each file of `data`.

    count: it finds T() too, a rising number: on the Pico microseconds of the chip's time, on QEMU's boards ticks of a clock
    that counts instructions. compiled: those whose firmware is built here get the runtime as .mpy; else the Pico and Xtensa
    compile what local models need of it.
    Failure, with the board's words, where it raises.
    """
    if isinstance(board, Emulator | Port | Xtensa):
        return _process(board, source, data, seconds, compiled)
    if board in (PICO, PICO_NEXT):
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
        if compiled:
            image = prepared(romfs.runtime(_modules(), places.RUNTIME.parent, KINDS["pico"].arch or ""), _of_a_node(), board)
        else:
            image = prepared(_sources(), board=board)
        shutil.copy(image, flash)
        with Pico(flash, board=board) as pico:
            with RawRepl(pico.port, pace=False) as repl:
                for name, content in {**data, "script.py": source.encode()}.items():
                    repl.write_file(name, content, check=False)
            with RawRepl(pico.port, pace=False) as repl:  # another start, whose heap is in one piece
                names = "FOLDER=''\n" + ("from time import ticks_us as T\n" if count else "")
                return repl.run(names + "exec(open('script.py').read())", seconds)


def _modules() -> list[Path]:
    """The runtime, but for what needs CPython."""
    return sorted(path for path in places.RUNTIME.rglob("*.py") if path.parent.name != "cpython")


def _sources() -> dict[str, bytes]:
    """What local models need of the runtime, as it is."""
    files = [path.relative_to(places.RUNTIME.parent) for path in _modules()]
    model_files = [path for path in files if path.parent.name in ("h2t2", "ldl", "core")]
    return {path.as_posix(): (places.RUNTIME.parent / path).read_bytes() for path in model_files}


def prepared(files: dict[str, bytes], base: dict[str, bytes] | None = None, board: Built = PICO) -> Path:
    """A Pico's flash that holds so many files, as its own MicroPython wrote them; made once and kept.

    base: those files that another cached flash holds already; it is copied first. board: whose firmware writes them.
    """
    folder = board.firmware().parent / "flash"
    image = folder / f"{fingerprint(files, board.firmware().read_bytes())[:16]}.bin"
    if image.exists():
        return image
    folder.mkdir(exist_ok=True)
    partial = image.with_name(f"{image.name}.{os.getpid()}.part")
    copied = base or {}
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
    partial.rename(image)
    for old in sorted(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime)[:-CACHED_IMAGES]:
        old.unlink(missing_ok=True)
    return image


def _folders(files: dict[str, bytes]) -> set[str]:
    return {"/".join(path.split("/")[:n]) for path in files for n in range(1, path.count("/") + 1)}


def runtime_on_a_pico(flash: Path, board: Built = PICO) -> None:
    """Write the flash of a Pico that holds the runtime already: compiled, whole, as it was copied there once."""
    shutil.copy(prepared(_of_a_node(), board=board), flash)


def _of_a_node() -> dict[str, bytes]:
    """The part of the runtime that a node on a Pico has."""
    kind = KINDS["pico"]
    return romfs.runtime([places.RUNTIME.parent / path for path in modules(kind)], places.RUNTIME.parent, kind.arch or "")


CHECK = """import hashlib
for path, digest in WANTED.items():
    with open(path, "rb") as file:
        if hashlib.sha256(file.read()).digest() != digest:
            print(path)
"""

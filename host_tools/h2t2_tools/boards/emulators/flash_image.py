"""Flash images of emulated Picos, which their own MicroPython writes. A cache keeps them."""

import hashlib
import shutil
from pathlib import Path

from ...common import places
from ...common.errors import Failure
from ..cross import fingerprint
from ..kinds import KINDS, modules
from ..repl import RawRepl
from . import romfs
from .catalogue import PICO, Rp2040
from .pico import Pico

CACHED_IMAGES = 6  # newest flash contents that stay in the cache


def prepared(files: dict[str, bytes], base: dict[str, bytes] | None = None, board: Rp2040 = PICO) -> Path:
    """Return a Pico's flash image with these files, which the Pico's own MicroPython writes. A cache keeps the image.

    Args:
        files: Path to content.
        base: Files of another cached image, which is copied first.
        board: The Pico whose firmware writes the image.
    """
    folder = board.content().parent / "flash"
    image = folder / f"{fingerprint(files, board.content().read_bytes())[:16]}.bin"
    if image.exists():
        return image
    copied = base or {}
    with places.written_whole(image) as partial:
        _write(partial, files, copied, board)
    for old in sorted(folder.glob("*.bin"), key=lambda path: path.stat().st_mtime)[:-CACHED_IMAGES]:
        old.unlink(missing_ok=True)
    return image


def _write(partial: Path, files: dict[str, bytes], copied: dict[str, bytes], board: Rp2040) -> None:
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


def runtime_on_a_pico(flash: Path, board: Rp2040 = PICO) -> None:
    """Write a flash image of a Pico that already holds the compiled runtime."""
    shutil.copy(prepared(of_a_node(), board=board), flash)


def of_a_node() -> dict[str, bytes]:
    """Return the compiled modules of a node on a Pico."""
    kind = KINDS["pico"]
    return romfs.runtime([places.RUNTIME.parent / path for path in modules(kind)], places.RUNTIME.parent, kind.arch or "")


CHECK = """import hashlib
for path, digest in WANTED.items():
    with open(path, "rb") as file:
        if hashlib.sha256(file.read()).digest() != digest:
            print(path)
"""

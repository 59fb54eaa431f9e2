"""Read-only file systems for MicroPython's VfsRom, with the compiled runtime and other files for /rom."""

from pathlib import Path
from typing import Any

from ...common.errors import UserError
from ..cross import compiled_file


def image(files: dict[str, bytes]) -> bytes:
    """Return an image that holds files (path to content). Raise UserError without mpremote, which makes it."""
    try:
        from mpremote.romfs import VfsRomWriter  # type: ignore[import-untyped]
    except ImportError:
        raise UserError("a ROMFS image needs mpremote; run: pip install mpremote") from None
    writer = VfsRomWriter()
    _write(writer, {tuple(path.split("/")): data for path, data in files.items()})
    return bytes(writer.finalise())


def _write(writer: Any, files: dict[tuple[str, ...], bytes]) -> None:
    for name in dict.fromkeys(path[0] for path in files):
        if (name,) in files:
            writer.mkfile(name, files[(name,)])
            continue
        writer.opendir(name)
        _write(writer, {path[1:]: data for path, data in files.items() if path[0] == name})
        writer.closedir()


def runtime(files: list[Path], path: Path, arch: str | None) -> dict[str, bytes]:
    """Compile modules for an image.

    Args:
        files: The modules.
        path: Folder that their names are relative to.
        arch: Processor as mpy-cross names it; None: bytecode only.
    """
    return dict(compiled_file(file.relative_to(path).as_posix(), file.read_bytes(), arch) for file in files)

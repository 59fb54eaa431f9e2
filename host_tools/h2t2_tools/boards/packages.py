"""The runtime for mip, MicroPython's package manager: an index for any web server."""

import hashlib
import json
from pathlib import Path

from .. import __version__
from ..common import places
from ..common.errors import UserError
from .cross import compiled_file
from .kinds import KINDS, STARTERS, Kind, modules

FORMAT = "6"  # of .mpy; mip names a package's folder after it
SHORT = 16  # hexadecimal digits in the name of a file


def name_of(kind: Kind) -> str:
    """Return the name of the package for a board."""
    return f"h2t2-{kind.name}"


def write_index(folder: Path) -> list[str]:
    """Write an index of packages, as .py and as .mpy for each board's processor.

    Every version of mip can read it, mip.install(name, index=URL), because it contains no addresses.

    Returns:
        The names of the packages.

    Raises:
        UserError: The folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: the folder is not empty; name a new one")
    names = []
    for kind in KINDS.values():
        if not kind.links:  # a micro:bit has no mip
            continue
        names.append(name_of(kind))
        for form in ("py", FORMAT):
            hashes = [[path, _write_hashed(folder, data)] for path, data in _files(kind, form == FORMAT)]
            package = folder / "package" / form / name_of(kind)
            package.mkdir(parents=True)
            for version in ("latest", __version__):
                text = json.dumps({"v": 1, "version": __version__, "hashes": hashes, "deps": []})
                (package / f"{version}.json").write_text(text)
    return names


def _files(kind: Kind, mpy: bool) -> list[tuple[str, bytes]]:
    files = [(path, (places.RUNTIME.parent / path).read_bytes()) for path in modules(kind)]
    if mpy:
        files = [compiled_file(path, source, kind.arch) for path, source in files]
    own = [*((name, places.boards() / name) for name in STARTERS), ("main.py", kind.folder / "main.py")]
    return files + [(name, path.read_bytes()) for name, path in own]


def _write_hashed(folder: Path, data: bytes) -> str:
    """Store a file under the beginning of its digest, and return that."""
    short = hashlib.sha256(data).hexdigest()[:SHORT]
    path = folder / "file" / short[:2] / short
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return short

"""package.json of every board with a network, for `mpremote mip install`: `make pages` writes them from modules.txt."""

from __future__ import annotations

import json
from pathlib import Path

from .. import __version__
from ..common import places
from .kinds import KINDS, Kind, modules


def content(kind: Kind) -> str:
    """The file for a kind of board: paths on it, and where mip finds each beside package.json."""
    urls = [[path, f"../../{path}"] for path in modules(kind)] + [["finish.py", "../finish.py"], ["main.py", "main.py"]]
    return json.dumps({"version": __version__, "urls": urls, "deps": []}, indent=1) + "\n"


def write() -> list[Path]:
    """Write them all into the board folders; their paths."""
    made = []
    for kind in KINDS.values():
        path = places.boards() / kind.name / "package.json"
        if path.exists():
            path.write_text(content(kind))
            made.append(path)
    return made


if __name__ == "__main__":
    for path in write():
        print(path)

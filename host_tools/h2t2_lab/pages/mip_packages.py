"""package.json of each board's folder, with which mip installs the runtime from a clone: `make pages` writes them."""

import json
from pathlib import Path

from h2t2_tools import __version__
from h2t2_tools.boards.kinds import KINDS, STARTERS, Kind, modules


def content(kind: Kind) -> str:
    """Return package.json of a board: paths on the board, and where mip finds each file relative to package.json."""
    urls = [[path, f"../../{path}"] for path in modules(kind)] + [
        *([name, f"../{name}"] for name in STARTERS),
        ["main.py", "main.py"],
    ]
    return json.dumps({"version": __version__, "urls": urls, "deps": []}, indent=1) + "\n"


def write() -> list[Path]:
    """Write package.json into the folder of every board that has its own and takes packages. Return the paths."""
    written = []
    for kind in KINDS.values():
        if kind.links and not kind.like:
            path = kind.folder / "package.json"
            path.write_text(content(kind))
            written.append(path)
    return written


if __name__ == "__main__":
    for path in write():
        print(path)

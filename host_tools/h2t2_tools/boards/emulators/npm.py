"""Fetches and unpacks npm packages without their dependencies, because the packages that we use have none."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ...common.errors import Failure
from .debian import run


def unpack(package: str, target: Path) -> None:
    """Unpack name@version into the folder `package` below `target`. npm checks its digest."""
    if not shutil.which("npm"):
        raise Failure(f"fetching {package} needs npm; run: sudo apt-get install nodejs npm")
    with tempfile.TemporaryDirectory(prefix="h2t2-npm-") as name:
        packed = run(["npm", "pack", "--silent", package], Path(name)).split()[-1]
        target.mkdir(parents=True, exist_ok=True)
        run(["tar", "-xzf", packed, "-C", str(target)], Path(name))

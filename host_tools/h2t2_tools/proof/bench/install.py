"""`h2t2 bench install`: what the base install takes: library by library here, and in all on each Python of this machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from ...common import pythons
from ...common.errors import Failure
from ...common.report import Report, Table

TITLE = "The base install"
PROJECT = "h2t2-edge"


def measure(progress: Callable[[str], None]) -> dict[str, Any]:
    """{"libraries": rows {name, version, bytes} of this environment, largest first, "pythons": rows {python, bytes, why}}.

    A Python's bytes are None, and why says so, where its packages could not be installed.
    """
    here = _libraries(progress)
    mine = f"3.{sys.version_info[1]}"
    rows = [{"python": mine, "bytes": sum(row["bytes"] for row in here), "why": None}]
    for python, program in pythons.others().items():
        progress(f"Python {python}")
        try:
            rows.append({"python": python, "bytes": _installed(program), "why": None})
        except Failure as error:
            rows.append({"python": python, "bytes": None, "why": str(error)})
    return {"libraries": here, "pythons": sorted(rows, key=lambda row: int(str(row["python"]).split(".")[1]))}


def _libraries(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    waiting = [PROJECT]
    while waiting:
        name = waiting.pop()
        if name.lower() in found:
            continue
        progress(name)
        installed = metadata.distribution(name)
        files = [Path(str(file.locate())) for file in installed.files or []] if name != PROJECT else []
        size = sum(path.stat().st_size for path in files if path.is_file() and "__pycache__" not in path.parts)
        found[name.lower()] = {"name": installed.metadata["Name"], "version": installed.version, "bytes": size}
        waiting += [need.name for need in _needs(installed)]
    del found[PROJECT]
    return sorted(found.values(), key=lambda row: -row["bytes"])


def _needs(installed: metadata.Distribution) -> list[Requirement]:
    """What a package needs here, without any extra."""
    needs = [Requirement(text) for text in installed.requires or []]
    return [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]


def _installed(program: str) -> int:
    """Bytes of the base's packages, installed for that Python into a folder of their own, without byte code."""
    requirements = [text for text in metadata.distribution(PROJECT).requires or [] if "extra ==" not in text]
    with tempfile.TemporaryDirectory(prefix="h2t2-install-") as name:
        folder = Path(name)
        venv.create(folder / "pip", symlinks=True, with_pip=True)
        subprocess.run([program, "-m", "venv", "--without-pip", str(folder / "base")], check=True)
        command = [
            folder / "pip/bin/python",
            "-m",
            "pip",
            "--python",
            folder / "base/bin/python",
            "install",
            "-q",
            "--no-compile",
        ]
        done = subprocess.run([*map(str, command), *requirements], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise Failure(" ".join(done.stderr.split())[-200:])
        site = next((folder / "base").glob("lib/python3.*/site-packages"))
        return sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and not path.is_symlink())


def report(measured: dict[str, Any]) -> Report:
    """A row a library, and the sum; a row a Python."""
    rows = measured["libraries"]
    cells = [[row["name"], row["version"], f"{row['bytes'] / 1e6:.1f}"] for row in rows]
    total = [["all of them", "", f"{sum(row['bytes'] for row in rows) / 1e6:.0f}"]]
    columns = {"library": "left", "version": "left", "MB": "right"}
    title = "what a node and a worker need, without byte code; everything else is an extra"
    each = [[row["python"], row["why"] or f"{row['bytes'] / 1e6:.0f}"] for row in measured["pythons"]]
    return [
        Table(title, columns, cells + total),
        Table("the same on every Python of this machine", {"Python": "left", "MB": "right"}, each),
    ]

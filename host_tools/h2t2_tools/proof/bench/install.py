"""`h2t2 bench install`: what the base install takes, library by library, from the files installed here."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from ...common.report import Report, Table

TITLE = "The base install"
PROJECT = "h2t2-edge"


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {name, version, bytes} of every package that the base needs, largest first, and of the project itself last."""
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
        for text in installed.requires or []:
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting.append(need.name)
    del found[PROJECT]
    return sorted(found.values(), key=lambda row: -row["bytes"])


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a library, and the sum."""
    cells = [[row["name"], row["version"], f"{row['bytes'] / 1e6:.1f}"] for row in rows]
    total = [["all of them", "", f"{sum(row['bytes'] for row in rows) / 1e6:.0f}"]]
    columns = {"library": "left", "version": "left", "MB": "right"}
    return [Table("what a node and a worker need, without byte code; everything else is an extra", columns, cells + total)]

"""`h2t2 bench memory`: what runtime and a small LDL take on each kind of board; heap measured on emulated 32-bit ARM."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...boards import flash, kinds
from ...boards.emulators import ARM32
from ...common import pairs
from ...common.report import Report, Table
from ...fleet.config import NodeConfig
from ...model import bundle

TITLE = "Memory on a board"
PAIR = "breast_cancer"


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows {board, mpy, flash_bytes, heap_bytes (None where emulated ARM cannot run), bundle_bytes}."""
    pair = pairs.load(PAIR)
    config = NodeConfig(remote_shape=pair.about.remote.shape, model_id=pair.about.model_id)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "ldl.h2m"
        model.write_bytes(bundle.from_tflite(pair.ldl))
        for kind in kinds.KINDS.values():
            if kind.name in ("unix", "microbit"):
                continue
            for mpy in (True, False):
                progress(f"{kind.name}, {'.mpy' if mpy else '.py'}")
                files = kinds.payload(kind, model, config, None, mpy)
                measured = kinds.payload(replace(kind, arch="armv6m"), model, config, None, mpy)
                rows.append(
                    {
                        "board": kind.name,
                        "mpy": mpy,
                        "flash_bytes": sum(map(len, files.values())),
                        "heap_bytes": flash.memory(measured) if ARM32.missing() is None else None,
                        "bundle_bytes": model.stat().st_size,
                    }
                )
    return rows


def report(rows: list[dict[str, Any]]) -> Report:
    """A row a board and form of the runtime."""
    columns = {"board": "left", "runtime as": "left", "bytes of flash": "right", "bytes of heap": "right"}
    cells = [
        [
            row["board"],
            ".mpy" if row["mpy"] else ".py",
            f"{row['flash_bytes']:,}",
            "-" if row["heap_bytes"] is None else f"{row['heap_bytes']:,}",
        ]
        for row in rows
    ]
    title = f"runtime, configuration and the {PAIR} LDL ({rows[0]['bundle_bytes']:,} bytes); heap on emulated 32-bit ARM"
    return [Table(title, columns, cells)]

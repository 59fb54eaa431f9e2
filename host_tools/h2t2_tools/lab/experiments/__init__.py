"""The paper's figures and those beyond it, one a file: each writes a picture and a CSV."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

from .names import NAMES as ALL


def perform(name: str, out: Path, quick: bool, data: Path | None) -> dict[str, Any]:
    """Run one of ALL: {"seconds", "files"}. quick: fewer runs and points; data: a folder of traces to prefer."""
    from .setting import Setting

    if name not in ALL:
        raise ValueError(f"experiment {name}: not one of {', '.join(ALL)}")
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    files = import_module(f".{name.replace('-', '_')}", __package__).perform(Setting(out, quick, data))
    return {"seconds": time.perf_counter() - started, "files": [str(file) for file in files]}

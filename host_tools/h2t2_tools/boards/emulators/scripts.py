"""A script that a MicroPython build runs as a process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ...common.errors import Failure


def output(name: str, script: Path, command: list[str], environment: dict[str, str], timeout: float) -> str:
    """Its standard output. Failure, with its words, when it ends badly."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    if result.returncode:
        raise Failure(f"{name} MicroPython: {script.name}: {(result.stdout + result.stderr).strip()[-800:]}")
    return result.stdout

"""Runs a script in a MicroPython process."""

import subprocess
from pathlib import Path

from ...common.errors import Failure


def import_path(paths: tuple[Path, ...]) -> str:
    """Return a MICROPYPATH: folders of imports, and the modules that the interpreter contains, such as asyncio."""
    return ":".join([*map(str, paths), ".frozen"])


def output(name: str, script: Path, command: list[str], environment: dict[str, str], timeout: float) -> str:
    """Return the standard output of the script's process. Raise Failure with its output if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    if result.returncode:
        raise Failure(f"{name} MicroPython: {script.name}: {(result.stdout + result.stderr).strip()[-800:]}")
    return result.stdout

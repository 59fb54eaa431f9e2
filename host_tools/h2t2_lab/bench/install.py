"""`h2t2-lab bench install`: the size of the base install, by library here, and in total for each Python of this machine."""

import subprocess
import sys
import tempfile
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from h2t2_tools.common.errors import Failure
from h2t2_tools.common.report import Report

from .. import pythons
from . import Progress, Row, cell, table

TITLE = "The base install"
PROJECT = "h2t2-edge"
EXTRAS = ("litert",), ("convert", "onnx")  # of a Pi's node and worker; of who has a trained model


def measure(progress: Progress) -> dict[str, Any]:
    """Measure the size of the base install. It shows each library, on each Python of this machine.

    Returns:
        {"libraries": rows {name, version, bytes}, largest first, "with": {extras: their bytes and those of the base},
        "pythons": rows {python, bytes, why}}. Where the packages could not be installed, bytes are None and `why` states why.
    """
    libraries = _libraries(progress)
    sizes = {" and ".join(extras): sum(row["bytes"] for row in _libraries(progress, *extras)) for extras in EXTRAS}
    this_python = f"3.{sys.version_info[1]}"
    rows = [{"python": this_python, "bytes": sum(row["bytes"] for row in libraries), "why": None}]
    for python, program in pythons.other_versions().items():
        progress(f"Python {python}")
        try:
            rows.append({"python": python, "bytes": _installed(program), "why": None})
        except Failure as error:
            rows.append({"python": python, "bytes": None, "why": str(error)})
    rows.sort(key=lambda row: int(str(row["python"]).split(".")[1]))
    return {"libraries": libraries, "with": sizes, "pythons": rows}


def _libraries(progress: Progress, *extras: str) -> list[Row]:
    rows: dict[str, Row] = {}
    waiting = [(PROJECT, extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if name.lower() in rows and not extra:
            continue
        progress(name)
        installed = metadata.distribution(name)
        files = [Path(str(file.locate())) for file in installed.files or []] if name != PROJECT else []
        size = sum(path.stat().st_size for path in files if path.is_file() and "__pycache__" not in path.parts)
        rows[name.lower()] = {"name": installed.metadata["Name"], "version": installed.version, "bytes": size}
        for need in _needs(installed, extra):
            waiting += [(need.name, own) for own in ("", *need.extras) if (need.name, own) != (name, extra)]
    del rows[PROJECT]
    return sorted(rows.values(), key=lambda row: -row["bytes"])


def _needs(installed: metadata.Distribution, extra: str) -> list[Requirement]:
    """Return the packages that a package needs here, with those of an extra; "": without any."""
    needs = [Requirement(text) for text in installed.requires or []]
    return [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]


def _installed(program: str) -> int:
    """Install the base's packages for a Python into a folder of their own. Return their bytes without byte code."""
    requirements = [text for text in metadata.distribution(PROJECT).requires or [] if "extra ==" not in text]
    with tempfile.TemporaryDirectory(prefix="h2t2-install-") as name:
        folder = Path(name)
        subprocess.run([program, "-m", "venv", "--without-pip", str(folder / "base")], check=True)
        result = subprocess.run([*_installer(folder), *requirements], capture_output=True, text=True)
        if result.returncode:
            raise Failure(" ".join(result.stderr.split())[-200:])
        site = next((folder / "base").glob("lib/python3.*/site-packages"))
        return sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and not path.is_symlink())


def _installer(folder: Path) -> list[str]:
    """Return the command that installs into folder/base: uv beside this Python, which takes seconds, or pip."""
    python = str(folder / "base/bin/python")
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        return [str(uv), "pip", "install", "-q", "--no-config", "--python", python]
    venv.create(folder / "pip", symlinks=True, with_pip=True)
    return [str(folder / "pip/bin/python"), "-m", "pip", "--python", python, "install", "-q", "--no-compile"]


def report(measured: dict[str, Any]) -> Report:
    """Return a line for each library and their sum, and a line for each Python."""
    rows = [{**row, "size": f"{row['bytes'] / 1e6:.1f}"} for row in measured["libraries"]]
    rows.append({"name": "all of them", "version": "", "size": f"{sum(row['bytes'] for row in rows) / 1e6:.0f}"})
    rows += [{"name": f"with {name}", "version": "", "size": f"{size / 1e6:.0f}"} for name, size in measured["with"].items()]
    title = "libraries of the base install, without byte code; a node and a worker of a .tflite also need `litert`"
    columns = {"library": cell("name"), "version": cell("version"), "MB": cell("size")}
    on_pythons = {"Python": cell("python"), "MB": lambda row: row["why"] or f"{row['bytes'] / 1e6:.0f}"}
    return [
        table(title, rows, columns, words=2),
        table("the base install on every Python of this machine", measured["pythons"], on_pythons),
    ]

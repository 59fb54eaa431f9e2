"""Finds the other Pythons of this machine that the project supports; `python -m h2t2_lab.pythons` prints them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

MINORS = range(10, 15)
PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def other_versions() -> dict[str, str]:
    """Version, such as "3.12", -> program of each supported Python beside this one, from the path or from pyenv."""
    programs = {}
    for minor in MINORS:
        if minor != sys.version_info[1]:
            program = next((p for p in _candidates(f"python3.{minor}") if _version_of(p) == f"3.{minor}"), None)
            if program:
                programs[f"3.{minor}"] = program
    return programs


def _candidates(name: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = shutil.which(name)
    try:
        installed = sorted(root.glob(f"versions/*/bin/{name}"))
    except PermissionError:  # `su` keeps another user's PYENV_ROOT
        installed = []
    return [*([on_path] if on_path else []), *map(str, installed)]


def _version_of(program: str) -> str:
    """The version of a Python; "" for a placeholder of pyenv that runs none, and for a program that this user may not run."""
    try:
        return subprocess.run([program, "-c", PRINT_VERSION], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    for path in other_versions().values():
        print(path)

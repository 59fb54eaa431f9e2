"""Counts the instructions that a script executes on an emulated Raspberry Pi: a plugin of QEMU's, compiled once and kept."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure

from ..emulators.built import PI

SOURCE = Path(__file__).with_name("count_instructions.c")
INTERFACES = range(1, 6)  # versions of QEMU's plugin interface; all have the functions that the plugin calls


def missing() -> str | None:
    """Why nothing can be counted here, or None."""
    if PI.missing():
        return PI.missing()
    qemu = PI.command(Path("script.py"), [])[0]
    if "-plugin" not in subprocess.run([qemu, "-help"], capture_output=True, text=True).stdout:
        return f"this {Path(qemu).name} takes no plugins (Debian 12's does, Debian 13's does not)"
    return None if shutil.which("gcc") else "no gcc; run: sudo apt-get install gcc"


def count(script: Path, timeout: float = 600) -> tuple[int, str]:
    """Run a script on the emulated Pi's CPython, with the runtime to import.

    Returns:
        The number of instructions, start and end of Python included, and what the script printed.

    Raises:
        Failure: the plugin cannot be compiled, or the script ends badly.
    """
    with tempfile.TemporaryDirectory() as folder:
        number = Path(folder) / "instructions"
        qemu, *words = PI.command(script, [])
        environment = {**PI.environment(places.RUNTIME.parent), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        trouble = ""
        for interface in INTERFACES:
            command = [qemu, "-plugin", f"file={_plugin(interface)},out={number}", *words]
            result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
            if number.exists() and result.returncode == 0:
                return int(number.read_text()), result.stdout
            trouble = result.stderr.strip() or trouble
            if "plugin" not in trouble:  # the script's own error
                break
    raise Failure(f"counting instructions with {qemu}: {trouble[-500:]}")


def _plugin(interface: int) -> Path:
    """The plugin, compiled for a version of QEMU's interface."""
    fingerprint = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    path = places.cache() / f"instructions/{fingerprint}-{interface}.so"
    if not path.exists():
        with places.written_whole(path) as partial:
            command = ["gcc", "-shared", "-fPIC", "-O2", f"-DVERSION={interface}", "-o", str(partial), str(SOURCE)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise Failure(f"gcc: {SOURCE.name}: {result.stderr.strip()[-500:]}")
    return path

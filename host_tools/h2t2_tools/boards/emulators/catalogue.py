"""The MicroPython builds that a desktop can run, how to fetch each into the cache folder, and how to start it.

unix: Debian 13's x86-64 `micropython` with its own libraries, or an installed `micropython`. arm32: the armhf one under
qemu-arm, with 32-bit objects. Both come from Debian's next release if the mirror serves no sound index of Debian 13;
arm32-forky always does, for a newer MicroPython. microbit: Debian's firmware on QEMU's nRF51822. wasm: npm's build, in node.
`built` holds those that are built from source.
"""

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from h2t2.cpython.interpreter import python

from ...common.errors import Failure
from ...common.places import cache
from ..kinds import KINDS
from . import built, debian, npm, scripts, terminals
from .lwip import LWIP

# Debian releases of the packages; this machine may run another one
RELEASES, OLDER = ("trixie", "forky"), ("bookworm",)
ARM32_RELEASES = {"arm32": RELEASES, "arm32-forky": RELEASES[1:]}
LIBRARIES = ["libc6", "libffi8", "libmbedcrypto16", "libmbedtls21", "libmbedx509-7", "libgcc-s1"]
FIRMWARE = "firmware-microbit-micropython"
PYTHON = [
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6", "libssl3",
    "zlib1g", "libexpat1", "libffi8", "liblzma5", "libbz2-1.0", "libsqlite3-0", "libuuid1", "libcrypt1", "libgomp1",
]  # fmt: skip
# wheels that `h2t2 node` imports on a Pi, aarch64, Python 3.11. LiteRT 2.2 and newer crash in QEMU 7.2 when a model is opened;
# nobody has tried them on a real Pi
WHEELS = ["numpy>=2,<2.5", "ai-edge-litert>=2.0,<2.2", "paho-mqtt>=2.1", "pydantic>=2.9"]
# MicroPython's unix port reserves one byte of its heap for each OWN_SHARE free ones, and OWN_BYTES at its start
OWN_SHARE, OWN_BYTES = 38, 1024


def microbit_firmware() -> Path:
    """Return the micro:bit's MicroPython 1.9.2 as an Intel HEX file, from the installed package or the cache."""
    installed = Path("/usr/share", FIRMWARE, "firmware.hex")
    return installed if installed.exists() else cache() / "microbit/usr/share" / FIRMWARE / "firmware.hex"


def _interpreter(name: str) -> Path:
    """Where install() puts MicroPython's unix port."""
    return cache() / name / "usr/bin/micropython"


@dataclass(frozen=True)
class Emulator:
    """One build. missing() returns why it cannot run here, or None. install() fetches what needs no root."""

    name: str
    about: str

    def missing(self) -> str | None:
        if self.name == "unix":
            interpreter = shutil.which("micropython") or _interpreter("unix").exists()
            return None if interpreter else "no micropython here; run: h2t2 boards --install"
        program, package, content = _NEEDS[self.name]
        if not shutil.which(program):
            return f"no {program}; run: sudo apt-get install {package}"
        if not content().exists():
            return f"{'no firmware' if self.name == 'microbit' else 'not fetched'}; run: h2t2 boards --install"
        return terminals.absent() if self.name == "microbit" else None

    def install(self) -> None:
        if self.missing():
            target = cache() / self.name
            if self.name == "unix":
                architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
                debian.unpack(RELEASES, architecture, ["micropython", *LIBRARIES], target)
            elif self.name in ARM32_RELEASES:
                debian.unpack(ARM32_RELEASES[self.name], "armhf", ["micropython", *LIBRARIES], target)
            elif self.name == "pi":
                debian.unpack(OLDER, "arm64", PYTHON, target)
                _wheels(target / "site")
            elif self.name == "microbit":
                debian.unpack(OLDER, "amd64", [FIRMWARE], target)
            else:
                npm.unpack(npm.WASM, target)

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        """Return the command that runs a script.

        Args:
            script: The script.
            files: Files that it imports, because the wasm build does not see this machine's files.
            heap: Bytes of heap of the unix port; 0: its default.
        """
        folder = cache() / self.name
        program = str(folder / "usr/bin/micropython")
        limit = ["-X", f"heapsize={heap}"] if heap else []
        if self.name in ARM32_RELEASES:
            return ["qemu-arm", "-L", str(folder), program, *limit, str(script)]
        if self.name == "pi":
            return ["qemu-aarch64", "-L", str(folder), str(folder / "usr/bin/python3.11"), str(script)]
        if self.name == "wasm":
            module = next(folder.glob("package/micropython.mjs"))
            return ["node", str(Path(__file__).parent / "wasm.mjs"), str(module), str(script), *map(str, files)]
        installed = shutil.which("micropython")
        if installed:
            return [installed, *limit, str(script)]
        loader = next(folder.glob("usr/lib*/ld-linux-*"))
        libraries = next(folder.glob("usr/lib/*-linux-gnu"))
        return [str(loader), "--library-path", str(libraries), program, *limit, str(script)]

    def node(self, script: Path, free: int = KINDS["pico_w"].heap) -> list[str]:
        """Return the command that runs a node's main.py on MicroPython's unix port, with the heap of a board.

        Args:
            script: The main.py.
            free: Bytes that are free on the board when main.py begins. The command doubles them for 64-bit objects.
        """
        width = 1 if self.name in ARM32_RELEASES else 2
        return self.command(script, [], width * (free + OWN_BYTES) + free // OWN_SHARE)

    def environment(self, *paths: Path) -> dict[str, str]:
        """Return the environment variables for command(). paths: folders of imports."""
        where = {"MICROPYPATH": scripts.import_path(paths)}
        if self.name == "pi":
            folder = cache() / "pi"
            where = {"PYTHONHOME": str(folder / "usr"), "PYTHONPATH": ":".join(map(str, (folder / "site", *paths)))}
        return {**os.environ, **where}

    def run(self, script: Path, files: list[Path], path: Path, timeout: float = 240, heap: int = 0) -> str:
        """Run a script and return its output.

        Args:
            script: The script.
            files: Files that it imports.
            path: Its MICROPYPATH.
            timeout: Longest run, in seconds.
            heap: As for command().

        Raises:
            Failure: The script failed; the message quotes its output.
        """
        return scripts.output(self.name, script, self.command(script, files, heap), self.environment(path), timeout)


UNIX = Emulator("unix", "MicroPython unix port, 64-bit objects")
ARM32 = Emulator("arm32", "MicroPython unix port for 32-bit ARM, under qemu-arm")
ARM32_NEXT = Emulator("arm32-forky", "the same with MicroPython of forky, 1.26 or newer")
WASM = Emulator("wasm", "MicroPython WebAssembly build in node, 32-bit objects")
MICROBIT = Emulator("microbit", "BBC micro:bit (nRF51822, Cortex-M0, 16 KB RAM) under qemu-system-arm, MicroPython 1.9.2")
PI = Emulator("pi", "64-bit Raspberry Pi OS's CPython 3.11 with the aarch64 wheels, under qemu-aarch64")
FETCHED = [UNIX, ARM32, ARM32_NEXT, WASM, MICROBIT, PI]
EMULATORS: list[Emulator | built.Built] = [*FETCHED, *built.BUILT, LWIP, built.PICO_TLS]


def install(boards: Sequence[Emulator | built.Built], progress: Callable[[str], None]) -> dict[str, str]:
    """Fetch or build the missing boards.

    Args:
        boards: The boards.
        progress: Called with the name of each step.

    Returns:
        For each board that failed, the reason.
    """
    fetched = [board for board in boards if isinstance(board, Emulator)]
    if fetched:
        progress(", ".join(board.name for board in fetched))
    with ThreadPoolExecutor() as pool:  # each waits for a server most of its time
        reasons = pool.map(_fetch, fetched)
    trouble = {board.name: reason for board, reason in zip(fetched, reasons) if reason}
    return trouble | built.install([board for board in boards if isinstance(board, built.Built)], progress)


def _fetch(board: Emulator) -> str:
    """Fetch a board's files. Return why that failed, or ""."""
    try:
        board.install()
    except Failure as error:
        return str(error)
    return ""


# emulator -> the program that runs it, Debian's package of the program, and what install() fetches
_NEEDS: dict[str, tuple[str, str, Callable[[], Path]]] = {
    "wasm": ("node", "nodejs", lambda: cache() / "wasm/package/micropython.mjs"),
    "microbit": ("qemu-system-arm", "qemu-system-arm", microbit_firmware),
    "pi": ("qemu-aarch64", "qemu-user", lambda: cache() / "pi/site/ai_edge_litert"),
    **{name: ("qemu-arm", "qemu-user", partial(_interpreter, name)) for name in ARM32_RELEASES},
}


def _wheels(target: Path) -> None:
    """Unpack the Python packages of a Pi with pip, for its platform."""
    platforms = [word for tag in ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28", "manylinux_2_34")
                 for word in ("--platform", f"{tag}_aarch64")]  # fmt: skip
    command = python("-m", "pip", "install", "-q", "--target", str(target), "--python-version", "3.11", *platforms)
    debian.run([*command, "--implementation", "cp", "--only-binary=:all:", *WHEELS], Path("/"))

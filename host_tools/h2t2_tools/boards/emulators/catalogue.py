"""The emulators that take the place of a board, how to fetch each into the cache folder, and how to start it.

unix: Debian 13's x86-64 `micropython` with its own libraries, or an installed `micropython`. arm32: the armhf one under
qemu-arm, with 32-bit objects. Both come from Debian's next release if the mirror serves no sound index of Debian 13. microbit:
Debian's firmware on QEMU's nRF51822. pico: npm's rp2040js; a release has its firmware, which `h2t2-lab emulators` builds.
"""

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import Failure
from ...common.places import cache
from ..kinds import KINDS
from . import debian, download, npm, scripts, terminals

# Debian releases of the packages; this machine may run another one
DEBIAN_13, DEBIAN_NEXT, OLDER = "trixie", "forky", ("bookworm",)
RELEASES = (DEBIAN_13, DEBIAN_NEXT)
LIBRARIES = ["libc6", "libffi8", "libmbedcrypto16", "libmbedtls21", "libmbedx509-7", "libgcc-s1"]
FIRMWARE = "firmware-microbit-micropython"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian names those of platform.machine()
# MicroPython's unix port reserves one byte of its heap for each OWN_SHARE free ones, and OWN_BYTES at its start
OWN_SHARE, OWN_BYTES = 38, 1024
BUILD = "h2t2-lab emulators"  # builds in a clone


@dataclass(frozen=True)
class Emulator:
    """One emulator.

    Attributes:
        name: Name of the board.
        about: Description for users.
        program: Program that emulates it; "": none.
        package: Debian package of that program.
        installer: The command that installs it, before its name.
    """

    name: str
    about: str
    program: str = ""
    package: str = ""
    installer: str = "h2t2 boards --install"

    def content(self) -> Path:
        """Return the file without which it is not installed."""
        raise NotImplementedError

    def fetch(self) -> None:
        """Fetch what it needs beside its program, without root. Raise Failure if that is not to be had."""

    def missing(self) -> str | None:
        """Return why it cannot run here, with the remedy, or None."""
        if self.program and not shutil.which(self.program):
            return f"no {self.program}; run: sudo apt-get install {self.package}"
        return None if self.content().exists() else f"not installed; run: {self.installer} {self.name}"

    def install(self) -> None:
        """Fetch what is missing."""
        if self.missing():
            self.fetch()


@dataclass(frozen=True)
class Interpreter(Emulator):
    """A process that runs scripts: MicroPython's unix port, for the processor that Debian calls `architecture` ("": ours)."""

    architecture: str = ""
    releases: tuple[str, ...] = RELEASES

    def content(self) -> Path:
        installed = None if self.program else shutil.which("micropython")
        return Path(installed or cache() / self.name / "usr/bin/micropython")

    def fetch(self) -> None:
        architecture = self.architecture or ARCHITECTURES.get(platform.machine(), "")
        debian.unpack(self.releases, architecture, ["micropython", *LIBRARIES], cache() / self.name)

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        """Return the command that runs a script.

        Args:
            script: The script.
            files: Files that it imports, for a build that does not see this machine's files.
            heap: Bytes of heap of the unix port; 0: its default.
        """
        folder, program = cache() / self.name, self.content()
        words = [str(program), *(["-X", f"heapsize={heap}"] if heap else []), str(script)]
        if self.program:
            return [self.program, "-L", str(folder), *words]
        if folder not in program.parents:
            return words
        loader = next(folder.glob("usr/lib*/ld-linux-*"))
        libraries = next(folder.glob("usr/lib/*-linux-gnu"))
        return [str(loader), "--library-path", str(libraries), *words]

    def node(self, script: Path, free: int = KINDS["pico_w"].heap) -> list[str]:
        """Return the command that runs a node's main.py on MicroPython's unix port, with the heap of a board.

        Args:
            script: The main.py.
            free: Bytes that are free on the board when main.py begins. The command doubles them for 64-bit objects.
        """
        width = 1 if self.architecture else 2
        return self.command(script, [], width * (free + OWN_BYTES) + free // OWN_SHARE)

    def environment(self, *paths: Path) -> dict[str, str]:
        """Return the environment variables for command(). paths: folders of imports."""
        return {**os.environ, "MICROPYPATH": scripts.import_path(paths)}

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


class Nrf51(Emulator):
    """The micro:bit's MicroPython 1.9.2 as an Intel HEX file, from the installed package or the cache."""

    def content(self) -> Path:
        installed = Path("/usr/share", FIRMWARE, "firmware.hex")
        return installed if installed.exists() else cache() / self.name / "usr/share" / FIRMWARE / installed.name

    def fetch(self) -> None:
        debian.unpack(OLDER, "amd64", [FIRMWARE], cache() / self.name)

    def missing(self) -> str | None:
        return super().missing() or terminals.absent()


class Rp2040(Emulator):
    """A Pico: rp2040js and a firmware."""

    def content(self) -> Path:
        """Return the path of its firmware."""
        return cache() / self.name / "firmware.bin"

    def fetch(self) -> None:
        if not rp2040js().exists():
            npm.unpack(npm.RP2040JS, rp2040js().parent)
        if not self.content().exists():
            download.of_release(f"{self.name}.bin", self.content(), f"{BUILD} {self.name}")

    def missing(self) -> str | None:
        reason = super().missing()
        if reason is None and not rp2040js().exists():
            return f"no rp2040js; run: {self.installer} {self.name}"
        return reason or terminals.absent()


def rp2040js() -> Path:
    """Return the folder of the RP2040's emulator."""
    return cache() / "rp2040js/package"


QEMU_ARM = "qemu-system-arm"
UNIX = Interpreter("unix", "MicroPython unix port, 64-bit objects")
ARM32 = Interpreter(
    "arm32", "MicroPython unix port for 32-bit ARM, under qemu-arm", "qemu-arm", "qemu-user", architecture="armhf"
)
MICROBIT = Nrf51(
    "microbit", f"BBC micro:bit (nRF51822, Cortex-M0, 16 KB RAM) under {QEMU_ARM}, MicroPython 1.9.2", QEMU_ARM, QEMU_ARM
)
PICO = Rp2040("pico", "Raspberry Pi Pico (RP2040) with its own firmware, MicroPython 1.25, in rp2040js", "node", "nodejs")
EMULATORS: list[Emulator] = [UNIX, ARM32, MICROBIT, PICO]


def install(boards: Sequence[Emulator], progress: Callable[[str], None]) -> dict[str, str]:
    """Fetch the missing boards.

    Args:
        boards: The boards.
        progress: Called with the name of each step.

    Returns:
        For each board that failed, the reason.
    """
    if boards:
        progress(", ".join(board.name for board in boards))
    with ThreadPoolExecutor() as pool:  # each waits for a server most of its time
        reasons = pool.map(_fetch, boards)
    return {board.name: reason for board, reason in zip(boards, reasons) if reason}


def _fetch(board: Emulator) -> str:
    """Fetch a board's files. Return why that failed, or ""."""
    try:
        board.install()
    except Failure as error:
        return str(error)
    return ""

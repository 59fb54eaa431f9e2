"""The emulated boards whose firmware is built here: a Pico, a Cortex-M3, a 32-bit RISC-V."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ...common.places import cache
from . import npm, source, terminals

RP2040JS = "rp2040js@1.4.1"


def rp2040js() -> Path:
    """The folder of the chip's emulator."""
    return cache() / "rp2040js/package"


class Built:
    """One board. `missing()` says why it cannot run here, or None."""

    def __init__(self, name: str, about: str, program: str, package: str) -> None:
        """program: what emulates it, of a Debian package."""
        self.name = name
        self.about = about
        self.program = program
        self.package = package

    def packages(self) -> list[str]:
        """The Debian packages that building its firmware lacks here."""
        return source.packages(self.name)

    def firmware(self) -> Path:
        return source.firmware(self.name)

    def fetch(self, progress: Callable[[str], None]) -> None:
        """Fetch what it runs with, beside its firmware."""

    def missing(self) -> str | None:
        if not shutil.which(self.program):
            return f"no {self.program}; run: sudo apt-get install {self.package}"
        if not self.firmware().exists():
            return source.lacking(self.name) or "not built; run: h2t2 emulators --install"
        if self.program == "node" and not rp2040js().exists():
            return "not fetched; run: h2t2 emulators --install"
        return terminals.absent()


QEMU_ARM, QEMU_RV32 = "qemu-system-arm", "qemu-system-riscv32"
PICO = Built(
    source.PICO, "Raspberry Pi Pico (RP2040) with its own firmware, MicroPython 1.25, in rp2040js", "node", "nodejs npm"
)
CORTEX_M3 = Built(source.CORTEX_M3, f"ARM MPS2 (Cortex-M3) under {QEMU_ARM}, MicroPython 1.25", QEMU_ARM, QEMU_ARM)
RV32 = Built(source.RV32, f"32-bit RISC-V (virt) under {QEMU_RV32}, MicroPython 1.25", QEMU_RV32, "qemu-system-misc")
PICO_TLS = Built(source.PICO_TLS, "the emulated Pico with TLS in its firmware, for h2t2 bench tls", "node", "nodejs npm")
ALL = [PICO, CORTEX_M3, RV32]
STEPS = len(ALL) + 5  # that install() tells of at most, with those of lwip.py


def install(boards: list[Built], progress: Callable[[str], None]) -> None:
    """Fetch and build what is missing of these and can be had here. Failure where that does not succeed."""
    wanted = [board.name for board in boards if not board.firmware().exists() and not source.lacking(board.name)]
    if wanted:
        source.build(wanted, progress)
    for board in boards:
        board.fetch(progress)
    if {PICO, PICO_TLS} & {*boards} and not rp2040js().exists() and shutil.which("npm"):
        progress(RP2040JS)
        npm.unpack(RP2040JS, rp2040js().parent)

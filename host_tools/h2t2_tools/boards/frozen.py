"""The runtime frozen into a MicroPython firmware: its modules, the manifest that freezes them, and what a build needs.

The policies and the kernels in C are compiled into the firmware, as what MicroPython calls a user's C module.

A frozen module stays in flash and takes heap only for its names. One more module, MARK, states which runtime is frozen, so that
`h2t2 flash --frozen` recognises it.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..common import places
from ..common.errors import UserError
from . import native
from .cross import fingerprint, translated
from .kinds import KINDS, STARTERS, Kind, modules

MARK = "h2t2_frozen.py"
IN_C = "native"  # folder of the C files beside the manifest
DIGITS = 16  # of a runtime's digest
PROGRAMS = ("main.py", *STARTERS)
OLDEST_COMPILER = (1, 26)  # release of the first mpy-cross that compiles every kernel for every processor
OTHERS = 'include("$(PORT_DIR)/boards/manifest.py")'
ASYNCIO = 'include("$(MPY_DIR)/extmod/asyncio")'  # Debian's source has no drivers: they are in micropython-lib
PORTS = {"rp2": "rp2", "esp32": "esp32"}  # sys.platform -> MicroPython's port
ARM_TOOLS = ("arm-none-eabi-gcc", "cmake", "make", "python3")
TOOLS = {"rp2": ARM_TOOLS, "esp32": ("idf.py", "cmake", "make", "python3")}
LIBRARIES = {
    "serial": ("pico-sdk", "tinyusb", "micropython-lib"),
    "wifi": ("pico-sdk", "tinyusb", "micropython-lib", "cyw43-driver", "lwip", "mbedtls"),
    "esp32": ("berkeley-db-1.xx", "micropython-lib"),
}
# Machine code of the RP2040 loads constants relative to an address that the processor rounds down to four, but MicroPython's
# tool aligns frozen machine code to two. Every second function would then compute with other numbers.
MPY_TOOL, TWO, FOUR = "tools/mpy-tool.py", "__attribute__ ((aligned (2)))", "__attribute__ ((aligned (4)))"
CLONE = "git clone https://github.com/micropython/micropython"


@dataclass(frozen=True)
class Runtime:
    """A runtime as MARK states it.

    Attributes:
        version: Version of the package.
        digest: First DIGITS hexadecimal digits of the SHA-256 of its sources.
    """

    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.version} ({self.digest})"


def sources(kind: Kind) -> dict[str, bytes]:
    """Return the modules that a kind's firmware freezes, path to source without constants; all but MARK."""
    runtime = {path: translated(path, (places.RUNTIME.parent / path).read_bytes(), kind.arch) for path in modules(kind)}
    own = {name: ((kind.folder if name == "main.py" else places.boards()) / name).read_bytes() for name in PROGRAMS}
    return {**runtime, **own, **dict([native.FROZEN_POLICIES])}


def runtime(kind: Kind) -> Runtime:
    """Return the runtime that this installation freezes for a kind. Firmware with the wrong alignment has another digest."""
    return Runtime(__version__, fingerprint(sources(kind), FOUR.encode())[:DIGITS])


def write(kind: Kind, folder: Path, others: str = OTHERS) -> Path:
    """Write the modules, their manifest and the folder IN_C into a folder, and return the manifest.

    Args:
        kind: Kind of the board.
        folder: A new or empty folder, or one that this function has written before, whose content it replaces.
        others: Line of the manifest that freezes what the firmware usually holds.

    Raises:
        UserError: The folder holds anything else.
    """
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: the folder is not empty; name a new one with --out")
    shutil.rmtree(folder / "h2t2", ignore_errors=True)
    this = runtime(kind)
    files = {**sources(kind), MARK: f"RUNTIME = {this.version!r}, {this.digest!r}\n".encode()}
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(source)
    native.write(folder / IN_C)
    manifest = folder / "manifest.py"
    own = [f'module("{name}")' for name in (*PROGRAMS, MARK)]
    lines = [others, 'package("h2t2")', *own]
    manifest.write_text("\n".join(lines) + "\n")
    return manifest


def pico_digest() -> str:
    """Return the digest of a Pico's firmware: of its runtime, and of what makes C and machine code of it."""
    folder = Path(__file__).parent
    paths = [
        Path(__file__),
        folder / "native.py",
        native.source(),
        *(folder / "c").glob("*"),
        *(folder / "compiler").glob("*.py"),
    ]
    files = {"/".join(path.parts[-2:]): path.read_bytes() for path in paths}
    return fingerprint(files, str(runtime(KINDS["pico"])).encode())[:DIGITS]


def pico_uf2() -> Path:
    """Return the UF2 file of a Pico with this installation's runtime: the newest that a clone built, or where one belongs."""
    folder, digest = places.cache() / "pico-frozen", pico_digest()
    return max(folder.glob(f"{digest}*.uf2"), key=lambda path: path.stat().st_mtime, default=folder / f"{digest}.uf2")


def command(kind: Kind, checkout: Path, manifest: Path) -> list[str]:
    """Return the command that builds a kind's firmware in a checkout of MicroPython."""
    settings = [f"{name}={value}" for name, value in zip(("BOARD", "BOARD_VARIANT"), kind.build)]
    port = checkout / "ports" / PORTS[kind.platform]
    own = manifest.resolve()
    return ["make", "-C", str(port), *settings, f"FROZEN_MANIFEST={own}", f"USER_C_MODULES={own.parent / IN_C}"]


def image(kind: Kind, checkout: Path) -> Path:
    """Return the file that command() writes."""
    folder = checkout / "ports" / PORTS[kind.platform] / f"build-{'-'.join(kind.build)}"
    return folder / ("firmware.uf2" if kind.platform == "rp2" else "firmware.bin")


def align_machine_code(checkout: Path) -> None:
    """Let a checkout's tool align frozen machine code to four bytes."""
    tool = checkout / MPY_TOOL
    tool.write_text(tool.read_text().replace(TWO, FOUR))


def missing(kind: Kind, checkout: Path) -> list[str]:
    """Return what a build in a checkout of MicroPython still needs, each with its remedy.

    Raises:
        UserError: The folder is not a checkout of MicroPython, or it is too old.
    """
    version = _version(checkout)
    if version < OLDEST_COMPILER:
        oldest, theirs = (".".join(map(str, numbers)) for numbers in (OLDEST_COMPILER, version))
        raise UserError(
            f"--micropython {checkout}: this is MicroPython {theirs}; its compiler cannot compile the kernels for every "
            f"processor: take {oldest} or newer"
        )
    name = PORTS[kind.platform]
    port = checkout / "ports" / name
    if not (port / "boards" / kind.build[0]).is_dir():
        raise UserError(f"--micropython {checkout}: it has no board {kind.build[0]}: take a newer release")
    lacking = [f"the program {tool}: {_brings(tool)}" for tool in TOOLS[name] if not shutil.which(tool)]
    libraries = LIBRARIES["esp32" if name == "esp32" else "wifi" if "wifi" in kind.links else "serial"]
    empty = [library for library in libraries if not _has_files(checkout / "lib" / library)]
    if empty:
        variables = " ".join(f"{key}={value}" for key, value in zip(("BOARD", "BOARD_VARIANT"), kind.build))
        lacking.append(f"lib/{', lib/'.join(empty)}: make -C {port} {variables} submodules")
    tool = checkout / MPY_TOOL
    if kind.arch == "armv6m" and tool.is_file() and TWO in tool.read_text():
        lacking.append(f"machine code aligned to four bytes: sed -i 's/aligned (2)/aligned (4)/' {tool}")
    if not (checkout / "mpy-cross/build/mpy-cross").is_file():
        lacking.append(f"its compiler: make -C {checkout / 'mpy-cross'}")
    return lacking


def _version(checkout: Path) -> tuple[int, ...]:
    try:
        header = (checkout / "py/mpconfig.h").read_text()
    except OSError:
        raise UserError(f"--micropython {checkout}: this is no checkout of MicroPython; get one: {CLONE}") from None
    return tuple(int(number) for number in re.findall(r"#define MICROPY_VERSION_(?:MAJOR|MINOR) +(\d+)", header))


def _brings(tool: str) -> str:
    """Return where a program comes from."""
    if tool == "idf.py":
        return "install ESP-IDF and run its export.sh (MicroPython's ports/esp32/README.md names the version)"
    package = "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib" if tool.startswith("arm") else tool
    return f"sudo apt-get install {package}"


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def freezable() -> list[str]:
    """Return the names of the kinds that can have a frozen runtime."""
    return [name for name, kind in KINDS.items() if kind.build]

"""The places that files go to: a folder in which the unix port runs, or a board's file system behind its REPL."""

import ast
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from ..common.errors import Failure, UserError, file_errors
from .emulators.catalogue import UNIX, Interpreter
from .frozen import Runtime
from .repl import RawRepl

# as mpy-cross names them, in MicroPython's order; number 0 has no machine code
ARCHITECTURES = (
    "", "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp", "xtensa", "xtensawin", "rv32imc",
    "rv64imc",
)  # fmt: skip
MPY_FORMAT = (6, 3)  # of mpy-cross 1.23 and newer


@dataclass(frozen=True)
class BoardInfo:
    """What a board reports about itself.

    Attributes:
        platform: Its sys.platform.
        version: MicroPython's version.
        heap, flash: Free bytes; flash is -1 if the board does not know.
        block: Bytes of a block of its file system: a file takes whole ones.
        mpy: Its sys.implementation._mpy, which describes the .mpy files that it loads; 0: none.
        frozen: The runtime in its firmware; None: it has none.
    """

    platform: str
    version: tuple[int, ...]
    heap: int
    flash: int
    mpy: int
    frozen: Runtime | None = None
    block: int = 1

    @property
    def mpy_format(self) -> tuple[int, int]:
        """Version and sub-version of .mpy files. Machine code must match both."""
        return self.mpy & 255, self.mpy >> 8 & 3

    @property
    def arch(self) -> str:
        """mpy-cross's name for its machine code; "" if it runs none, or one that is unknown here."""
        number = self.mpy >> 10 & 15
        return ARCHITECTURES[number] if number < len(ARCHITECTURES) else ""

    @property
    def arch_flags(self) -> int:
        """Optional features of its processor, as MicroPython 1.27 and newer report them. Code without them runs there, too."""
        return self.mpy >> 16

    def report(self) -> dict[str, object]:
        """Return all values by name."""
        return {
            **vars(self), "mpy_format": ".".join(map(str, self.mpy_format)), "arch": self.arch, "arch_flags": self.arch_flags,
            "frozen": None if self.frozen is None else vars(self.frozen),
        }  # fmt: skip


def mpy_number(arch: str) -> int:
    """Return the lower 16 bits of the sys.implementation._mpy that loads our .mpy files with machine code of a processor."""
    return MPY_FORMAT[0] | MPY_FORMAT[1] << 8 | ARCHITECTURES.index(arch) << 10


class Target(Protocol):
    """A board's files. digests() returns the SHA-256 of those paths that exist."""

    def begin(self) -> None: ...
    def info(self) -> BoardInfo: ...
    def digests(self, paths: list[str]) -> dict[str, str]: ...
    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: bytes) -> None: ...
    def replace(self, paths: list[str]) -> None: ...
    def remove(self, paths: list[str]) -> None: ...
    def uncover(self) -> None: ...
    def loses_files(self) -> bool: ...


# An ESP32's radio and Python's heap, which grows, share one memory: the radio takes its part first, as the program lets it.
INFO = """import gc,os,sys
gc.collect()
if sys.platform=='esp32':
 import network
 try:network.WLAN(network.STA_IF)
 except (OSError,RuntimeError):pass
try:
 s=os.statvfs('/')
 s=max(0,s[0]*s[3]),s[0]
except (AttributeError,OSError):
 s=-1,1
n=gc.mem_free()
try:
 from h2t2_frozen import RUNTIME as r
except ImportError:
 r=()
print(repr((sys.platform,tuple(sys.implementation[1])[:3],n,s[0],getattr(sys.implementation,'_mpy',0),r,s[1])))"""
# Removes the runtime's files, which would hide the modules in the firmware. The board first renames their folder, so it has all
# of them or none at any moment.
UNCOVER = """import os
def remove(path):
 for name in os.listdir(path):
  name=path+'/'+name
  if os.stat(name)[0]&0x4000:
   remove(name)
  else:
   os.remove(name)
 os.rmdir(path)
names=os.listdir()
if 'h2t2' in names:
 if 'h2t2.old' in names:
  remove('h2t2.old')
 os.rename('h2t2','h2t2.old')
if 'h2t2.old' in os.listdir():
 remove('h2t2.old')
for name in ('main.py','finish.py','selector.py'):
 if name in names:
  os.remove(name)"""


FINISH = """import os
names=os.listdir()
for name in ('finish.py.new','finish.py'):
 if name in names:
  exec(open(name).read())
  break
else:
 import finish"""
FAT = """import os
open('h2t2.try','w').close()
try:
 os.stat('H2T2.TRY')
 print('FAT')
except OSError:pass
os.remove('h2t2.try')"""
# While the board is checked and files are copied, k() feeds a watchdog, if the node had one. It starts the node again if the
# command is killed. RELEASE ends it, as it would reset a new program without one; an ESP32's cannot be ended and does so once.
LONG_MS = {"rp2": 8388}  # the longest limit of a port; others take OTHERS_MS
OTHERS_MS = 60000
FEEDING = f"""import sys
def k():pass
try:
 import json
 with open('config.json') as f:
  if json.load(f).get('watchdog_ms'):
   from machine import WDT
   k=WDT(timeout={LONG_MS}.get(sys.platform,{OTHERS_MS})).feed
except (OSError,ValueError,ImportError):pass"""
RELEASE = """import sys
if sys.platform=='rp2':
 from machine import mem32
 mem32[0x400db000 if 'RP2350' in sys.implementation._machine else 0x4005b000]=1<<30"""


def parse_info(text: str) -> BoardInfo:
    platform, version, heap, flash, mpy, mark, block = ast.literal_eval(text.strip())
    return BoardInfo(platform, tuple(version), heap, flash, mpy, Runtime(*mark) if mark else None, block)


class Folder:
    """A folder as the unix port's board.

    Raises:
        UserError: The path cannot be a folder.
    """

    def __init__(self, path: Path, interpreter: Interpreter = UNIX) -> None:
        with file_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.interpreter = interpreter

    def begin(self) -> None:
        """The unix port has no watchdog."""

    def info(self) -> BoardInfo:
        reason = self.interpreter.missing()
        if reason:
            raise UserError(f"{self.interpreter.name}: {reason}")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(INFO)
            file.flush()
            info = parse_info(self.interpreter.run(Path(file.name), [], self.path))
        stat = os.statvfs(self.path)
        return BoardInfo(info.platform, info.version, info.heap, stat.f_bavail * stat.f_frsize, info.mpy)

    def digests(self, paths: list[str]) -> dict[str, str]:
        existing = [path for path in paths if (self.path / path).is_file()]
        return {path: hashlib.sha256((self.path / path).read_bytes()).hexdigest() for path in existing}

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(data)

    def replace(self, paths: list[str]) -> None:
        self.write("flash.todo", "\n".join(paths).encode())
        for path in paths:
            (self.path / (path + ".new")).replace(self.path / path)
        (self.path / "flash.todo").unlink()

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            (self.path / path).unlink(missing_ok=True)

    def uncover(self) -> None:
        """Nothing is frozen into the unix port."""

    def loses_files(self) -> bool:
        return False


class Repl:
    """A board behind its REPL. hashes: it has hashlib and folders (MicroPython 1.25); False for a micro:bit."""

    def __init__(self, repl: RawRepl, hashes: bool) -> None:
        self.repl = repl
        self.hashes = hashes

    def begin(self) -> None:
        """Keep the node's watchdog running, fed, from now on."""
        if self.hashes:
            self.repl.run(FEEDING)
            self.repl.each = "k();"

    def info(self) -> BoardInfo:
        return parse_info(self.repl.run(INFO))

    def digests(self, paths: list[str]) -> dict[str, str]:
        if not self.hashes:
            existing = set(self.repl.files())
            return {path: hashlib.sha256(self.repl.read_file(path)).hexdigest() for path in paths if path in existing}
        source = (
            "import hashlib\nfor n in "
            + repr(paths)
            + f":\n {self.repl.each}\n try:\n  h=hashlib.sha256()\n  with open(n,'rb') as f:\n"
            "   while 1:\n    b=f.read(256)\n    if not b:break\n    h.update(b)\n  print(repr((n,h.digest())))\n"
            " except OSError:pass"
        )
        rows = [ast.literal_eval(line) for line in self.repl.run(source, 120).split("\n") if line]
        return {name: digest.hex() for name, digest in rows}

    def read(self, path: str) -> bytes:
        return self.repl.read_file(path)

    def write(self, path: str, data: bytes) -> None:
        for folder in reversed(PurePosixPath(path).parents[:-1]):
            self.repl.run(f"import os\ntry:os.mkdir({str(folder)!r})\nexcept OSError:pass")
        self.repl.write_file(path, data, check=not self.hashes)

    def replace(self, paths: list[str]) -> None:
        self.repl.write_file("flash.todo", "\n".join(paths).encode())
        self.repl.run(f"{self.repl.each}\n{FINISH}")

    def remove(self, paths: list[str]) -> None:
        if not self.hashes:
            for path in {*paths} & {*self.repl.files()}:
                self.repl.remove(path)
            return
        self.repl.run(f"import os\nfor n in {paths!r}:\n {self.repl.each}\n try:os.remove(n)\n except OSError:pass", 120)

    def uncover(self) -> None:
        """Remove the runtime's files, so that the board runs the modules in its firmware."""
        self.repl.run(f"{self.repl.each}\n{UNCOVER}", 120)

    def restart(self) -> None:
        if self.hashes:
            self.repl.run(RELEASE)
        self.repl.reset()

    def loses_files(self) -> bool:
        """Return whether its file system is FAT. FAT ignores case, and a power cut can destroy the old and the new file."""
        return self.hashes and "FAT" in self.repl.run(FAT)


def wait_hello(read: Callable[[], bytes], mark: bytes, seconds: float) -> bytes:
    """Return what a board prints up to `mark`. After `seconds` raise Failure with its last output."""
    end = time.monotonic() + seconds
    received = b""
    while mark not in received:
        if time.monotonic() > end:
            raise Failure(f"the board started but said no hello in {seconds:g} s; its last output: {received[-300:]!r}")
        received += read()
    return received

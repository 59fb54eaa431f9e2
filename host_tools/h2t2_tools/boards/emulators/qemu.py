"""MicroPython on QEMU's boards without a flash of their own: Cortex-M3 and 32-bit RISC-V, 140 KB of heap, no network. Their
files are a read-only file system in memory that the board does not use; the REPL is a pty.

With counting on, every instruction takes the same emulated time, so that the board's own timer counts them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import UserError
from .built import CORTEX_M3, RV32, Built
from .on_qemu import OnQemu

MEM = "from machine import mem32\n"
SHIFT = 10  # -icount: an instruction takes 2^10 ns, many ticks of the timers below


@dataclass(frozen=True)
class Machine:
    """How QEMU is told to be one, and where things lie. arch: mpy-cross's name. ticks: source that defines T(), timer ticks so
    far, rising; tick_ns: nanoseconds of each."""

    board: Built
    options: tuple[str, ...]
    arch: str
    image_at: int
    ticks: str
    tick_ns: int


MACHINES = {
    machine.board.name: machine
    for machine in (
        Machine(
            CORTEX_M3, ("-machine", "mps2-an385", "-semihosting"), "armv7m", 0x21000000,
            MEM + "mem32[0x40000008]=-1\nmem32[0x40000000]=1\ndef T():return ~mem32[0x40000004]&0x3fffffff", 40,
        ),
        Machine(
            RV32, ("-machine", "virt", "-bios", "none", "-semihosting"), "rv32imc", 0x84000000,
            MEM + "def T():return mem32[0x200bff8]&0x3fffffff", 100,
        ),
    )
}  # fmt: skip


class QemuBoard(OnQemu):
    """One emulated board, for as long as the context lasts. Not a real one. `port`: its line, a pty."""

    def __init__(self, name: str, image: bytes = b"", count: bool = False) -> None:
        """image: a ROMFS to mount at /rom. count: let its timer count instructions (slower). UserError where it cannot run."""
        machine = self.machine = MACHINES[name]
        reason = machine.board.missing()
        if reason:
            raise UserError(f"{name}: {reason}")
        self._folder = tempfile.TemporaryDirectory(prefix="h2t2-qemu-")
        command = [machine.board.program, *machine.options, "-kernel", str(machine.board.firmware())]
        if image:
            file = Path(self._folder.name) / "rom"
            file.write_bytes(image)
            command += ["-device", f"loader,file={file},addr={machine.image_at:#x},force-raw=on"]
        if count:
            command += ["-icount", f"shift={SHIFT},align=off,sleep=off"]
        self._size = len(image)
        super().__init__(name, command, pace=False)

    def __enter__(self) -> QemuBoard:
        self.interrupt()
        if self._size:
            where = f"uctypes.bytearray_at({self.machine.image_at},{self._size})"
            self.run(f"import gc,sys,vfs,uctypes\nvfs.mount(vfs.VfsRom({where}),'/rom')\nsys.path.append('/rom')")
        return self

    def kill(self) -> None:
        super().kill()
        self._folder.cleanup()

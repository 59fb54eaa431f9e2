"""The emulated micro:bit with programs for tests and measurements.

With counting on, its clock counts instructions, one every 64 ns of emulated time, so its times are exact.
"""

from __future__ import annotations

from typing import Any

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators import microbit
from h2t2_tools.boards.microbit import microbit_program, packed_layers, page
from h2t2_tools.boards.repl import IN_FLIGHT, cut
from h2t2_tools.common import places

NANOSECONDS = 64  # emulated time of an instruction: -icount shift=6


class Microbit(microbit.Microbit):
    """One emulated board inside the context. count: its clock counts instructions (slower)."""

    def __init__(self, count: bool = False) -> None:
        super().__init__(*(("-icount", "shift=6,align=off,sleep=off") if count else ()))
        self.base = 0

    def __enter__(self) -> Microbit:
        super().__enter__()
        return self

    def prepare(self) -> None:
        """Define names for tests and fill the REPL's buffers. Then measure `base`, the heap that is in use so far."""
        self.run("import gc,micropython,microbit,utime")
        self.run("micropython.opt_level(3)\nL=micropython.heap_lock")
        self.run("U=micropython.heap_unlock\nT=utime.ticks_us\na=t=0")
        self.run("f=open('p','w')\nf.close()\nf=None")
        self.run("#" * (IN_FLIGHT - 1))  # the REPL's buffer stays as long as the longest source so far
        self.base = self.heap()

    def heap(self) -> int:
        """Return the bytes of heap in use."""
        return int(self.run("gc.collect();print(gc.mem_alloc())"))

    def load_policy(self, arguments: dict[str, Any]) -> None:
        """Load H2T2 on one page; `p` is then a policy with these arguments."""
        for piece in microbit_program.pieces(page.SOURCE.read_text()):
            self.execute(piece)
        self.execute(f"p=H2T2({microbit_program.options(arguments)})")

    def load_ldl(self, model: Int8Model) -> None:
        """Load a local model; classify(m, int8 input as bytes) then returns its bin."""
        for piece in microbit_program.pieces((places.boards() / "microbit/ldl.py").read_text()):
            self.execute(piece)
        self.write_file("m", packed_layers.pack_model(model))
        self.run("m=load('m')")

    def execute(self, source: str) -> None:
        """Run source from a file. It may be longer than the REPL's buffer, and its text does not stay on the heap."""
        self.run("f=open('p','wb')")
        for literal in cut(source.encode(), len("f.write()")):
            self._exchange(b"f.write(" + literal + b")")
        self.run("f.close()\nf=None")
        self.run("gc.collect()")
        self.run("exec(open('p').read())")
        self.run("gc.collect()")

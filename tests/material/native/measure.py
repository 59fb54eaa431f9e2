"""What CONV_2D would gain as a native module (.mpy from C), on an emulated Cortex-M3: prints docs/native.md.

pip install pyelftools ar; python tests/material/native/measure.py > docs/native.md

Fetches MicroPython's sources from Debian, needs gcc-arm-none-eabi, and the emulated board (h2t2 emulators --install).
"""

import datetime
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards.emulators import built, drive, source
from h2t2_tools.boards.emulators.qemu import MACHINES, SHIFT
from h2t2_tools.model import bundle
from h2t2_tools.proof.bench.on_boards import products

HERE = Path(__file__).parent
NETWORKS = "resnet_8", "mobilenet_v2", "ds_cnn"  # the small ones of tests/material/networks
MAKEFILE = """MPY_DIR = {tree}
MOD = native_conv
SRC = conv.c
ARCH = armv7m
LINK_RUNTIME = 1
CFLAGS_EXTRA = -O2
include $(MPY_DIR)/py/dynruntime.mk
"""
ON_THE_BOARD = """
import sys
from binascii import crc32
sys.path.append("/rom")
import native_conv
from h2t2.ldl.open import open_ldl
def since(start):
    return T() - start & 0x3FFFFFFF
model = open_ldl(FOLDER + "model.h2m", 0, 4)
for n, (step, p, k) in enumerate(model.steps):
    if len(p) == 22:
        start = T()
        step(model.arena, model.blob, p, k)
        ours, first = since(start), crc32(model.arena)
        start = T()
        native_conv.conv_2d(model.arena, model.blob, p, k[0], k[1], k[2])
        print(n, ours, since(start), first == crc32(model.arena))
"""
PAGE = """# What a native module would bring

An operator in C, as a native module (`.mpy` by MicroPython's natmod), beside our machine code from the viper emitter: CONV_2D
alone, in instructions a multiply-accumulate, counted on an emulated Cortex-M3 with MicroPython 1.25. The same bytes come out.
Written by `tests/material/native/measure.py` on {date}.

| convolutions of | MACs | viper | C, -O2 | times fewer |
|---|--:|--:|--:|--:|
{rows}

The module takes {size} bytes of flash, a processor each (armv6m, armv7m, armv7emsp, rv32imc, xtensawin, x64), and a compiler
for each where it is built; viper's is compiled on the board or by mpy-cross from one source. So it is not built yet: a board
that is too slow by less than these factors has a smaller model, fewer samples a second, or more offloads as its way out.
"""


def native(folder: Path) -> bytes:
    """conv.c as a module for a Cortex-M3."""
    source.Tree(folder, folder).fetch()
    made = folder / "conv"
    made.mkdir()
    shutil.copy(HERE / "conv.c", made)
    (made / "Makefile").write_text(MAKEFILE.format(tree=folder / "mp"))
    command = [
        "make",
        "-s",
        f"PYTHON={sys.executable}",
        "MPY_CROSS=true",
        f"MPY_LD={sys.executable} {folder}/mp/tools/mpy_ld.py",
    ]
    subprocess.run(command, cwd=made, check=True, stdout=sys.stderr)
    return (made / "native_conv.mpy").read_bytes()


def row(name: str, module: bytes) -> str:
    """The table's line of a network."""
    blob = bundle.from_tflite(HERE.parent / f"networks/{name}.tflite")
    files = {"model.h2m": blob, "native_conv.mpy": module}
    said = drive.run(built.CORTEX_M3, ON_THE_BOARD, files, 500, count=True)
    each = MACHINES[built.CORTEX_M3.name].tick_ns / (1 << SHIFT)
    steps, macs, ticks = Int8Model(blob, 0).steps, 0, [0, 0]
    for line in said.splitlines():
        n, ours, theirs, same = line.split()
        assert same == "True", line
        macs += products("conv_2d", steps[int(n)][1])
        ticks = [ticks[0] + int(ours), ticks[1] + int(theirs)]
    viper, c = (number * each / macs for number in ticks)
    return f"| {name} | {macs:,} | {viper:.1f} | {c:.1f} | {viper / c:.1f} |"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        module = native(Path(folder))
    rows = "\n".join(row(name, module) for name in NETWORKS)
    print(PAGE.format(rows=rows, size=len(module), date=datetime.date.today().isoformat()), end="")


if __name__ == "__main__":
    main()

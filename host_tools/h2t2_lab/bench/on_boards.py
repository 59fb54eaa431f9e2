"""Cost of single steps on emulated boards: cycles of an RP2040, instructions of a Cortex-M3 and of a 32-bit RISC-V."""

from typing import Any

from h2t2.ldl.bundle import Int8Model
from h2t2.node.package import SIGNED
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.pico import CLOCK_HZ
from h2t2_tools.common import places
from h2t2_tools.common.report import Table
from h2t2_tools.model.bundle import from_tflite

from .. import material
from ..boards import drive
from ..boards.qemu import MACHINES, SHIFT
from ..emulators import built
from . import Cell, Goal, Progress, Row, table

MODELS = ("digits", "chest_xray")
LABELS = {
    "H2T2": "a step of H2T2, decide and learn, b = 4: mean of the first 40",
    "adaptive": "a step of the adaptive policy, b = 4: mean of the first 40",
    "head": "a step of the adaptive policy with a head of 16 features, b = 4: mean of the first 8",
    "ordered": "a step of the adaptive policy that reads its past, b = 4: mean of the first 40",
    "snapshot": "a snapshot of H2T2, in memory",
    "snapshot_crc": "the checksum of 500 bytes of a snapshot",
    "request": "encoding a request of 64 bytes",
    "sha256": "SHA-256 of 1 KB",
    "crc32": "CRC-32 of 1 KB",
    "package": "verifying an update package: SHA-256, RSA-2048",
}
GOALS = {"H2T2": 60_000, "adaptive": 140_000, "head": 60_000, "ordered": 30_000}  # cycles on the Pico
COMPARED = {"head": " more than without a head", "ordered": " more than without a past"}  # goals of what a step adds


def measure(progress: Progress) -> list[Row]:
    """Return rows {"board", "unit", "what", "count" (cycles or instructions), "macs" (of an operator), "per_mac"}."""
    blobs = {f"{name}.h2m": from_tflite(places.models() / name / "ldl.tflite") for name in MODELS}
    source = f"MODELS = {list(blobs)}\n" + (material.ON_DEVICE / "device_bench.py").read_text()
    signed = _signed()
    rows = []
    for board in built.COUNTING:
        if board.missing() is None:
            progress(board.name)
            lines = [line.split() for line in drive.run(board, source, {**blobs, **signed}, 1200, count=True).splitlines()]
            rows += [_row(board.name, blobs, *line) for line in lines]
    return rows


def _signed() -> dict[str, bytes]:
    """Return the head of a signed package and its key's modulus. They are fixed, because a key's bits change the count."""
    signed, modulus = (material.ON_DEVICE / f"update.{kind}" for kind in ("h2u", "modulus"))
    return {"head.h2u": signed.read_bytes()[:SIGNED], "key.bin": bytes.fromhex(modulus.read_text())}


def _row(board: str, blobs: dict[str, bytes], key: str, number: str, ticks: str) -> Row:
    pico = board == catalogue.PICO.name
    each = CLOCK_HZ // 1_000_000 if pico else MACHINES[board].tick_ns / (1 << SHIFT)
    row = {"board": board, "unit": "cycles" if pico else "instructions", "macs": None, "per_mac": None}
    if key not in blobs:
        return {**row, "what": LABELS[key], "count": int(ticks) * each / int(number)}
    step, p, _ = Int8Model(blobs[key], 0).steps[int(number)]
    kernel = step.__name__
    macs, count = products(kernel, p), int(ticks) * each
    name = f"{key.removesuffix('.h2m')}: {int(number) + 1}. {kernel}"
    return {**row, "what": name, "count": count, "macs": macs, "per_mac": count / macs if macs else None}


def products(kernel: str, p: Any) -> int:
    """Return the multiply-accumulates of a step, including those on padding; 0 for other kernels. p: as in kernels.py."""
    if kernel == "fully_connected":
        return int(p[7] * p[8])
    if kernel == "conv_2d":
        return int(p[9] * p[10] * p[11] * p[12] * p[13] * p[14])
    if kernel == "depthwise_conv_2d":
        return int(p[10] * p[11] * p[12] * p[13] * p[14])
    return 0


def report(rows: list[Row]) -> Table:
    """Return a table with a line for each step and a column for each board."""
    boards = list(dict.fromkeys((row["board"], row["unit"]) for row in rows))
    counts: dict[str, Row] = {}
    for row in rows:
        counts.setdefault(row["what"], {"what": row["what"]})[row["board"]] = row
    columns: dict[str, Cell] = {"what": lambda row: str(row["what"])}
    columns |= {f"{board}, {unit}": _count_on(board) for board, unit in boards}
    return table("One step on emulated boards, MicroPython 1.25, models in machine code", counts.values(), columns)


def goals(rows: list[Row]) -> list[Goal]:
    """Return each of GOALS that was measured."""
    counts = {row["what"]: row["count"] for row in rows if row["board"] == catalogue.PICO.name}
    judged = []
    for name, limit in GOALS.items():
        what = LABELS[name]
        if what in counts:
            count = counts[what] - (counts[LABELS["adaptive"]] if name in COMPARED else 0)
            judged.append(Goal(f"on the Pico for {what}", count, limit, f"cycles{COMPARED.get(name, '')}"))
    return judged


def _count_on(board: str) -> Cell:
    def count(row: Row) -> str:
        if board not in row:
            return "-"
        per_mac = row[board]["per_mac"]
        return f"{row[board]['count']:,.0f}" + (f" ({per_mac:.1f} a MAC)" if per_mac else "")

    return count

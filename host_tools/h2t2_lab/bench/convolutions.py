"""Cycles of convolutions on an emulated RP2040, by the viper emitter and by the native module, and the goals for them.

Each convolution of a network is measured with fewer rows and columns, and fewer channels. A network's average weighs these
counts by the products of the whole layers.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from h2t2.core.numbers import Rng
from h2t2.ldl.bounds import CONVOLUTIONS
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.steps import NAMES
from h2t2_tools.boards import native
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.pico import CLOCK_HZ
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.common.report import Table
from h2t2_tools.model.bundle import from_tflite

from .. import material
from ..boards import drive
from ..emulators import built
from ..networks import SAME, Builder, ds_cnn, mobilenet_v1, resnet_8
from . import Progress, Row, cell, table

NETWORKS = {
    "person_detect": lambda: mobilenet_v1(depth=1),
    "MLPerf keyword spotting": ds_cnn,
    "ResNet-8": resnet_8,
}
WAYS = ("viper", "native")
PER_NETWORK = {"viper": 28.0, "native": 20.2}  # 1.4 times the 14.4 cycles of CMSIS-NN on the same chip
DEPTHWISE, FIRST = "a depthwise convolution, at most", "a first convolution of one channel, at most"
PER_KIND = {DEPTHWISE: 45.0, FIRST: 60.0}
MOST_ROWS, MOST_COLUMNS, MOST_CHANNELS = 4, 12, 32  # of an excerpt's output
MOST_DEPTH = 128  # of one that is depthwise
MOST_PRODUCTS = 60000  # of an excerpt; it has 2 rows and columns at least


@dataclass(frozen=True)
class Layer:
    """A convolution: its output's rows, columns and channels, its input's channels (depth), kernel and stride."""

    depthwise: bool
    rows: int
    columns: int
    depth: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    channels: int

    @property
    def products(self) -> int:
        """Multiply-accumulates, including those on padding."""
        each = self.rows * self.columns * self.kernel[0] * self.kernel[1] * self.channels
        return each if self.depthwise else each * self.depth

    def excerpt(self) -> Layer:
        """The layer that is measured in its place."""
        depth = min(self.depth, MOST_DEPTH) if self.depthwise else self.depth
        channels = depth if self.depthwise else min(self.channels, MOST_CHANNELS)
        rows, columns = min(self.rows, MOST_ROWS), min(self.columns, MOST_COLUMNS)
        small = Layer(self.depthwise, rows, columns, depth, self.kernel, self.stride, channels)
        while small.products > MOST_PRODUCTS and min(small.rows, small.columns) > 2:
            small = replace(small, rows=max(2, small.rows // 2), columns=max(2, small.columns // 2))
        return small

    def bundle(self) -> bytes:
        """A model of this layer alone, with random weights."""
        make = Builder(1, (self.rows * self.stride[0], self.columns * self.stride[1], self.depth))
        channels = 1 if self.depthwise else self.channels
        options: dict[str, Any] = {"kernel": self.kernel, "stride": self.stride, "channels": channels, "padding": SAME}
        return bundle_of(make.bytes(make.convolution(make.first, self.depthwise, fused=1, dilation=(1, 1), **options)))


def bundle_of(content: bytes) -> bytes:
    """Return the bundle of a .tflite."""
    with tempfile.TemporaryDirectory(prefix="h2t2-bench-") as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        return from_tflite(path)


def layers(network: str) -> list[Layer]:
    """Return the convolutions of a network, in their order."""
    steps = Int8Model(bundle_of(NETWORKS[network]()), 0).steps
    windows = [(step.__name__ == "depthwise_conv_2d", p) for step, p, _ in steps if step.__name__ in CONVOLUTIONS]
    return [Layer(deep, p[10], p[11], p[9], (p[13], p[14]), (p[15], p[16]), p[12]) for deep, p in windows]


def measure(progress: Progress) -> list[Row]:
    """Measure the convolutions of all networks in every way that is possible here.

    Returns:
        Rows {"network", "depthwise", "first" (of one channel), "products", "viper", "native"} for each layer: cycles per
        multiply-accumulate, None for a way that is not there; and "same": whether all outputs are the plain kernels'. No row
        where the emulated Pico cannot run.
    """
    if catalogue.PICO not in built.COUNTING or catalogue.PICO.missing():
        return []
    networks = {name: layers(name) for name in NETWORKS}
    excerpts = dict.fromkeys(layer.excerpt() for own in networks.values() for layer in own)
    blobs = {layer: layer.bundle() for layer in excerpts}
    expected = {layer: arena_crc(blob) for layer, blob in blobs.items()}
    progress("convolutions")
    counts = run(blobs, native.content(KINDS["pico"].arch))
    rows = []
    for name, own in networks.items():
        for layer in own:
            measured = layer.excerpt()
            rows.append(
                {
                    "network": name,
                    "depthwise": layer.depthwise,
                    "first": layer is own[0] and layer.depth == 1,
                    "products": layer.products,
                    "same": all(count[measured][1] == expected[measured] for count in counts.values()),
                    **{way: counts[way][measured][0] if way in counts else None for way in WAYS},
                }
            )
    return rows


def run(blobs: dict[Layer, bytes], module: bytes | None) -> dict[str, dict[Layer, tuple[float, int]]]:
    """Return (cycles per multiply-accumulate, CRC-32 of the arena) of each layer on the emulated Pico, for each way."""
    names = {f"{n}.h2m": layer for n, layer in enumerate(blobs)}
    codes = [(name, NAMES.split().index(CONVOLUTIONS[layer.depthwise])) for name, layer in names.items()]
    source = f"MODELS = {codes}\n" + (material.ON_DEVICE / "convolutions_bench.py").read_text()
    files = {name: blobs[layer] for name, layer in names.items()} | ({native.MODULE: module} if module else {})
    counts: dict[str, dict[Layer, tuple[float, int]]] = {}
    for line in drive.run(catalogue.PICO, source, files, 1200, count=True).splitlines():
        way, name, us, crc = line.split()
        cycles = int(us) * CLOCK_HZ // 1_000_000
        counts.setdefault(way, {})[names[name]] = cycles / names[name].products, int(crc)
    return counts


def arena_crc(blob: bytes) -> int:
    """Return the CRC-32 of the arena after the plain kernels have run on a random arena, as convolutions_bench.py makes it."""
    model, rng = Int8Model(blob, 0), Rng(9)
    model.arena[:] = bytes([rng.draw() >> 7 for _ in range(len(model.arena))])
    for step, p, k in model.steps:
        step(model.arena, model.blob, p, k)
    return crc32(model.arena)


def goals(rows: list[Row]) -> list[Row]:
    """Return rows {"what", "viper", "native", "viper_goal", "native_goal"} for the networks' averages and kinds of layers."""
    goal_rows = []
    for name in dict.fromkeys(row["network"] for row in rows):
        own = [row for row in rows if row["network"] == name]
        goal_rows.append({"what": f"{name}, average", **{way: _average(own, way) for way in WAYS}})
        goal_rows[-1] |= {f"{way}_goal": goal for way, goal in PER_NETWORK.items()}
    for label, key in ((DEPTHWISE, "depthwise"), (FIRST, "first")):
        own = [row for row in rows if row[key]]
        goal_rows.append({"what": label, **{way: max(_counts(own, way), default=None) for way in WAYS}})
        goal_rows[-1] |= {f"{way}_goal": PER_KIND[label] for way in WAYS}
    return goal_rows


def _counts(rows: list[Row], way: str) -> list[float]:
    return [row[way] for row in rows if row[way] is not None]


def _average(rows: list[Row], way: str) -> float | None:
    weights = [row["products"] for row in rows]
    return float(np.average(_counts(rows, way), weights=weights)) if _counts(rows, way) else None


def report(rows: list[Row]) -> Table:
    """Return a table of the goals; a chip with the native module needs no viper."""

    def verdict(row: Row) -> str:
        way = "viper" if row["native"] is None else "native"
        return f"{'met' if row[way] <= row[f'{way}_goal'] else 'MISSED'} by {way}"

    columns = {
        "convolutions, cycles a MAC": cell("what"),
        "viper": cell("viper", ".1f"),
        "goal": cell("viper_goal"),
        "native module": cell("native", ".1f"),
        "goal ": cell("native_goal"),
        "the goal is": verdict,
    }
    return table("Convolutions on an emulated RP2040, an excerpt of each layer", goals(rows), columns)


def broken(rows: list[Row]) -> list[str]:
    """Return a sentence for each goal that the best way misses, and for outputs that differ; none without rows."""
    if not rows:
        return []
    missed = []
    if not all(row["same"] for row in rows):
        missed.append("convolutions: outputs on the emulated RP2040 differ from the plain kernels'")
    for row in goals(rows):
        way = "viper" if row["native"] is None else "native"
        if row[way] > row[f"{way}_goal"]:
            remedy = "" if way == "native" else "; the native module meets it: make native"
            missed.append(f"{row['what']}: {row[way]:.1f} cycles a MAC by {way}, goal {row[f'{way}_goal']}{remedy}")
    return missed

"""`h2t2-lab bench operators`: cycles of each operator on an emulated RP2040, a table for `h2t2 inspect --board`.

Small networks with random weights give the table. The shipped models, which it has not seen, show how well it predicts.
"""

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.boards import native
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.boards.emulators.pico import CLOCK_HZ
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.common import places
from h2t2_tools.common.errors import Failure
from h2t2_tools.common.report import Report
from h2t2_tools.model import cycles
from h2t2_tools.model.bundle import from_tflite
from h2t2_tools.model.convert.from_scikit import from_object
from h2t2_tools.model.convert.from_tflite import quantise
from h2t2_tools.model.operators.recurrent import TANH
from h2t2_tools.model.tflite import Graph, Operator, Tensor
from h2t2_tools.model.tflite_write import write

from .. import material
from ..boards import drive
from ..networks import NONE, RELU, SAME, VALID, Builder
from . import Progress, Row, cell, convolutions, table

TITLE = "Cycles of each operator"
SHIPPED = ("breast_cancer", "phishing", "digits", "ten_digits", "chest_xray")
TOLERANCE = 0.15
LEAST_CYCLES = 250  # of a sample: two ticks of the clock
OF_THE_MODULE = ("fully_connected", "conv_2d", "depthwise_conv_2d")  # operators that the native module has
_SIZES = np.loadtxt(material.PACKAGE / "bench/layers.csv", int, delimiter=",", skiprows=1).tolist()
LAYERS = [
    convolutions.Layer(bool(depthwise), rows, columns, depth, (high, wide), (down, right), channels)
    for depthwise, rows, columns, depth, high, wide, down, right, channels in _SIZES
]
DENSE = ((5, 1), (30, 1), (20, 10), (64, 12), (40, 24))  # inputs and outputs
IMAGES = ((6, 6, 4), (8, 10, 8), (12, 12, 3))
SEQUENCES = ((4, 3, 4), (8, 6, 8), (16, 4, 12))  # steps, numbers of each, cells
FORESTS = ((1, 3), (5, 5), (12, 4), (3, 6))  # trees and their depth


def measure(progress: Progress, out: Path | None = None) -> dict[str, list[Row]]:
    """Count cycles of each operator on an emulated Pico. They become the table from which h2t2 inspect --board predicts, and
    the shipped models show how well it does.

    Args:
        out: the file that gets the table; default: nothing is written

    Examples:
        h2t2-lab bench operators --out host_tools/h2t2_tools/model/cycles.json

    Returns:
        {"terms": rows {"operator", "way", "terms" (cycles by name), "samples", "farthest"}, "models": rows of compare()}.
        farthest: the largest relative distance of a sample from its fit.

    Raises:
        Failure: The emulated Pico cannot run here.
    """
    if reason := catalogue.PICO.missing():
        raise Failure(f"bench operators needs the emulated Pico: {reason}")
    content: dict[str, Any] = {"clock_hz": CLOCK_HZ, "measured": datetime.date.today().isoformat()}
    networks, models = small_networks(), shipped()
    terms, judged = [], []
    for way in cycles.WAYS:
        content[way] = {}
        if way == "native" and not native.content(KINDS["pico"].arch):
            continue
        progress(way)
        samples = run(networks | models, way)
        fitted = fit([sample for sample in samples if sample["model"] in networks], way)
        if way == "native":  # the other operators are the same
            fitted = [row for row in fitted if row["operator"] in OF_THE_MODULE]
        content[way] = {row["operator"]: row["terms"] for row in fitted}
        terms += fitted
        judged += compare(content, way, models, samples)
    if out:
        out.write_text(json.dumps(content, indent=1) + "\n")
    return {"terms": terms, "models": judged}


def shipped(names: Sequence[str] = SHIPPED) -> dict[str, tuple[bytes, bool]]:
    """Return the bundles of shipped models, of which whole inferences are measured."""
    return {name: (from_tflite(places.models() / name / "ldl.tflite"), True) for name in names}


def compare(content: dict[str, Any], way: str, models: dict[str, tuple[bytes, bool]], samples: list[Row]) -> list[Row]:
    """Compare a table's predictions with what was measured.

    Args:
        content: A table as in cycles.json.
        way: One of cycles.WAYS.
        models: Bundles as shipped() returns them.
        samples: What run() returned for them, and perhaps for others.

    Returns:
        Rows {"model", "way", "measured", "predicted"}: cycles of a whole inference.
    """
    rows = []
    for name, (blob, _) in models.items():
        measured = sum(sample["cycles"] for sample in samples if sample["model"] == name)
        predicted = sum(row["cycles"] for row in cycles.predict(Int8Model(blob, 0), way, content))
        rows.append({"model": name, "way": way, "measured": measured, "predicted": predicted})
    return rows


def fit(samples: list[Row], way: str) -> list[Row]:
    """Fit the terms of each operator to samples of run(): least squares of the relative distances, no term below 0.

    Returns:
        Rows {"operator", "way", "terms", "samples", "farthest"}.
    """
    from sklearn.linear_model import LinearRegression

    rows = []
    for operator in dict.fromkeys(sample["operator"] for sample in samples):
        own = [sample for sample in samples if sample["operator"] == operator and sample["amounts"]]
        own = [sample for sample in own if sample["cycles"] > LEAST_CYCLES]
        if not own:
            continue
        names = list(own[0]["amounts"])
        spent = np.array([sample["cycles"] for sample in own])
        counts = np.array([[sample["amounts"][name] for name in names] for sample in own], float) / spent[:, None]
        weights = np.maximum(counts.max(0), 1e-12)  # of like size, for the solver
        solver = LinearRegression(positive=True, fit_intercept=False).fit(counts / weights, np.ones(len(own)))
        terms = solver.coef_ / weights
        farthest = float(np.abs(counts @ terms - 1).max())
        rounded = {name: round(float(term), 2) for name, term in zip(names, terms)}
        rows.append({"operator": operator, "way": way, "terms": rounded, "samples": len(own), "farthest": farthest})
    return rows


def small_networks() -> dict[str, tuple[bytes, bool]]:
    """Return the bundles that are measured for the table, and whether whole inferences of each are."""
    contents = [_dense(*sizes, n) for n, sizes in enumerate(DENSE)] + [_image(shape, n) for n, shape in enumerate(IMAGES)]
    bundles = [(layer.bundle(), False) for layer in LAYERS] + [(convolutions.bundle_of(content), True) for content in contents]
    bundles += [(_forest(*sizes), False) for sizes in FORESTS]
    bundles += [(_recurrent(*sizes), False) for sizes in SEQUENCES]
    bundles += [(_attending(*sizes), False) for sizes in SEQUENCES]
    return {f"small{n}": bundle for n, bundle in enumerate(bundles)}


def _dense(inputs: int, outputs: int, seed: int) -> bytes:
    """A dense layer, and behind it softmax or for one output the sigmoid's table."""
    make = Builder(seed, (inputs,))
    return make.bytes(make.scored(make.dense(make.first, outputs), "SOFTMAX" if outputs > 1 else "LOGISTIC"))


def _image(shape: tuple[int, int, int], seed: int) -> bytes:
    """One of each operator on a picture."""
    make = Builder(seed, shape)
    options: dict[str, Any] = {"kernel": (1, 1), "stride": (1, 1), "channels": shape[2], "padding": SAME, "dilation": (1, 1)}
    x, y = (make.convolution(make.first, fused=fused, **options) for fused in (RELU, NONE))
    x = make.operator("ADD", (x, y), make.tensor(make.shape(x), 2 * max(make.scale(x), make.scale(y)), 0), fused=NONE)
    y = make.operator("QUANTIZE", (x,), make.tensor(make.shape(x), make.scale(x) * 1.5, 3))
    z = make.operator("TANH", (y,), make.tensor(make.shape(x), 1 / 128, 0))
    y = make.operator("QUANTIZE", (y,), make.tensor(make.shape(x), 1 / 128, 0))
    _, height, width, depth = make.shape(x)
    x = make.operator("CONCATENATION", (y, z), make.tensor((1, height, width, 2 * depth), 1 / 128, 0), axis=3, fused=NONE)
    amount = make.tensor((4, 2), None, 0, np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32), "int32")
    x = make.operator("PAD", (x, amount), make.tensor((1, height + 2, width + 2, 2 * depth), 1 / 128, 0))
    for name, size in (("AVERAGE_POOL_2D", 2), ("MAX_POOL_2D", 2)):
        _, height, width, depth = make.shape(x)
        y = make.tensor((1, height // size, width // size, depth), 1 / 128, 0)
        window = {"stride_w": size, "stride_h": size, "filter_w": size, "filter_h": size}
        x = make.operator(name, (x,), y, padding=VALID, fused=NONE, **window)
    return make.bytes(make.scored(make.dense(make.mean(x), 4), "SOFTMAX"))


def _recurrent(times: int, inputs: int, cells: int) -> bytes:
    """An LSTM of random weights over random sequences."""
    rng = np.random.default_rng(times)
    sizes = [(1, times, inputs), *[(cells, inputs)] * 4, *[(cells, cells)] * 4, *[(cells,)] * 4, *[(1, cells)] * 2]
    tensors = []
    for n, shape in enumerate([*sizes, (1, times, cells)]):
        data = rng.normal(0, 0.5, shape).astype(np.float32) if 0 < n < 13 else None
        tensors.append(Tensor(n, f"t{n}", shape, "float32", data, variable=n in (13, 14)))
    order = (*range(9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1)
    layer = Operator("UNIDIRECTIONAL_SEQUENCE_LSTM", 1, order, (15,), {"fused": TANH, "cell_clip": 0.0, "time_major": False})
    content = write(Graph("lstm", 0, tuple(tensors), (layer,), (0,), (15,)))
    samples = rng.normal(0, 1, (30, times, inputs)).astype(np.float32)
    return convolutions.bundle_of(quantise(content, samples, Path("lstm.tflite")))


def _attending(times: int, width: int, depth: int) -> bytes:
    """A product of a picture's rows with their columns, turned around, and its numbers in another order."""
    make = Builder(times, (times, width * depth))
    scale, zero = make.tensors[make.first].quantisation
    axes = make.tensor((3,), None, 0, np.array([0, 2, 1], np.int32), "int32")
    turned = make.operator("TRANSPOSE", (make.first, axes), make.tensor((1, width * depth, times), scale, zero))
    product = make.tensor((1, times, times), scale * scale * 400, 0)
    return convolutions.bundle_of(
        make.bytes(make.operator("BATCH_MATMUL", (make.first, turned), product, adjoint_x=0, adjoint_y=0))
    )


def _forest(trees: int, depth: int) -> bytes:
    """Random trees of random data."""
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(trees)
    x = rng.normal(0, 1, (400, 8))
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(x, x[:, 0] + rng.normal(0, 1, 400) > 0)
    source = from_object(forest)
    return convolutions.bundle_of(source.quantise(source.prepared(x)))


def run(bundles: dict[str, tuple[bytes, bool]], way: str) -> list[Row]:
    """Run bundles on the emulated Pico.

    Args:
        bundles: Name to the bundle, and whether whole inferences are measured.
        way: One of cycles.WAYS.

    Returns:
        Rows {"model", "operator", "amounts", "cycles"} of each step; of cycles.RUN, what an inference takes beside its steps.
    """
    models = {name: Int8Model(blob, 0) for name, (blob, _) in bundles.items()}
    listed = [(name, len(blob), with_inference) for name, (blob, with_inference) in bundles.items()]
    source = f"MODELS = {listed}\n" + (material.ON_DEVICE / "operators_bench.py").read_text()
    files = {"models.bin": b"".join(blob for blob, _ in bundles.values())}
    module = native.content(KINDS["pico"].arch) if way == "native" else None
    rows: list[Row] = []
    for line in drive.run(
        catalogue.PICO, source, files | ({native.MODULE: module} if module else {}), 3000, count=True
    ).splitlines():
        name, label, us, repeats = line.split()
        spent = int(us) * CLOCK_HZ / 1_000_000 / int(repeats)
        if label == cycles.RUN:
            kernel, counts = cycles.RUN, cycles.beside(models[name])
            spent -= sum(row["cycles"] for row in rows if row["model"] == name)
        else:
            step, p, _ = models[name].steps[int(label)]
            kernel, counts = step.__name__, cycles.amounts(step.__name__, p)
        rows.append({"model": name, "operator": kernel, "amounts": counts, "cycles": max(1.0, spent)})
    return rows


def report(measured: dict[str, list[Row]]) -> Report:
    """Return the table of terms, and of each shipped model the measured and the predicted cycles."""
    terms = {
        "operator": cell("operator"),
        "way": cell("way"),
        "cycles": lambda row: cycles.in_words(row["terms"]),
        "samples": cell("samples"),
        "farthest": cell("farthest", ".0%"),
    }
    models = {
        "model": cell("model"),
        "way": cell("way"),
        "cycles": cell("measured", ",.0f"),
        "predicted": cell("predicted", ",.0f"),
        "difference": lambda row: f"{row['predicted'] / row['measured'] - 1:+.1%}",
    }
    return [
        table("Cycles on an emulated RP2040", measured["terms"], terms, words=3),
        table("One inference of a shipped model, which the table has not seen", measured["models"], models, words=2),
    ]


def broken(measured: dict[str, list[Row]]) -> list[str]:
    """Return a sentence for each shipped model whose prediction is farther off than TOLERANCE."""
    return [
        f"{row['model']}, {row['way']}: predicted {row['predicted']:,.0f} cycles, measured {row['measured']:,.0f}"
        for row in measured["models"]
        if abs(row["predicted"] / row["measured"] - 1) > TOLERANCE
    ]

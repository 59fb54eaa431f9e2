"""An ONNX network as a source: translated, compared with onnxruntime, then quantised like a float .tflite."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ....common import places, toml_file
from ....common.errors import UserError
from ....fleet.rdl import models
from ...tflite_write import write
from ..from_tflite import from_bytes
from ..trained_model import Source
from . import elementwise, layers, lstm_gru, normalisations, shapes
from .network import Network, Node, read
from .translation import Translation

TRANSLATORS: dict[str, Callable[[Node, Translation], None]] = {
    "Conv": layers.convolution,
    "ConvTranspose": layers.transposed_convolution,
    "Gemm": layers.gemm,
    "MatMul": layers.matmul,
    **dict.fromkeys(("MaxPool", "AveragePool"), layers.pool),
    "BatchNormalization": elementwise.batch_normalisation,
    **dict.fromkeys(elementwise.FUNCTIONS, elementwise.function),
    **dict.fromkeys(elementwise.ARITHMETIC, elementwise.arithmetic),
    "Div": elementwise.divide,
    "Pow": elementwise.power,
    "LayerNormalization": normalisations.layer_normalisation,
    "InstanceNormalization": normalisations.instance_normalisation,
    **dict.fromkeys(("LSTM", "GRU"), lstm_gru.recurrent),
    "Slice": shapes.slice_part,
    "Split": shapes.split,
    "Gather": shapes.gather,
    "GatherND": shapes.gather_nd,
    "Relu": elementwise.relu,
    "Clip": elementwise.clip,
    "PRelu": elementwise.prelu,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), shapes.reshape),
    "Transpose": shapes.transpose,
    "Concat": shapes.concatenate,
    "Pad": shapes.pad,
    **dict.fromkeys(("Resize", "Upsample"), shapes.resize),
    **dict.fromkeys(shapes.REDUCTIONS, shapes.reduced),
    **dict.fromkeys(("Softmax", "LogSoftmax"), shapes.softmax),
    **dict.fromkeys(("Identity", "Dropout"), shapes.same),
}
REMEDIES = toml_file.by_name(places.PACKAGE / "model/convert/from_onnx/remedies.toml")
TOLERANCE = 1e-5  # of the largest output
TRIALS = 8  # random samples for the comparison


def onnx_file(path: Path) -> Source:
    """The source of an .onnx file. Its samples have the shape of the network's input, channels first.

    Raises: UserError for a file that cannot be read, for a node without a translation (with its name and what to export
    instead), or for a translation that computes other numbers than onnxruntime.
    """
    network = read(path)
    content = translated(network)
    source = from_bytes("ONNX", path, content, path.stat().st_size)
    _compare(network, source)
    return replace(source, shape=network.shapes[network.input][1:])


def translated(network: Network) -> bytes:
    """The float .tflite of a network."""
    into = Translation(network)
    for node in network.nodes:
        translator = TRANSLATORS.get(node.kind)
        if translator is None:
            raise node.refuse(
                "has no translation", REMEDIES.get(node.kind, "; ".join(("supported", ", ".join(sorted(TRANSLATORS)))))
            )
        translator(node, into)
    return write(into.graph())


def _compare(network: Network, source: Source) -> None:
    """UserError if the translation's outputs differ from onnxruntime's on random samples."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((TRIALS, *network.shapes[network.input][1:])).astype(np.float32)
    model = models.load(models.Source(str(network.path), event=None))
    expected = np.concatenate([model.scores(row[None]) for row in x]).astype(float)
    difference = float(np.abs(source.scores(x) - expected).max())
    if difference > TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise UserError(
            f"{network.path}: its .tflite differs from onnxruntime by {difference:.3g}: a defect of h2t2, please report it"
        )

"""Features for a head on the device: the input of a local model's last layer, whitened, as a second output of the model."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...common.errors import UserError
from .. import tflite
from ..exact import ExactModel
from ..pick import needed_operators
from ..plan import WEIGHTED, features_tensor, plan
from ..tflite import Graph, Tensor
from ..tflite_edit import with_ends, with_features
from .int8_model import PairModel
from .labelled_samples import PairSamples

STEP = 1 / 32  # of a feature
LEAST_VARIANCE = 1e-6  # of a direction, as a share of the largest one's


@dataclass(frozen=True)
class Features:
    """Features to add to a model.

    Attributes:
        number: Features at most, 1..MODEL_FEATURES.
        tensor: Name of the tensor that they are made of; None: the input of the last layer with weights.
    """

    number: int
    tensor: str | None = None


def pair_features(path: Path, local: PairModel, samples: PairSamples, features: Features | None, name: str) -> int:
    """Give features to the local model of a pair.

    Args:
        path: Its .tflite, which is written anew.
        local: The model.
        samples: With the numbers that it reads; those that calibrate it make the features.
        features: How many, and what of; None: the model keeps those that it came with.
        name: What messages call the model.

    Returns:
        The number of features that it has.
    """
    if features is None:
        graph = tflite.load(path)
        tensor = features_tensor(graph)
        return graph.tensors[tensor].size if tensor >= 0 else 0
    return add_features(path, local.input.quantise(samples.fit), features, name)


def add_features(path: Path, inputs: np.ndarray, features: Features, name: str) -> int:
    """Add features to an int8 .tflite, which is written anew: one FULLY_CONNECTED on a tensor that the model computes.

    The features are the principal components of that tensor with the largest variance, each with mean 0 and variance 1, so a
    head of first order learns from them as fast as one of second order (docs/head.md). No label is used.

    Args:
        path: The .tflite.
        inputs: Its int8 inputs for the calibration samples, (n, ...).
        features: How many, and what of.
        name: What messages call the model.

    Returns:
        The number of features; fewer than asked for where the tensor has fewer directions.

    Raises:
        UserError: The model has no such tensor, or there are too few samples.
    """
    number = features.number
    graph = replace(tflite.load(path), path=name)
    if features_tensor(graph) >= 0:  # those of another pair
        needed = needed_operators(graph, graph.outputs[0])
        path.write_bytes(with_ends(path.read_bytes(), graph.inputs[0], graph.outputs[0], {}, needed))
        graph = replace(tflite.load(path), path=name)
    source = features_source(graph, features.tensor)
    values = _values(path, graph, source, inputs)
    if len(values) < 2 * number:
        raise UserError(f"--features {number}: {len(values)} calibration samples, want {2 * number} or more (--calibration)")
    scale, zero = source.quantisation
    weights, offsets = whitening(scale * (values.astype(float) - zero), number)
    scales = np.abs(weights).max(1) / 127
    layer = np.round(weights / scales[:, None]).astype(np.int8)
    bias = np.round(offsets / (scale * scales)).astype(np.int32)
    path.write_bytes(with_features(path.read_bytes(), source.index, layer, scales, bias, scale, STEP))
    return len(layer)


def features_source(graph: Graph, name: str | None) -> Tensor:
    """The tensor that features are made of. name: Its name; None: the input of the last layer with weights."""
    if name is not None:
        named = [t for t in graph.tensors if t.name == name and t.data is None]
        if not named:
            tensors = ", ".join(f"{graph.tensors[n].name} {list(graph.tensors[n].shape)}" for n in _computed(graph))
            raise UserError(f"{graph.path}: as int8 it computes no tensor {name}; it computes {tensors}")
        source = named[0]
    else:
        layers = [o for o in graph.operators if o.name in WEIGHTED]
        if not layers:
            raise UserError(f"{graph.path}: --features: the model has no layer with weights; --features-from names a tensor")
        source = graph.tensors[layers[-1].inputs[0]]
    if source.dtype != "int8" or not len(source.scale):
        raise UserError(f"{graph.path}: --features: tensor {source.name} is {source.dtype}, want int8")
    return source


def _computed(graph: Graph) -> list[int]:
    """The int8 tensors that the model computes, in its order."""
    return [n for o in graph.operators for n in o.outputs if graph.tensors[n].dtype == "int8"]


def _values(path: Path, graph: Graph, source: Tensor, inputs: np.ndarray) -> np.ndarray:
    """The int8 numbers of a tensor for each input, (n, size)."""
    flat = inputs.reshape(len(inputs), -1)
    if source.index == graph.inputs[0]:
        return flat
    operators = needed_operators(graph, source.index)
    model = ExactModel(plan(tflite.read(with_ends(path.read_bytes(), graph.inputs[0], source.index, {}, operators))))
    return np.stack([model.outputs(row) for row in flat])


def whitening(values: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(weights (k, size), offsets (k,)) that make whitened features of real values (n, size); k: at most `number`."""
    mean = values.mean(0)
    _, lengths, directions = np.linalg.svd(values - mean, full_matrices=False)  # the longest first
    variances = lengths**2 / (len(values) - 1)
    chosen = np.flatnonzero(variances > LEAST_VARIANCE * max(float(np.max(variances)), 1e-12))[:number]
    if not len(chosen):
        raise UserError("--features: the tensor has the same numbers for every calibration sample")
    weights = directions[chosen] / np.sqrt(variances[chosen])[:, None]
    return weights, -weights @ mean

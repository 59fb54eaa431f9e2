"""A model that a pair holds as int8 .tflite: copied, or quantised from its trained form."""

import shutil
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import quantised

from ...common.errors import UserError
from ...common.pairs import InputScaling
from ...fleet.rdl import models
from .. import tflite
from ..convert.open import open_source
from ..plan import trimmed
from ..tflite_write import write
from .samples import PairSamples


@dataclass(frozen=True)
class Int8Input:
    """How a sample becomes a model's int8 input.

    Attributes:
        shape: One sample's shape, without the batch.
        scale: Step of the quantisation.
        zero_point: The int8 number that stands for 0.
        prepared: Factor and offset that are applied first, or None.
    """

    shape: tuple[int, ...]
    scale: float
    zero_point: int
    prepared: InputScaling | None = None

    def quantise(self, x: np.ndarray) -> np.ndarray:
        """Samples (n, ...) as int8."""
        return quantised(x if self.prepared is None else self.prepared.apply(x), self.scale, self.zero_point)


@dataclass(frozen=True)
class PairModel:
    """One model in the folder of a pair.

    Attributes:
        kind: What the model was, in words.
        file: Its file in the folder, FILE.py:FUNCTION, or a URL.
        input: Its int8 input.
        event: The output that is the event, or None where each output is a class.
        scores: What it says of the test samples as it runs in the pair: (n,) of the event, or (n, K) of every class.
        float_scores: The same of the float model, or None where there is none.
        floats: A worker restores the floats for it.
        beside: Files in the folder that a Python function reads, and modules that it imports.
    """

    kind: str
    file: str
    input: Int8Input
    event: int | None
    scores: np.ndarray
    float_scores: np.ndarray | None
    _: KW_ONLY
    floats: bool = False
    beside: tuple[str, ...] = ()

    @property
    def labels(self) -> np.ndarray:
        """Its decisions on the test samples, (n,)."""
        return models.labels(self.scores)

    @property
    def files(self) -> list[str]:
        """The files that it has in the folder."""
        return [] if models.is_url(self.file) else [self.file.partition(":")[0], *self.beside]


def int8_model(path: Path, out: Path, samples: PairSamples, interpreter: Callable[[Path, int], Any]) -> PairModel:
    """Write a model as int8 .tflite and run it on the test samples.

    Args:
        path: .keras, .h5, SavedModel folder, .joblib, or .tflite (float or int8).
        out: The .tflite to write.
        samples: With the numbers that the model reads.
        interpreter: Opens a .tflite with an index of its outputs.
    """
    name, float_scores, prepared = str(path), None, None
    if _is_int8(path):
        _copy(path, out)
        kind = "int8 .tflite"
    else:
        source = open_source(path)
        kind, shaped = source.kind, samples.shaped(source.shape, name)
        outputs = source.checked_scores(shaped.x)
        float_scores = models.picked(outputs, _event_output(samples, outputs.shape[1], name))
        out.write_bytes(source.quantise(source.prepared(shaped.fit)))
        if np.ndim(source.factor) or np.ndim(source.offset):
            prepared = per_number(source.factor, source.offset, source.shape)
    graph = tflite.load(out)
    event = _event_output(samples, int(np.prod(graph.tensors[graph.outputs[0]].shape[1:])), name)
    model = interpreter(out, event or 0)
    scale, zero_point = model.input_quantisation()
    int8_input = Int8Input(tuple(model.input_shape[1:]), scale, zero_point, prepared)
    x = int8_input.quantise(samples.shaped(int8_input.shape, name).x)
    scores = models.picked(np.array([model.scores(row) for row in x]), event)
    return PairModel(kind, out.name, int8_input, event, scores, float_scores)


def _copy(path: Path, out: Path) -> None:
    """Copy a full-int8 .tflite, without an ARG_MAX of its scores: a policy reads the scores."""
    graph = tflite.load(path)
    short = trimmed(graph)
    if len(short.operators) == len(graph.operators):
        shutil.copyfile(path, out)
    else:
        out.write_bytes(write(short))


def per_number(factor: np.ndarray | float, offset: np.ndarray | float, shape: tuple[int, ...]) -> InputScaling:
    """A factor and an offset for each number of a sample of that shape."""
    factors, offsets = (np.broadcast_to(np.ravel(v), (int(np.prod(shape)),)).astype(float).tolist() for v in (factor, offset))
    return InputScaling(factor=factors, offset=offsets)


def _is_int8(path: Path) -> bool:
    if path.suffix != ".tflite" or not path.is_file():
        return False
    graph = tflite.load(path)
    return graph.tensors[graph.inputs[0]].dtype == "int8"


def _event_output(samples: PairSamples, outputs: int, model: str) -> int | None:
    """Which output of a model is the event; None: each output is a class."""
    if samples.event is None:
        if outputs != samples.classes:
            raise UserError(f"{model}: {outputs} outputs; --classes {samples.classes} wants one a class")
        return None
    if outputs == 1:
        if samples.classes > 2 or samples.event != 1:
            raise UserError(f"{model}: its only output scores class 1: it cannot tell --event among {samples.classes} classes")
        return 0
    if samples.event >= outputs:
        raise UserError(f"{model}: {outputs} outputs, none of them for class {samples.event} (--event)")
    return samples.event

"""A model that a pair holds as int8 .tflite: copied, or quantised from its trained form."""

import shutil
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import quantised
from h2t2.node.measured import BEYOND

from ...common.errors import UserError
from ...common.finite import check_finite
from ...common.pairs import InputScaling
from ...fleet.rdl import models
from .. import quality, tflite
from ..convert.distil import student
from ..convert.readers import open_source
from ..convert.scaling import scaled
from ..convert.trained_model import Source
from ..plan import trimmed
from ..tflite_edit import with_constants, with_quantisation
from ..tflite_write import write
from .labelled_samples import PairSamples

NEGATED = "FULLY_CONNECTED", "CONV_2D"  # layers whose output has the opposite sign where weights and bias have


@dataclass(frozen=True)
class Int8Input:
    """How a sample becomes a model's int8 input.

    Attributes:
        shape: One sample's shape, without the batch.
        scale: Step of the quantisation.
        zero_point: The int8 number that stands for 0.
        prepared: Factor and offset that are applied first, or None.
        columns: The number of a sample that each of the input is; None: each is one.
    """

    shape: tuple[int, ...]
    scale: float
    zero_point: int
    prepared: InputScaling | None = None
    columns: list[int] | None = None

    def quantise(self, x: np.ndarray) -> np.ndarray:
        """Samples (n, ...) as int8, (n, *shape)."""
        x = x.reshape(len(x), -1)
        x = (x if self.columns is None else x[:, self.columns]).reshape(-1, *self.shape)
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
        warnings: What is suspicious about the samples that calibrated it.
        remedy: Why int8 may lose accuracy, and what to do.
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
    warnings: tuple[str, ...] = ()
    remedy: str = quality.NETWORK_REMEDY
    beside: tuple[str, ...] = ()

    @property
    def labels(self) -> np.ndarray:
        """Its decisions on the test samples, (n,)."""
        return models.labels(self.scores)

    @property
    def files(self) -> list[str]:
        """The files that it has in the folder."""
        return [] if models.is_url(self.file) else [self.file.partition(":")[0], *self.beside]


def int8_model(
    path: Path,
    out: Path,
    samples: PairSamples,
    interpreter: Callable[[Path, int], Any],
    *,
    distil: bool = False,
    missing_value: float | None = None,
) -> PairModel:
    """Write a model as int8 .tflite and run it on the test samples.

    Args:
        path: .keras, .h5, SavedModel folder, .joblib, or .tflite (float or int8).
        out: The .tflite to write.
        samples: With the numbers that the model reads.
        interpreter: Opens a .tflite with an index of its outputs.
        distil: Write trees that are trained on the model's scores.
        missing_value: The number that counts as missing for a file of XGBoost.
    """
    name = str(path)
    if missing_value is None and _is_int8(path):
        _copy(path, out)
        written = _Written("int8 .tflite")
    else:
        source = student(path, samples.fit.reshape(len(samples.fit), -1), missing_value) if distil else None
        written = _write_quantised(source or open_source(path, missing_value), out, samples, name)
    graph = tflite.load(out)
    count = int(np.prod(graph.tensors[graph.outputs[0]].shape[1:]))
    event = _event_output(samples, count, name)
    if _is_other_class(samples, count) and not written.complemented:
        out.write_bytes(_complemented(out))
    try:
        model = interpreter(out, event or 0)
    except UserError as error:
        raise UserError(str(error).replace(str(out), name)) from None
    scale, zero_point = model.input_quantisation()
    int8_input = Int8Input(tuple(model.input_shape[1:]), scale, zero_point, written.prepared, written.columns)
    if written.prepared:
        written.prepared.beyond = beyond(written.ready / scale + zero_point)
    x = int8_input.quantise(samples.x if written.columns else samples.shaped(int8_input.shape, name).x)
    scores = models.picked(np.array([model.scores(row) for row in x]), event)
    return PairModel(
        written.kind, out.name, int8_input, event, scores, written.float_scores,
        warnings=tuple(written.warnings), remedy=written.remedy,
    )  # fmt: skip


@dataclass
class _Written:
    """A model that was written as int8 .tflite.

    Attributes:
        kind: What it was, in words.
        float_scores: What the float model says of the test samples, (n,) or (n, K), or None.
        prepared, columns: As of Int8Input.
        ready: The calibration samples as the int8 model takes them before quantising, (m, numbers).
        complemented: The float model already scores class 0 with its only output.
        warnings: What is suspicious about the samples.
        remedy: As of Source.
    """

    kind: str
    _: KW_ONLY
    float_scores: np.ndarray | None = None
    prepared: InputScaling | None = None
    columns: list[int] | None = None
    ready: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    complemented: bool = False
    warnings: list[str] = field(default_factory=list)
    remedy: str = quality.NETWORK_REMEDY


def _write_quantised(source: Source, out: Path, samples: PairSamples, name: str) -> _Written:
    """Quantise a trained model by the samples and write it. name: of its file, for messages."""
    shaped = samples.shaped(source.shape, name)
    outputs = source.checked_scores(shaped.x, samples.header)
    is_other = _is_other_class(samples, outputs.shape[1])
    complement = source.complement if is_other else None
    if complement:
        source, outputs = complement(), 1 - outputs
    known = outputs if shaped.fit is shaped.x else source.checked_scores(shaped.fit, samples.header)
    written = _Written(source.kind, complemented=complement is not None, remedy=source.remedy)
    scores = models.picked(outputs, _event_output(samples, outputs.shape[1], name))
    written.float_scores = 1 - scores if is_other and not complement else scores
    source = scaled(source, shaped.fit)
    event_scores = models.picked(known, _event_output(samples, known.shape[1], name))
    written.warnings += quality.calibration_warnings(shaped.fit, event_scores)
    written.warnings += quality.rounding_warnings(shaped.x, source.scores)
    ready = source.prepared(shaped.fit)
    for rows in (ready, source.prepared(shaped.x)):
        check_finite(rows, name, columns=None if source.encoding else samples.header)
    out.write_bytes(source.quantise(ready))
    written.ready = ready.reshape(len(ready), -1)
    if np.ndim(source.factor) or np.ndim(source.offset) or source.encoding:
        written.prepared = per_number(source.factor, source.offset, ready.shape[1:])
    if written.prepared and source.encoding:
        written.columns = source.encoding.columns
        written.prepared.missing, written.prepared.equal = source.encoding.missing, source.encoding.equal
    return written


def _copy(path: Path, out: Path) -> None:
    """Copy a full-int8 .tflite, without an ARG_MAX of its scores: a policy reads the scores."""
    graph = tflite.load(path)
    short = trimmed(graph)
    if len(short.operators) == len(graph.operators):
        shutil.copyfile(path, out)
    else:
        out.write_bytes(write(short))


def beyond(steps: np.ndarray) -> list[int] | None:
    """How far outside int8 each input may lie: a tenth of its range beyond the calibration samples, (n, inputs) in steps.

    None where all samples lie within int8, which leaves the device its own limit. Trees clip most samples of some numbers.
    """
    low, high = steps.min(0), steps.max(0)
    outside = np.maximum(np.maximum(-128 - low, high - 127), 0)
    return np.ceil(outside + BEYOND * np.maximum((high - low) / 255, 1)).astype(int).tolist() if outside.any() else None


def per_number(factor: np.ndarray | float, offset: np.ndarray | float, shape: tuple[int, ...]) -> InputScaling:
    """A factor and an offset for each number of a sample of that shape."""
    factors, offsets = (np.broadcast_to(np.ravel(v), (int(np.prod(shape)),)).astype(float).tolist() for v in (factor, offset))
    return InputScaling(factor=factors, offset=offsets)


def _is_int8(path: Path) -> bool:
    if path.suffix != ".tflite" or not path.is_file():
        return False
    graph = tflite.load(path)
    return graph.tensors[graph.inputs[0]].dtype == "int8"


def _is_other_class(samples: PairSamples, outputs: int) -> bool:
    """Whether the event is class 0, and the only output of a model scores class 1."""
    return outputs == 1 and samples.event == 0


def _complemented(path: Path) -> bytes:
    """An int8 .tflite that scores the other class: its last layer with the opposite sign, or else 1 less its score.

    The logistic function of -x is 1 minus that of x, so that most models need no further operator.
    """
    graph = tflite.load(path)
    *before, layer, last = graph.operators if len(graph.operators) > 1 else [None, None, None]
    if not (layer and last and last.name == "LOGISTIC" and layer.name in NEGATED and not layer.options.get("fused")):
        return write(_less_its_score(graph))
    changes = {}
    for n in layer.inputs[1:]:
        data = graph.tensors[n].data if n >= 0 else None
        if data is not None:
            limits = np.iinfo(data.dtype)
            changes[n] = np.clip(-data.astype(np.int64), limits.min, limits.max).astype(data.dtype), np.zeros(0)
    scale, zero = graph.tensors[layer.outputs[0]].quantisation
    mirrored = {layer.outputs[0]: (scale, -1 - zero)}
    return with_quantisation(with_constants(path.read_bytes(), changes), mirrored)


def _less_its_score(graph: tflite.Graph) -> tflite.Graph:
    """The same graph, which gives 1 less its only output."""
    score, count = graph.tensors[graph.outputs[0]], len(graph.tensors)
    zero = np.array([-128])
    one = replace(score, index=count, name="one", data=np.full(score.shape, 127, np.int8), scale=np.array([1 / 255]), zero=zero)
    other = replace(score, index=count + 1, name="other", scale=np.array([1 / 256]), zero=zero)
    subtract = tflite.Operator("SUB", 1, (count, score.index), (count + 1,), {"fused": 0})
    return replace(graph, tensors=(*graph.tensors, one, other), operators=(*graph.operators, subtract), outputs=(count + 1,))


def _event_output(samples: PairSamples, outputs: int, model: str) -> int | None:
    """Which output of a model is the event; None: each output is a class."""
    if samples.event is None:
        if outputs != samples.classes:
            raise UserError(f"{model}: {outputs} outputs; --classes {samples.classes} wants one a class")
        return None
    if outputs == 1:
        if samples.classes > 2:
            raise UserError(f"{model}: its only output scores class 1: it cannot tell --event among {samples.classes} classes")
        return 0
    if samples.event >= outputs:
        raise UserError(f"{model}: {outputs} outputs, none of them for class {samples.event} (--event)")
    return samples.event

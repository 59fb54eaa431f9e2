"""The two models of a pair, each as it lies in the folder, with its scores of the samples as it runs there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import quantised
from h2t2.cpython.tflite import TFLiteModel

from ...common.errors import UserError
from ...common.functions import load_user_function
from ...common.pairs import InputScaling
from ...fleet.rdl import models
from .. import tflite
from ..convert.open import open_source
from ..exact import open_local
from .job import Job, Samples, view

UNLIKE = 8.0  # how many times wider one number's range may be than another's before each is scaled by itself


@dataclass(frozen=True)
class Side:
    """One model in the folder: its file; shape, scale and zero_point of its int8 input; event: its output; kind: in words.

    score: (n,) of the event, or (n, K) of every class, as it runs there; exact: the same, as the float model has it, None where
    it came as int8.
    prepared: what its numbers are multiplied by and shifted before they are quantised, or None. floats: a worker restores them.
    """

    kind: str
    file: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    event: int | None
    score: np.ndarray
    exact: np.ndarray | None
    prepared: InputScaling | None
    floats: bool = False

    @property
    def says(self) -> np.ndarray:
        """(n,): its decisions."""
        return models.labels(self.score)


def _event(samples: Samples, outputs: int, what: str) -> int | None:
    """The output of a model that is the event; None: each is a class."""
    if samples.event is None:
        if outputs != samples.classes:
            raise UserError(f"{what}: {outputs} outputs; --classes {samples.classes} wants one a class")
        return None
    if outputs == 1:
        if samples.classes > 2 or samples.event != 1:
            raise UserError(f"{what}: one output, the score of class 1: of {samples.classes} classes it cannot tell --event")
        return 0
    if samples.event >= outputs:
        raise UserError(f"{what}: {outputs} outputs, none of them for class {samples.event} (--event)")
    return samples.event


def converted(side: str, path: Path, job: Job, samples: Samples) -> Side:
    """A model that runs here as int8 .tflite: as it is, or quantised."""
    if side == "rdl" and job.payload.dtype == "raw":
        raise UserError(f"{path}: takes numbers; --payload raw is for FILE.py:FUNCTION or a URL")
    out = job.out / f"{side}.tflite"
    exact = prepared = None
    if path.suffix == ".tflite" and path.is_file() and _is_int8(path):
        if path.resolve() != out.resolve():
            shutil.copyfile(path, out)
        kind = "int8 .tflite"
    else:
        source = open_source(path)
        kind = source.kind
        outputs = source.checked_scores(view(samples.x, job, side, source.shape, str(path)))
        exact = models.picked(outputs, _event(samples, outputs.shape[1], str(path)))
        out.write_bytes(source.quantise(source.prepared(view(samples.fit, job, side, source.shape, str(path)))))
        if np.ndim(source.factor) or np.ndim(source.offset):
            prepared = _prepared(source.factor, source.offset, source.shape)
    graph = tflite.load(out)
    event = _event(samples, int(np.prod(graph.tensors[graph.outputs[0]].shape[1:])), str(path))
    model = open_local(out, event or 0) if side == "ldl" else TFLiteModel(str(out), event=event or 0)
    scale, zero_point = model.input_quantisation()
    made = int8(view(samples.x, job, side, model.input_shape[1:], str(path)), prepared, scale, zero_point)
    score = models.picked(np.array([model.scores(row) for row in made]), event)
    return Side(kind, out.name, tuple(model.input_shape[1:]), scale, zero_point, event, score, exact, prepared)


def _is_int8(path: Path) -> bool:
    graph = tflite.load(path)
    return graph.tensors[graph.inputs[0]].dtype == "int8"


def _prepared(factor: Any, offset: Any, shape: tuple[int, ...]) -> InputScaling:
    size = int(np.prod(shape))
    both = [np.broadcast_to(np.ravel(v), (size,)).astype(float).tolist() for v in (factor, offset)]
    return InputScaling(factor=both[0], offset=both[1])


def int8(x: np.ndarray, prepared: InputScaling | None, scale: float, zero_point: int) -> np.ndarray:
    """Samples (n, ...) as a model's int8 input."""
    return quantised(x if prepared is None else prepared.apply(x), scale, zero_point)


def kept(job: Job, samples: Samples) -> Side:
    """A remote model that stays what it is, .onnx, a Python function or a URL: offloads send int8 that spans what it was shown,
    or what the job says. UserError for one that is not there, or does not give scores."""
    kind, name, where = _brought(job)
    shape = models.load(models.Source(where)).shape
    fit = view(samples.fit, job, "rdl", shape, job.rdl)
    prepared, low, high = _ranges(fit)
    scale = max(high - low, 1e-6) / 255
    zero_point = int(np.clip(round(-128 - low / scale), -128, 127))
    x = view(samples.x, job, "rdl", shape, job.rdl)
    event = samples.event
    loaded = models.load(models.Source(where, event, scale=scale, zero_point=zero_point, prepared=prepared, floats=True))
    wanted = (len(x),) if event is not None else (len(x), samples.classes)
    exact = None if job.payload.dtype == "raw" else _scores(loaded, x, job.rdl, wanted)
    if job.payload.dtype == "raw":
        pictures = samples.raw if job.picture else None
        score = _scores(loaded, _encoded(job, x if pictures is None else pictures), job.rdl, wanted)
    elif exact is not None and job.payload.dtype == "float32":
        score = exact
    else:
        score = _scores(loaded, int8(x, prepared, scale, zero_point), job.rdl, wanted)
    return Side(kind, name, tuple(x.shape[1:]), scale, zero_point, event, score, exact, prepared, True)


def _brought(job: Job) -> tuple[str, str, str]:
    """A remote model that stays what it is, copied into the folder: its kind in words, its name there, and where it now is."""
    if models.is_url(job.rdl):
        return "URL", job.rdl, job.rdl
    file, _, function = job.rdl.rpartition(":") if not job.rdl.endswith(".onnx") else (job.rdl, "", "")
    name = _copied(Path(file), job.out, "rdl")
    kind = "Python function" if function else "ONNX model"
    called = f":{function}" if function else ""
    return kind, name + called, str(job.out / name) + called


def _copied(path: Path, folder: Path, stem: str) -> str:
    """The name of a copy of the file in the folder."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    name = f"{stem}{path.suffix}"
    if path.resolve() != (folder / name).resolve():
        shutil.copyfile(path, folder / name)
    return name


def encoder(job: Job) -> str:
    """The function that makes a sample's raw bytes, its file copied into the folder."""
    file, _, name = job.payload.encode.rpartition(":")
    return f"{_copied(Path(file), job.out, 'encode')}:{name}"


def _encoded(job: Job, x: np.ndarray) -> list[bytes]:
    encode = load_user_function(str(job.out / encoder(job)))
    made = [encode(row) for row in x]
    if not all(isinstance(data, bytes) and 0 < len(data) <= job.payload.limit for data in made):
        raise UserError(f"--encode {job.payload.encode}: want bytes, 1 to {job.payload.limit} (--limit) of a sample")
    return made


def _scores(model: models.Model, x: models.Batch, what: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        made = np.asarray(model.scores(x), float)
    except Exception as error:  # a user's own program, or a runtime with a dozen kinds of its own
        raise UserError(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from None
    if made.shape != shape or not np.isfinite(made).all() or made.min() < -0.01 or made.max() > 1.01:
        span = f"{made.shape}, {made.min():.3g} to {made.max():.3g}"
        wanted = "one score" if len(shape) == 1 else f"{shape[1]} scores"
        raise UserError(f"{what}: want {wanted} from 0 to 1 a sample, {shape}; it gave {span}")
    return np.clip(made, 0, 1)


def _ranges(fit: np.ndarray) -> tuple[InputScaling | None, float, float]:
    """What int8 has to span, after each number was scaled by itself where their ranges are unlike (of rows, not images)."""
    low, high = fit.reshape(len(fit), -1).min(0), fit.reshape(len(fit), -1).max(0)
    span = np.maximum(high - low, 1e-6 * max(1.0, float(np.abs(fit).max())))
    if fit.ndim == 2 and span.max() > UNLIKE * span.min():
        factor = 2 / span
        offset = -(high + low) / 2 * factor
        return _prepared(factor, offset, fit.shape[1:]), -1.0, 1.0
    return None, float(low.min()), float(high.max())

"""Remote models a worker can serve: a full-int8 .tflite, an .onnx, or a Python function. One interface; reload in place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from h2t2.ldl.quantise import quantised
from h2t2.ldl.tflite import TFLiteModel
from h2t2.link import wire

from ...common.errors import UserError
from ...common.functions import function, is_function
from ...common.pairs import Pair, Prepared
from .url import predictions

NUMBERS: dict[int, np.dtype[Any]] = {
    wire.INT8: np.dtype("i1"),
    wire.UINT8: np.dtype("u1"),
    wire.FLOAT32: np.dtype("<f4"),
}  # of tensors on the wire
Batch = np.ndarray | list[bytes]  # samples of one kind: tensors of a dtype of NUMBERS, (n, *sample), or RAW bytes


class Model(Protocol):
    """shape: of one sample's tensor, without the batch; None where any is taken. raw: whether it takes RAW bytes."""

    shape: tuple[int, ...] | None
    raw: bool

    def scores(self, batch: Batch) -> np.ndarray:
        """A batch to the event's scores, (n,), in [0, 1], or to those of every class, (n, K)."""
        ...


@dataclass(frozen=True)
class Source:
    """Where a model is and how it is read.

    path: .tflite, .onnx, FILE.py:FUNCTION, or a URL. event: index of class 1 among its outputs, None: each is a class. scale,
    zero_point, prepared: what a float model's input is restored with, scale (q - zero_point) and then `prepared` undone; and
    what floats become the int8 of an int8 model by. floats: a function wants floats, not a tensor as sent. limit: bytes of data
    a request may have. media: type that RAW bytes are of.
    """

    path: str
    event: int | None = 1
    resolver: str = "reference"
    scale: float = 1.0
    zero_point: int = 0
    prepared: Prepared | None = None
    floats: bool = False
    limit: int = wire.MAX_DATA
    media: str = ""

    @property
    def file(self) -> Path:
        return Path(self.path.rpartition(":")[0] if is_function(self.path) else self.path)

    def version(self) -> tuple[int, int]:
        """Changes when the file does; (0, 0) while there is none."""
        try:
            found = os.stat(self.file)
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def load(self) -> Model:
        """Raises UserError or ValueError, naming the file, for one that is not such a model."""
        if is_url(self.path):
            return _Url(self)
        if not self.file.is_file():
            raise UserError(f"{self.file}: no such file")
        if is_function(self.path):
            return _Function(self)
        if self.path.endswith(".onnx"):
            return _Onnx(self)
        return _TFLite(self)


ALL = "all"  # of a model's outputs: each is a class


def of_pair(pair: Pair, path: str | None = None, event: int | str | None = None, resolver: str = "reference") -> Source:
    """The remote model of a pair; path: another in its place, which is given the same input; event: the output that is class 1,
    or ALL, None: as the pair has it."""
    about, remote = pair.about, pair.about.remote
    if event is None:
        event = ALL if about.costs else about.output_of("rdl")
    output = None if event == ALL else int(event)
    own = remote.model if is_url(remote.model) else str(pair.rdl)
    return Source(
        path or own, output, resolver, remote.scale, remote.zero_point,
        about.prepared.get("rdl"), remote.floats and path is None, remote.limit, remote.media,
    )  # fmt: skip


def answers(pair: Pair) -> np.ndarray:
    """What the remote model of a pair makes of what an offload of every test sample sends: scores, (n,) or (n, K)."""
    remote = pair.about.remote
    sent = [pair.sent(n) for n in range(len(pair.x))]
    return of_pair(pair).load().scores(as_batch(sent, wire.DTYPES.index(remote.dtype), tuple(remote.shape)))


def warmed(model: Model) -> Model:
    """The model, after it has run once: what is done at the first run only is not a request's to wait for.

    One that fails at it is the worker's affair, which says so at its first request.
    """
    if model.shape is not None:
        with suppress(Exception):
            model.scores(np.zeros((1, *model.shape), np.int8))
    return model


def picked(outputs: np.ndarray, event: int | None) -> np.ndarray:
    """Of a model's outputs (n, K) the event's, (n,), which is the only one where there is one; event None: as they are."""
    return outputs if event is None else outputs[:, 0 if outputs.shape[1] == 1 else event]


def labels(scores: np.ndarray) -> np.ndarray:
    """(n,) int: what scores, (n,) of class 1 or (n, K), say."""
    return scores.argmax(1) if scores.ndim == 2 else (scores >= 0.5).astype(np.int64)


def is_url(path: str) -> bool:
    """Whether a remote model is a server's."""
    return path.startswith(("http://", "https://"))


class _TFLite:
    """One sample after the other: TFLite's CPU kernels gain nothing from a batch."""

    raw = False

    def __init__(self, source: Source) -> None:
        self._model = TFLiteModel(source.path, event=source.event or 0, resolver=source.resolver)
        self._source = source
        self.shape: tuple[int, ...] | None = self._model.input_shape[1:]

    def scores(self, batch: Batch) -> np.ndarray:
        x = integers(batch, self._source)
        if self._source.event is None:
            return np.array([self._model.scores(one) for one in x])
        return np.array([self._model.score(self._model.run(one)) for one in x])


class _Onnx:
    """Any input and output type; a whole batch at once where its first dimension is free."""

    raw = False

    def __init__(self, source: Source) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError(f"{source.path}: needs onnxruntime; run: pip install h2t2-edge[onnx]") from None
        try:
            self._session = onnxruntime.InferenceSession(source.path, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a dozen kinds of its own
            raise UserError(f"{source.path}: not a model onnxruntime can run: {str(error).splitlines()[0]}") from None
        given = self._session.get_inputs()
        if len(given) != 1:
            raise UserError(f"{source.path}: {len(given)} inputs, want one")
        self._name, self._integers = given[0].name, given[0].type == "tensor(int8)"
        dimensions = given[0].shape[1:]
        fixed = all(isinstance(n, int) for n in dimensions)
        self.shape: tuple[int, ...] | None = tuple(dimensions) if fixed else None
        self._one_by_one = isinstance(given[0].shape[0], int)
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        x = integers(batch, s) if self._integers else floats(batch, s)
        parts = [x[n : n + 1] for n in range(len(x))] if self._one_by_one else [x]
        made = np.concatenate([np.asarray(self._session.run(None, {self._name: part})[0]) for part in parts])
        return picked(made.reshape(len(batch), -1), s.event)


def as_batch(payloads: Sequence[bytes | memoryview], dtype: int, shape: tuple[int, ...]) -> Batch:
    """The data of requests of one kind. dtype: a code of the wire's; shape: of one sample."""
    if dtype == wire.RAW:
        return [bytes(data) for data in payloads]
    tensors = [np.frombuffer(data, NUMBERS[dtype]).reshape(shape) for data in payloads]
    return np.stack(tensors) if len(tensors) > 1 else tensors[0][None]


def integers(batch: Batch, source: Source) -> np.ndarray:
    """What an int8 model reads of a batch, int8 (n, *sample): uint8 is int8 + 128, floats are prepared and quantised."""
    x = np.asarray(batch)
    if x.dtype == np.uint8:
        return (x.astype(np.int16) - 128).astype(np.int8)
    if x.dtype == np.float32:
        return quantised(x if source.prepared is None else source.prepared.apply(x), source.scale, source.zero_point)
    return x


def floats(batch: Batch, source: Source) -> np.ndarray:
    """What a float model was trained on, float32 (n, *sample): floats as they were sent, integers restored."""
    x = np.asarray(batch)
    if x.dtype == np.float32:
        return x
    real = ((integers(x, source).astype(np.float32) - source.zero_point) * source.scale).astype(np.float32)
    return real if source.prepared is None else source.prepared.undo(real)


class _Function:
    """FILE.py:FUNCTION, called with an array (n, *sample), as sent or float32 restored, or with a list of n RAW bytes; it
    returns n scores, or (n, K)."""

    raw = True

    def __init__(self, source: Source) -> None:
        self._call = function(source.path)
        self.shape: tuple[int, ...] | None = None
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        tensors = not isinstance(batch, list)
        made = np.asarray(self._call(floats(batch, self._source) if tensors and self._source.floats else batch), dtype=float)
        return made if self._source.event is None else made.reshape(-1)


class _Url:
    """A server's model: given the floats of a sample, or RAW bytes."""

    raw = True
    shape: tuple[int, ...] | None = None

    def __init__(self, source: Source) -> None:
        self._source = source

    def scores(self, batch: Batch) -> np.ndarray:
        s = self._source
        made = predictions(s.path, batch if isinstance(batch, list) else floats(batch, s))
        return made if made.ndim < 2 else picked(made.reshape(len(batch), -1), s.event)

"""Remote models a worker can serve: a full-int8 .tflite, an .onnx, or a Python function. One interface; reload in place."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from h2t2.ldl.tflite import TFLiteModel

from ...common.errors import UserError
from ...common.pairs import Pair, Prepared


class Model(Protocol):
    """shape: of one int8 sample, without the batch; None where any is taken."""

    shape: tuple[int, ...] | None

    def scores(self, batch: np.ndarray) -> np.ndarray:
        """int8 (n, *sample) to the event's scores, (n,), in [0, 1], or to those of every class, (n, K)."""
        ...


@dataclass(frozen=True)
class Source:
    """Where a model is and how it is read.

    path: .tflite, .onnx, or FILE.py:FUNCTION. event: index of class 1 among its outputs, None: each is a class. scale,
    zero_point, prepared: what a float model's input is restored with, scale (q - zero_point) and then `prepared` undone.
    floats: a function wants that too, not the int8 as sent.
    """

    path: str
    event: int | None = 1
    resolver: str = "reference"
    scale: float = 1.0
    zero_point: int = 0
    prepared: Prepared | None = None
    floats: bool = False

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
        if not self.file.is_file():
            raise UserError(f"{self.file}: no such file")
        if is_function(self.path):
            return _Function(self)
        if self.path.endswith(".onnx"):
            return _Onnx(self)
        return _TFLite(self)


def of_pair(pair: Pair, path: str | None = None, event: int | None = None, resolver: str = "reference") -> Source:
    """The remote model of a pair; path, event: another in its place, which is given the same input."""
    about, remote = pair.about, pair.about.remote
    if event is None and not about.costs:
        event = about.output_of("rdl")
    return Source(
        path or str(pair.rdl), event, resolver, remote.scale, remote.zero_point,
        about.prepared.get("rdl"), remote.floats and path is None,
    )  # fmt: skip


def warmed(model: Model) -> Model:
    """The model, after it has run once: what is done at the first run only is not a request's to wait for.

    One that fails at it is the worker's affair, which says so at its first request.
    """
    if model.shape is not None:
        with suppress(Exception):
            model.scores(np.zeros((1, *model.shape), np.int8))
    return model


def labels(scores: np.ndarray) -> np.ndarray:
    """(n,) int: what scores, (n,) of class 1 or (n, K), say."""
    return scores.argmax(1) if scores.ndim == 2 else (scores >= 0.5).astype(np.int64)


def is_function(path: str) -> bool:
    """Whether it names a function in a Python file."""
    return path.rpartition(":")[0].endswith(".py")


class _TFLite:
    """One sample after the other: TFLite's CPU kernels gain nothing from a batch."""

    def __init__(self, source: Source) -> None:
        self._model = TFLiteModel(source.path, event=source.event or 0, resolver=source.resolver)
        self._many = source.event is None
        self.shape: tuple[int, ...] | None = self._model.input_shape[1:]

    def scores(self, batch: np.ndarray) -> np.ndarray:
        if self._many:
            return np.array([self._model.scores(x) for x in batch])
        return np.array([self._model.score(self._model.run(x)) for x in batch])


class _Onnx:
    """Any input and output type; a whole batch at once where its first dimension is free."""

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

    def scores(self, batch: np.ndarray) -> np.ndarray:
        s = self._source
        x = batch if self._integers else restored(batch, s)
        parts = [x[n : n + 1] for n in range(len(x))] if self._one_by_one else [x]
        made = np.concatenate([np.asarray(self._session.run(None, {self._name: part})[0]) for part in parts])
        made = made.reshape(len(batch), -1)
        return made if s.event is None else made[:, 0 if made.shape[1] == 1 else s.event]


def restored(batch: np.ndarray, source: Source) -> np.ndarray:
    """What a float model was trained on, float32 (n, *sample), from what offloads send, int8 (n, *sample)."""
    real = ((batch.astype(np.float32) - source.zero_point) * source.scale).astype(np.float32)
    return real if source.prepared is None else source.prepared.undo(real)


class _Function:
    """FILE.py:FUNCTION, called with an array (n, *sample), int8 as sent or float32 restored; it returns n scores, or (n, K)."""

    def __init__(self, source: Source) -> None:
        path = source.path
        file, _, name = path.rpartition(":")
        spec = importlib.util.spec_from_file_location("h2t2_rdl_model", file)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            self._call: Callable[[np.ndarray], Any] = getattr(module, name)
        except Exception as error:  # a user's own program
            raise UserError(f"{path}: {type(error).__name__}: {error}") from None
        self.shape: tuple[int, ...] | None = None
        self._source = source

    def scores(self, batch: np.ndarray) -> np.ndarray:
        x = restored(batch, self._source) if self._source.floats else batch
        made = np.asarray(self._call(x), dtype=float)
        return made if self._source.event is None else made.reshape(-1)

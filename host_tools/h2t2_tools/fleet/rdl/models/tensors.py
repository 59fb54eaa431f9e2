"""The input of remote models, made from requests, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import numpy as np

from h2t2.cpython.quantise import quantised
from h2t2.link import wire

from ....common.fields import COMPLEMENT
from ...failures import Partial
from .source import Source

NUMBERS: dict[int, np.dtype[Any]] = {
    wire.INT8: np.dtype("i1"),
    wire.UINT8: np.dtype("u1"),
    wire.FLOAT32: np.dtype("<f4"),
}  # of tensors on the wire
Batch = np.ndarray | list[bytes]  # samples of one kind: tensors of a dtype of NUMBERS, (n, *sample), or RAW bytes


class Detected(bytes):
    """A sample that a detector has named, as a gate hands it to a model: bytes with attributes.

    Attributes:
        key: the stream: a camera, a species.
        label: the detector's own name for what it detected.
        media: the type of the bytes.
    """

    key: str
    label: str
    media: str

    def __new__(cls, data: bytes, key: str = "", label: str = "", media: str = "") -> Detected:
        """The bytes of a sample, with the words of its detector."""
        sample = super().__new__(cls, data)
        sample.key, sample.label, sample.media = key, label, media
        return sample


class Model(Protocol):
    """A remote model. shape: of one sample's tensor; None for any. raw: whether it takes RAW bytes."""

    shape: tuple[int, ...] | None
    raw: bool

    def scores(self, batch: Batch) -> np.ndarray:
        """The scores of a batch, in [0, 1]: of the event (n,), or of every class (n, K).

        Partial: some samples have no answer. Any other exception: none has; failures.py says what it belongs to.
        """
        ...

    def close(self) -> None:
        """End connections and processes, and with them the calls under way."""
        return


@runtime_checkable
class OnServer(Protocol):
    """A model on somebody else's server."""

    def test(self, timeout_s: float) -> None:
        """Ask a test question and wait for its answer, which may first load the model.

        Raises:
            Later, Misconfigured: the server does not answer, or is wrongly set up; the text says how.
        """
        ...


def as_batch(payloads: Sequence[bytes | memoryview], dtype: int, shape: tuple[int, ...]) -> Batch:
    """A batch from the data of requests of one kind. dtype: a code of the wire; shape: of one sample."""
    if dtype == wire.RAW:
        return [bytes(data) for data in payloads]
    tensors = [np.frombuffer(data, NUMBERS[dtype]).reshape(shape) for data in payloads]
    return np.stack(tensors) if len(tensors) > 1 else tensors[0][None]


def integers(batch: Batch, source: Source) -> np.ndarray:
    """A batch for an int8 model, int8 (n, *sample): uint8 is int8 + 128, floats are prepared and quantised."""
    x = np.asarray(batch)
    if x.dtype == np.uint8:
        return (x.astype(np.int16) - 128).astype(np.int8)
    if x.dtype == np.float32:
        return quantised(x if source.prepared is None else source.prepared.apply(x), source.scale, source.zero_point)
    return x


def floats(batch: Batch, source: Source) -> np.ndarray:
    """A batch for a float model, float32 (n, *sample): floats as they were sent, integers restored."""
    x = np.asarray(batch)
    if x.dtype == np.float32:
        return x
    real = ((integers(x, source).astype(np.float32) - source.zero_point) * source.scale).astype(np.float32)
    return real if source.prepared is None else source.prepared.undo(real)


def picked(outputs: np.ndarray, event: int | None) -> np.ndarray:
    """The event's column (n,) of a model's outputs (n, K), or the only column; event None: all outputs.

    COMPLEMENT: 1 less the only column.
    """
    if event == COMPLEMENT:
        return 1 - outputs[:, 0]
    return outputs if event is None else outputs[:, 0 if outputs.shape[1] == 1 else event]


def labels(scores: np.ndarray) -> np.ndarray:
    """The labels (n,) of scores, (n,) of class 1 or (n, K)."""
    return scores.argmax(1) if scores.ndim == 2 else (scores >= 0.5).astype(np.int64)


def answered(model: Model, batch: Batch) -> tuple[np.ndarray, dict[int, Exception]]:
    """(scores, failures) of a batch: samples without an answer have NaN, and their failure by their place in the batch.

    It raises as Model.scores() does where no sample has an answer.
    """
    try:
        return np.array(model.scores(batch), dtype=float), {}
    except Partial as error:
        return np.array(error.scores, dtype=float), error.errors


def warmed(model: Model) -> Model:
    """The model, after one run: no request waits for the work of the first run.

    A failure is ignored: the worker reports it at the first request.
    """
    if model.shape is not None:
        with suppress(Exception):
            model.scores(np.zeros((1, *model.shape), np.int8))
    return model

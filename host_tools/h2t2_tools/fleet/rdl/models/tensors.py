"""The input of remote models, made from requests, and their scores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import numpy as np

from h2t2.cpython.quantise import quantised
from h2t2.link import wire

from ....common.fields import COMPLEMENT
from ...failures import Later, Partial, Refused, is_of_sample, of_error
from .model_source import Source

NUMBERS: dict[int, np.dtype[Any]] = {
    wire.INT8: np.dtype("i1"),
    wire.UINT8: np.dtype("u1"),
    wire.FLOAT32: np.dtype("<f4"),
}  # of tensors on the wire
Batch = np.ndarray | list[bytes]  # samples of one kind: tensors of a dtype of NUMBERS, (n, *sample), or RAW bytes

ALONE, ALONE_S = 32, 5.0  # samples of a batch that failed, each of which is asked about alone; and seconds in which that begins


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


def answered(
    model: Model, batch: Batch, before: Callable[[int], object] = lambda _: None
) -> tuple[np.ndarray, dict[int, Exception]]:
    """(scores, failures) of a batch: samples without an answer have NaN, and their failure by their place in the batch.

    One bad sample may make a whole batch fail. Then the model is asked about each sample alone: about ALONE samples at most,
    within ALONE_S; the others may be asked about later.

    Args:
        before: is called before each question about a single sample, with its place in the batch.

    Raises:
        Exception: as Model.scores(), where the server or the set-up fails, and where a single sample has no answer.
    """
    try:
        return np.array(model.scores(batch), dtype=float), {}
    except Partial as error:
        return np.array(error.scores, dtype=float), error.errors
    except Exception as error:
        if len(batch) < 2 or not is_of_sample(error):
            raise
    end = time.monotonic() + ALONE_S

    def ask(n: int) -> np.ndarray:
        if n >= ALONE or time.monotonic() > end:
            raise Later("the batch failed, and this sample has not been asked about alone", untaken=True)
        before(n)
        scores = np.array(model.scores(batch[n : n + 1]), dtype=float)
        if scores.shape[:1] != (1,):
            raise Refused(f"scores of shape {scores.shape} for one sample")
        return scores

    try:
        return gathered(one_by_one(ask, len(batch))), {}
    except Partial as error:
        return np.array(error.scores), error.errors


def one_by_one(ask: Callable[[int], np.ndarray], count: int) -> list[np.ndarray | Exception]:
    """The answers to questions about single samples, for gathered(). After a failure of the server or the set-up none is asked.

    Args:
        ask: the scores of a sample, (1,) or (1, K), by its place in the batch.
        count: of samples.
    """
    answers: list[np.ndarray | Exception] = []
    for n in range(count):
        last = answers[-1] if answers else None
        if isinstance(last, Exception) and not is_of_sample(last):
            answers.append(last)
            continue
        try:
            answers.append(ask(n))
        except Exception as error:  # a user's model
            answers.append(error)
    return answers


def gathered(answers: Sequence[np.ndarray | Exception]) -> np.ndarray:
    """The scores of samples that were asked about alone, (n,) or (n, K).

    Args:
        answers: the scores of each sample, (1,) or (1, K), or its failure.

    Raises:
        Partial: some have failed, or all for several causes, or each by itself.
        Exception: the only sample has failed, or all because of the server or the set-up.
    """
    errors = {n: answer for n, answer in enumerate(answers) if isinstance(answer, Exception)}
    rows = [answer for answer in answers if not isinstance(answer, Exception)]
    if not errors:
        return np.concatenate(rows)
    alike = len({of_error(error) for error in errors.values()}) == 1 and not any(map(is_of_sample, errors.values()))
    if not rows and (alike or len(errors) == 1):
        raise errors[0]
    unanswered = np.full_like(rows[0], math.nan) if rows else np.array([math.nan])
    raise Partial(np.concatenate([unanswered if isinstance(answer, Exception) else answer for answer in answers]), errors)


def warmed(model: Model) -> Model:
    """The model, after one run: no request waits for the work of the first run.

    A failure is ignored: the worker reports it at the first request.
    """
    if model.shape is not None:
        with suppress(Exception):
            model.scores(np.zeros((1, *model.shape), np.int8))
    return model

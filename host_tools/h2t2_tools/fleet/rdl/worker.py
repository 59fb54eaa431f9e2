"""From request payloads to reply payloads, a micro-batch at a time. No network here."""

import logging
from collections import Counter
from collections.abc import Callable
from math import prod
from time import perf_counter

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.link.statuses import STATUS

from . import watchdog
from .models import Batch, Model, as_batch, labels
from .watchdog import BatchNote

ROUNDING = 1e-4  # by which a float model's score may exceed [0, 1]
LOG = logging.getLogger(__name__)
HANG_S = 10.0  # beyond four times the expected time of a batch
FIRST = 0.01  # expected seconds of a request before the first measurement
SURGE = 4  # times the expected time: a longer measurement counts as this, as machines pause now and then


Kind = tuple[int, tuple[int, ...]]  # dtype and shape of samples that go into one batch


class Worker:
    """Serves one model as `model_id`.

    Args:
        log: is called with the reason why a model failed.
        note: where batches are noted, for the parent.
        limit: bytes of data a request may have.
        media: type of RAW bytes.

    Attributes:
        model: may be replaced between two batches.
        counts: replies by status text, and "dropped" for payloads too short to be answered.
        failures: batches on which the model failed.
        seconds_each: seconds of a request, measured.
    """

    def __init__(
        self,
        model: Model,
        model_id: int,
        log: Callable[[str], None] = lambda _: None,
        *,
        note: BatchNote | None = None,
        limit: int = wire.MAX_DATA,
        media: str = "",
    ) -> None:
        self.model = model
        self.model_id = model_id
        self.counts: Counter[str] = Counter()
        self.failures = 0
        self.seconds_each = FIRST
        self.note = note or BatchNote(HANG_S)
        self._log = log
        self._limit, self._media = limit, media
        if model.shape is not None:  # the first run warms it up, the second measures
            for _ in range(2):
                self._run_model(np.zeros((1, *model.shape), np.int8))

    def answer(self, payloads: list[bytes]) -> list[bytes | None]:
        """The reply to each request, with an error status for a bad one; None for a payload that names no request."""
        replies: list[bytes | None] = [None] * len(payloads)
        batches: dict[Kind, list[tuple[int, worker_wire.Request]]] = {}
        self.note.read_suspects()
        for n, payload in enumerate(payloads):
            try:
                request = worker_wire.decode_request(payload)
            except ValueError:
                replies[n] = self.refuse(payload, worker_wire.refusal(payload))
                continue
            sample = self._kind(request) if request.model == self.model_id else None
            suspicion = self.note.suspicion(request.data)
            error = self.request_error(request)
            if error or sample is None:
                replies[n] = self._reply(error, request)
            elif suspicion == watchdog.REFUSED:
                replies[n] = self._reply(wire.REFUSED, request)
            elif suspicion:
                (answer,) = self._answer_batch([request], sample)
                self.note.clear_suspect(request.data)
                replies[n] = self._reply(answer[0], request, answer[1], answer[2])
            else:
                batches.setdefault(sample, []).append((n, request))
        for sample, batch in batches.items():
            for (n, request), answer in zip(batch, self._answer_batch([request for _, request in batch], sample)):
                replies[n] = self._reply(answer[0], request, answer[1], answer[2])
        return replies

    def request_error(self, request: worker_wire.Request) -> int:
        """The status of a request that this model cannot answer; OK for one that it can."""
        if request.model != self.model_id:
            return wire.WRONG_MODEL
        if len(request.data) > self._limit:
            return wire.TOO_LARGE
        return wire.OK if self._kind(request) else wire.MALFORMED

    def refuse(self, payload: bytes, status: int) -> bytes | None:
        """The error reply to a payload; None for one that names no request."""
        identity = worker_wire.peek_request(payload)
        if identity is None:
            self.counts["dropped"] += 1
            return None
        self.counts[STATUS[status]] += 1
        return worker_wire.encode_reply(status, identity[0], identity[1], -1, 0)

    def _kind(self, request: worker_wire.Request) -> Kind | None:
        """A request's dtype, and the model's own shape, or the request's where the model takes any. None: it does not fit."""
        if request.dtype == wire.RAW:
            return (wire.RAW, ()) if self.model.raw and request.media == self._media else None
        own = self.model.shape
        if own is None:
            return request.dtype, tuple(request.shape)
        return (request.dtype, own) if prod(own) == prod(request.shape) else None

    def _answer_batch(self, requests: list[worker_wire.Request], kind: Kind) -> list[tuple[int, int, int]]:
        """(status, label, Q15 score) of requests of one kind. The batch is noted for the parent."""
        data: list[bytes | memoryview] = [request.data for request in requests]
        self.note.begin_batch(data, len(requests) * self.seconds_each)
        try:
            return self._run_model(as_batch(data, *kind))
        finally:
            self.note.end_batch()

    def _run_model(self, batch: Batch) -> list[tuple[int, int, int]]:
        """(status, label, Q15 score) of each sample.

        FAILED for all where the model raises or returns no scores in [0, 1]; FAILED for samples whose score is NaN.
        """
        began = perf_counter()
        try:
            scores = np.asarray(self.model.scores(batch), dtype=float)
            valid = len(scores) == len(batch) and scores.shape[1:] != (1,) and scores.ndim in (1, 2)
            unknown = np.zeros(len(batch), bool)
            inside = (scores > -ROUNDING) & (scores < 1 + ROUNDING)
            if valid and not inside.all():
                unknown = np.isnan(scores.reshape(len(scores), -1)).any(1)
                valid = bool((np.isnan(scores) | inside).all()) and not unknown.all()
                scores = np.nan_to_num(scores)
            why = f"want {len(batch)} scores in [0, 1], or as many rows of them, one a class"
        except Exception as error:  # a user's model: the worker stays up
            valid, why = False, f"{type(error).__name__}: {error}"
            LOG.debug("the model raised", exc_info=error)
        took = (perf_counter() - began) / len(batch)
        longest, weight = (took, 1 / 2) if self.seconds_each == FIRST else (SURGE * self.seconds_each, 1 / 8)
        self.seconds_each += (min(took, longest) - self.seconds_each) * weight
        if not valid:
            self.failures += 1
            if self.failures <= 20 or self.failures % 1024 == 0:  # a stranger's samples must not fill the log
                self._log(f"the model failed on {len(batch)} samples: {why} (failure {self.failures})")
            return [(wire.FAILED, -1, 0)] * len(batch)
        top = np.clip(scores.max(1) if scores.ndim == 2 else scores, 0, 1)
        answer = zip(labels(scores).tolist(), top.tolist(), unknown.tolist())
        return [(wire.FAILED, -1, 0) if bad else (wire.OK, label, round(score * ONE)) for label, score, bad in answer]

    def _reply(self, status: int, request: worker_wire.Request, label: int = -1, score: int = 0) -> bytes:
        self.counts[STATUS[status]] += 1
        return worker_wire.encode_reply(status, request.boot, request.sequence, label, score)

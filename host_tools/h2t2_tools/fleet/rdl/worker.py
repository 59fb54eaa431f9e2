"""From request payloads to reply payloads, a micro-batch at a time. No network here."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from math import prod
from time import perf_counter

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire

from . import watchdog
from .models import Batch, Model, as_batch, labels
from .watchdog import Told

ROUNDING = 1e-4  # a float model's score may be outside [0, 1] by so much
LOG = logging.getLogger(__name__)
HANG_S = 10.0  # beyond four times what is expected of a batch
FIRST = 0.01  # seconds a request is expected to take before one has been measured
SURGE = 4  # times what is expected: more than that a measured time does not count, as machines stand still now and then


Kind = tuple[int, tuple[int, ...]]  # dtype and shape of samples that go into one batch


class Worker:
    """Serves one model as `model_id`. `model` may be replaced between two batches.

    limit: bytes of data a request may have. media: type that RAW bytes must be of.
    counts: replies by status text, and "dropped" for payloads too short to be answered. each: seconds that the model takes a
    request, measured. log: told why a model failed. told: who is told what is being done.
    """

    def __init__(
        self,
        model: Model,
        model_id: int,
        log: Callable[[str], None] = lambda _: None,
        told: Told | None = None,
        limit: int = wire.MAX_DATA,
        media: str = "",
    ) -> None:
        self.model = model
        self.model_id = model_id
        self.counts: Counter[str] = Counter()
        self.failures = 0  # batches the model failed on
        self.each = FIRST
        self.told = told or Told(HANG_S)
        self._log = log
        self._limit, self._media = limit, media
        if model.shape is not None:  # warmed up, and measured: the second time, for what is only done once
            for _ in range(2):
                self._labels(np.zeros((1, *model.shape), np.int8))

    def answers(self, payloads: list[bytes]) -> list[bytes | None]:
        """The reply to each request; an error status for a bad one; None where nobody could be answered."""
        replies: list[bytes | None] = [None] * len(payloads)
        alike: dict[Kind, list[tuple[int, worker_wire.Request]]] = {}
        self.told.look()
        for n, payload in enumerate(payloads):
            try:
                request = worker_wire.decode_request(payload)
            except ValueError:
                replies[n] = self.refusal(payload, worker_wire.refusal(payload))
                continue
            sample = self._kind(request) if request.model == self.model_id else None
            judged = self.told.judge(request.data)
            wrong = self.wrong(request)
            if wrong or sample is None:
                replies[n] = self._reply(wrong, request)
            elif judged == watchdog.REFUSED:
                replies[n] = self._reply(wire.REFUSED, request)
            elif judged:
                (answer,) = self._batch([request], sample)
                self.told.clear(request.data)
                replies[n] = self._reply(answer[0], request, answer[1], answer[2])
            else:
                alike.setdefault(sample, []).append((n, request))
        for sample, batch in alike.items():
            for (n, request), answer in zip(batch, self._batch([request for _, request in batch], sample)):
                replies[n] = self._reply(answer[0], request, answer[1], answer[2])
        return replies

    def wrong(self, request: worker_wire.Request) -> int:
        """The status for a request that is none of this model's, OK for one that is."""
        if request.model != self.model_id:
            return wire.WRONG_MODEL
        if len(request.data) > self._limit:
            return wire.TOO_LARGE
        return wire.OK if self._kind(request) else wire.MALFORMED

    def refusal(self, payload: bytes, status: int) -> bytes | None:
        """An error reply to a payload that is not looked into any further."""
        known = worker_wire.peek_request(payload)
        if known is None:
            self.counts["dropped"] += 1
            return None
        self.counts[wire.STATUS[status]] += 1
        return worker_wire.encode_reply(status, known[0], known[1], -1, 0)

    def _kind(self, request: worker_wire.Request) -> Kind | None:
        """A request's dtype, and the shape it is read in: the model's own where it has as many numbers, the request's where the
        model takes any. None: it does not fit."""
        if request.dtype == wire.RAW:
            return (wire.RAW, ()) if self.model.raw and request.media == self._media else None
        own = self.model.shape
        if own is None:
            return request.dtype, tuple(request.shape)
        return (request.dtype, own) if prod(own) == prod(request.shape) else None

    def _batch(self, requests: list[worker_wire.Request], kind: Kind) -> list[tuple[int, int, int]]:
        """The labels of requests of one kind; the watchdog is told."""
        data = [request.data for request in requests]
        self.told.begin(data, len(requests) * self.each)
        try:
            return self._labels(as_batch(data, *kind))
        finally:
            self.told.end()

    def _labels(self, batch: Batch) -> list[tuple[int, int, int]]:
        """(status, label, Q15 score) of each sample; FAILED where the model raises, or gives what is no score: for all of them,
        or for those whose score it says is none, NaN."""
        began = perf_counter()
        try:
            scores = np.asarray(self.model.scores(batch), dtype=float)
            good = len(scores) == len(batch) and scores.shape[1:] != (1,) and scores.ndim in (1, 2)
            none = np.zeros(len(batch), bool)
            inside = (scores > -ROUNDING) & (scores < 1 + ROUNDING)
            if good and not inside.all():
                none = np.isnan(scores.reshape(len(scores), -1)).any(1)
                good = bool((np.isnan(scores) | inside).all()) and not none.all()
                scores = np.nan_to_num(scores)
            why = f"it gave no {len(batch)} scores in [0, 1], nor as many rows of them, one a class"
        except Exception as error:  # a model of somebody's own: the worker stays up and says so
            good, why = False, f"{type(error).__name__}: {error}"
            LOG.debug("the model raised", exc_info=error)
        took = (perf_counter() - began) / len(batch)
        self.each += (took - self.each) / 2 if self.each == FIRST else (min(took, SURGE * self.each) - self.each) / 8
        if not good:
            self.failures += 1
            if self.failures <= 20 or self.failures % 1024 == 0:  # a stranger's samples must not fill the log
                self._log(f"the model failed on {len(batch)} samples: {why} (failure {self.failures})")
            return [(wire.FAILED, -1, 0)] * len(batch)
        best = np.clip(scores.max(1) if scores.ndim == 2 else scores, 0, 1)
        answers = zip(labels(scores).tolist(), best.tolist(), none.tolist())
        return [(wire.FAILED, -1, 0) if bad else (wire.OK, label, round(score * ONE)) for label, score, bad in answers]

    def _reply(self, status: int, request: worker_wire.Request, label: int = -1, score: int = 0) -> bytes:
        self.counts[wire.STATUS[status]] += 1
        return worker_wire.encode_reply(status, request.boot, request.sequence, label, score)

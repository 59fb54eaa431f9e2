"""From requests to the payloads of replies, a micro-batch at a time. No network here."""

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

from ...common.log import is_logged
from ...common.score_rules import HIGHEST, LOWEST
from ..failures import Refused, describe, of_error, reply_status
from . import watchdog
from .models import Batch, Model, answered, as_batch, labels
from .watchdog import BatchNote
from .worker_options import HANG_S

LOG = logging.getLogger(__name__)
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

    def answer(self, requests: list[worker_wire.Request]) -> list[bytes]:
        """The reply to each request, with an error status for one that this model cannot answer."""
        replies = [b""] * len(requests)
        batches: dict[Kind, list[tuple[int, worker_wire.Request]]] = {}
        self.note.read_suspects()
        for n, request in enumerate(requests):
            sample = self._kind(request) if request.model == self.model_id else None
            suspicion = self.note.suspicion(request.data)
            error = self.request_error(request)
            if error or sample is None:
                replies[n] = self.reply(error, request)
            elif suspicion == watchdog.REFUSED:
                replies[n] = self.reply(wire.REFUSED, request)
            elif suspicion:
                (answer,) = self._answer_batch([request], sample)
                self.note.clear_suspect(request.data)
                replies[n] = self.reply(answer[0], request, answer[1], answer[2])
            else:
                batches.setdefault(sample, []).append((n, request))
        for sample, batch in batches.items():
            for (n, request), answer in zip(batch, self._answer_batch([request for _, request in batch], sample)):
                replies[n] = self.reply(answer[0], request, answer[1], answer[2])
        return replies

    def request_error(self, request: worker_wire.Request) -> int:
        """The status of a request that this model cannot answer; OK for one that it can."""
        if request.model != self.model_id:
            return wire.WRONG_MODEL
        if len(request.data) > self._limit:
            return wire.TOO_LARGE
        return wire.OK if self._kind(request) else wire.MALFORMED

    def refuse(self, payload: bytes) -> bytes | None:
        """The error reply to a payload that is no request; None for one that names none."""
        identity = worker_wire.peek_request(payload)
        if identity is None:
            self.counts["dropped"] += 1
            return None
        status = worker_wire.refusal(payload)
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
            return self._run_model(as_batch(data, *kind), lambda n: self.note.begin_batch(data[n : n + 1], self.seconds_each))
        finally:
            self.note.end_batch()

    def _run_model(self, batch: Batch, before: Callable[[int], object] = lambda _: None) -> list[tuple[int, int, int]]:
        """(status, label, Q15 score) of each sample.

        Where the model raises: LATER or FAILED, as failures.py says; FAILED for samples whose scores are NaN or not in [0, 1].

        Args:
            before: as of answered().
        """
        began = perf_counter()
        wanted = f"want {len(batch)} scores in [0, 1], or as many rows of them, one a class"
        try:
            scores, errors = answered(self.model, batch, before)
            if len(scores) != len(batch) or scores.ndim not in (1, 2) or scores.shape[1:] in ((0,), (1,)):
                raise Refused(wanted)
        except Exception as error:  # a user's model: the worker stays up
            scores, errors = np.zeros(len(batch)), dict.fromkeys(range(len(batch)), error)
        took = (perf_counter() - began) / len(batch)
        longest, weight = (took, 1 / 2) if self.seconds_each == FIRST else (SURGE * self.seconds_each, 1 / 8)
        self.seconds_each += (min(took, longest) - self.seconds_each) * weight
        inside = ((scores >= LOWEST) & (scores <= HIGHEST)).reshape(len(batch), -1).all(1)
        errors = {**dict.fromkeys(np.flatnonzero(~inside).tolist(), Refused(wanted)), **errors}
        if errors:
            first = next(iter(errors.values()))
            LOG.debug("the model failed", exc_info=first)
            self._note_failure(len(errors), describe(first))
        top = np.clip(scores.max(1) if scores.ndim == 2 else scores, 0, 1)
        rows = enumerate(zip(labels(scores).tolist(), top.tolist()))
        return [
            (reply_status(of_error(errors[n])), -1, 0) if n in errors else (wire.OK, label, round(score * ONE))
            for n, (label, score) in rows
        ]

    def _note_failure(self, count: int, why: str) -> None:
        """Count and log a batch with samples on which the model failed."""
        self.failures += 1
        if is_logged(self.failures):
            self._log(f"the model failed on {count} samples: {why} (failure {self.failures})")

    def reply(self, status: int, request: worker_wire.Request, label: int = -1, score: int = 0) -> bytes:
        """The reply to a request, which it counts. score: Q15."""
        self.counts[STATUS[status]] += 1
        return worker_wire.encode_reply(status, request.boot, request.sequence, label, score)

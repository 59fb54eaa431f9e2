"""From request payloads to reply payloads, a micro-batch at a time. No network here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.link import wire

from .models import Model

ROUNDING = 1e-4  # a float model's score may be outside [0, 1] by so much


class Worker:
    """Serves one model as `model_id`. `model` may be replaced between two batches.

    counts: replies by status text, and "dropped" for payloads too short to be answered. log: told why a model failed.
    """

    def __init__(self, model: Model, model_id: int, log: Callable[[str], None] = lambda _: None) -> None:
        self.model = model
        self.model_id = model_id
        self.counts: Counter[str] = Counter()
        self.failures = 0  # batches the model failed on
        self._log = log

    def answers(self, payloads: list[bytes]) -> list[bytes | None]:
        """The reply to each request; an error status for a bad one; None where nobody could be answered."""
        replies: list[bytes | None] = [None] * len(payloads)
        alike: dict[tuple[int, ...], list[tuple[int, int, int, Any]]] = {}
        for n, payload in enumerate(payloads):
            try:
                model, boot, sequence, shape, tensor = wire.decode_request(payload)
            except ValueError:
                replies[n] = self.refusal(payload, wire.MALFORMED)
                continue
            if model != self.model_id:
                replies[n] = self._reply(wire.WRONG_MODEL, boot, sequence)
                continue
            sample = self._sample_shape(shape)
            if sample is None:
                replies[n] = self._reply(wire.MALFORMED, boot, sequence)
            else:
                alike.setdefault(sample, []).append((n, boot, sequence, np.frombuffer(tensor, np.int8).reshape(sample)))
        for batch in alike.values():
            labels = self._labels(np.stack([tensor for *_, tensor in batch]) if len(batch) > 1 else batch[0][3][None])
            for (n, boot, sequence, _), (status, label, score) in zip(batch, labels):
                replies[n] = self._reply(status, boot, sequence, label, score)
        return replies

    def refusal(self, payload: bytes, status: int) -> bytes | None:
        """An error reply to a payload that is not looked into any further."""
        known = wire.peek_request(payload)
        if known is None:
            self.counts["dropped"] += 1
            return None
        return self._reply(status, *known)

    def _sample_shape(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The model's own shape where a request's has as many numbers; the request's where the model takes any."""
        own = self.model.shape
        if own is None:
            return shape
        return own if prod(own) == prod(shape) else None

    def _labels(self, batch: np.ndarray) -> list[tuple[int, int, int]]:
        """(status, label, Q15 score) of each sample; FAILED where the model raises, or gives what is no score."""
        try:
            scores = np.asarray(self.model.scores(batch), dtype=float).tolist()
            good = len(scores) == len(batch) and all(-ROUNDING < score < 1 + ROUNDING for score in scores)
            why = f"it gave no {len(batch)} scores in [0, 1]"
        except Exception as error:  # a model of somebody's own: the worker stays up and says so
            good, why = False, f"{type(error).__name__}: {error}"
        if not good:
            self.failures += 1
            if self.failures <= 20 or self.failures % 1024 == 0:  # a stranger's samples must not fill the log
                self._log(f"the model failed on {len(batch)} samples: {why} (failure {self.failures})")
            return [(wire.FAILED, -1, 0)] * len(batch)
        return [(wire.OK, int(score >= 0.5), round(min(max(score, 0.0), 1.0) * ONE)) for score in scores]

    def _reply(self, status: int, boot: int, sequence: int, label: int = -1, score: int = 0) -> bytes:
        self.counts[wire.STATUS[status]] += 1
        return wire.encode_reply(status, boot, sequence, label, score)

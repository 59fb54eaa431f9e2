"""The remote model of a gate, asked in threads of its own. Two kinds: one that this process runs or calls, and workers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

import numpy as np

from h2t2.link import wire
from h2t2.link.statuses import STATUS

from ...common.errors import UserError
from ..queue.lesson import Lesson
from ..rdl import models
from .config import GateConfig
from .detection import Detection, Payload
from .picture_client import Allowed, PictureClient

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """What the remote model is asked.

    Attributes:
        payload: what it sees.
        lesson: of the offload; workers store its bin and probability.
        seconds: for which the answer is of use to a decision; 0: it only teaches.
        key, label: the stream, and the detector's name for the sample.
    """

    payload: Payload
    lesson: Lesson
    seconds: float = 0.0
    key: str = ""
    label: str = ""

    @classmethod
    def about(cls, detection: Detection, lesson: Lesson, seconds: float = 0.0) -> Question:
        """The question about a detection."""
        return cls(detection.payload, lesson, seconds, detection.key, detection.label)


@dataclass(frozen=True)
class Answer:
    """What became of a question.

    Attributes:
        label: the class; -1: there is none.
        why: the reason for that.
        away: whether the remote model is away.
        again: whether asking again later is of use.
        payload: what was asked about, with the data of its picture.
    """

    label: int
    why: str = ""
    away: bool = False
    again: bool = False
    payload: Payload | None = None


Deliver = Callable[[Answer], object]


def hand_over(answer: Answer, deliver: Deliver) -> None:
    """Deliver an answer. What fails then is logged: it must not end a thread of a transport."""
    try:
        deliver(answer)
    except Exception:  # a defect, or a policy's
        LOG.exception("an answer")


class Remote(Protocol):
    """A remote model."""

    def ask(self, question: Question, deliver: Deliver) -> None:
        """Ask; `deliver` is called once, in another thread, maybe much later."""
        ...

    def close(self) -> None:
        """End. Questions without an answer get none."""
        ...


def pictures(config: GateConfig) -> PictureClient:
    """The client that fetches the pictures of a configuration."""
    allowed = [Allowed.parse(host) for host in config.picture_hosts]
    if not allowed and "://" in config.picture:
        parts = urlsplit(config.picture)
        allowed = [Allowed(host=parts.hostname or "", port=parts.port)]
    return PictureClient(allowed, config.picture_limit, config.picture_timeout, config.picture_wait)


def loaded(payload: Payload, client: PictureClient) -> Payload:
    """A payload with the data of its picture. Unreadable (a ValueError) where the picture cannot be had."""
    if payload.data or payload.tensor:
        return payload
    data, media = client.fetch(payload.url)
    return replace(payload, url="", data=data, media=media)


class ModelRemote:
    """A remote model that `h2t2 rdl` serves: a file, a function, a server, a chain."""

    def __init__(self, config: GateConfig, log: Callable[[str], None]) -> None:
        """UserError, ValueError: there is no such model."""
        self._source = source_of(config)
        self._log = log
        self._pictures = pictures(config)
        self._models: dict[str, models.Model] = {}
        self._model("")  # a wrong configuration fails here
        concurrent = models.is_url(self._source.path) or self._source.path.endswith(".toml")
        self._threads = ThreadPoolExecutor(config.in_flight if concurrent else 1, "remote model")

    def ask(self, question: Question, deliver: Deliver) -> None:
        """As Remote.ask."""
        self._threads.submit(self._answer, question, deliver)

    def close(self) -> None:
        """As Remote.close."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pictures.close()

    def _answer(self, question: Question, deliver: Deliver) -> None:
        payload = question.payload
        try:
            payload = loaded(payload, self._pictures)
            answer = Answer(self._label(replace(question, payload=payload)), payload=payload)
        except OSError as error:
            answer = Answer(-1, str(error), away=True, again=True, payload=payload)
        except Exception as error:  # an invalid answer, or a user's function
            answer = Answer(-1, f"{type(error).__name__}: {error}", payload=payload)
        hand_over(answer, deliver)

    def _label(self, question: Question) -> int:
        payload = question.payload
        model = self._model(payload.media)
        if payload.data:
            batch: models.Batch = [models.Detected(payload.data, question.key, question.label)]
        else:
            batch = np.array([payload.tensor], np.float32)
        if payload.data and not model.raw:
            raise ValueError("the remote model takes numbers: give `tensor` in place of picture and text")
        scores = np.asarray(model.scores(batch), float)
        if scores.shape[0] != 1 or not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError(f"the remote model gave {scores.tolist()}; want scores from 0 to 1")
        return int(models.labels(scores)[0])

    def _model(self, media: str) -> models.Model:
        """The model for data of a media type."""
        if media not in self._models:
            self._models[media] = models.load(replace(self._source, media=media), self._log)
        return self._models[media]


def source_of(config: GateConfig) -> models.Source:
    """The source of a configuration's remote model, and of the second one behind it."""

    def located(path: str) -> str:
        return path if models.is_url(path) else str(config.folder / path)

    costs = config.class_costs if isinstance(config.class_costs, list) else None
    event = None if costs else config.event
    secret = str(config.folder / config.remote_secret) if config.remote_secret else ""
    second = models.Source(located(config.then), event, costs=costs, variable="H2T2_THEN_TOKEN") if config.then else None
    return models.Source(
        located(config.remote), event, secret=secret, second=second, second_beta=config.then_beta, costs=costs, floats=True
    )


class Link(Protocol):
    """The requests and replies of a device on a broker, as h2t2.cpython.paho.PahoLink has them."""

    def is_connected(self) -> bool: ...

    def workers(self) -> int: ...

    def send(self, payload: bytes) -> bool: ...

    def receive(self, wait_ms: int) -> bytes | None: ...


@dataclass(frozen=True)
class _Outstanding:
    payload: Payload
    deliver: Deliver
    timer: threading.Timer


class WorkerRemote:
    """Workers of `h2t2 rdl` behind the broker, or a person in their place: they answer requests for a model's number."""

    def __init__(self, config: GateConfig, link: Link, boot: int) -> None:
        if config.worker is None:
            raise UserError(f"remote {config.remote}: want worker:N")
        self._model, self._link, self._boot = config.worker, link, boot
        self._patience = config.patience
        self._pictures = pictures(config)
        self._lock = threading.Lock()
        self._sequence = 0
        self._outstanding: dict[int, _Outstanding] = {}
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(4, "pictures")
        threading.Thread(target=self._receive, name="replies", daemon=True).start()

    def ask(self, question: Question, deliver: Deliver) -> None:
        """As Remote.ask."""
        self._threads.submit(self._send, question, deliver)

    def close(self) -> None:
        """As Remote.close."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for outstanding in self._outstanding.values():
                outstanding.timer.cancel()
        self._pictures.close()

    def _send(self, question: Question, deliver: Deliver) -> None:
        payload = question.payload
        try:
            payload = loaded(payload, self._pictures)
            with self._lock:
                self._sequence += 1
                sequence = self._sequence
            request = self._request(sequence, payload, question)
        except Exception as error:  # no picture, or one that is too large for a request
            hand_over(Answer(-1, str(error), payload=payload), deliver)
            return
        timer = threading.Timer(self._patience, self._finish, (sequence, Answer(-1, "no answer in time", again=True)))
        timer.daemon = True
        with self._lock:
            self._outstanding[sequence] = _Outstanding(payload, deliver, timer)
        if not (self._link.is_connected() and self._link.workers() and self._link.send(request)):
            self._finish(sequence, Answer(-1, f"no worker serves model {self._model}", away=True, again=True))
        else:
            timer.start()

    def _request(self, sequence: int, payload: Payload, question: Question) -> bytes:
        """The request for a question. ValueError for a payload that is too large for one."""
        lesson, raw = question.lesson, bool(payload.data)
        data = payload.data if raw else np.array(payload.tensor, "<f4").tobytes()
        return wire.encode_request(
            self._model,
            self._boot,
            sequence,
            (len(data),) if raw else (len(payload.tensor),),
            data,
            remaining_ms=round(question.seconds * 1000),
            chance=lesson.probability,
            k=min(lesson.bin, 255),
            dtype=wire.RAW if raw else wire.FLOAT32,
            media=payload.media if raw else "",
        )

    def _receive(self) -> None:
        while not self._closing.is_set():
            reply = self._link.receive(200)
            if reply is None:
                continue
            try:
                status, boot, sequence, label, _ = wire.decode_reply(reply)
            except ValueError:
                continue
            if boot == self._boot:
                away = status in (wire.BUSY, wire.NOBODY)
                self._finish(sequence, Answer(label, "" if label >= 0 else STATUS[status], away=away, again=away))

    def _finish(self, sequence: int, answer: Answer) -> None:
        with self._lock:
            outstanding = self._outstanding.pop(sequence, None)
        if outstanding:
            outstanding.timer.cancel()
            hand_over(replace(answer, payload=outstanding.payload), outstanding.deliver)

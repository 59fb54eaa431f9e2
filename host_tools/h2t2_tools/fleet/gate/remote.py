"""The remote model of a gate, asked in threads of its own. Two kinds: one that this process runs or calls, and workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from h2t2.cpython.worker_wire import Request
from h2t2.link import wire
from h2t2.link.statuses import STATUS

from ...common.errors import UserError
from ..failures import Cause, Later, describe, of_error, of_reply
from ..queue.lesson import NO_LESSON, Lesson
from ..rdl import models
from . import paths
from .detection import Detection, Payload
from .gate_config import GateConfig
from .picture_client import Allowed, PictureClient

if TYPE_CHECKING:
    from .gate_link import GateLink

LOG = logging.getLogger(__name__)
TEST_S = 300.0  # for the answer to the test question, which may load the model
LONGEST_PATIENCE_S = 300.0  # for an answer of a server


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

    @classmethod
    def of_node(cls, request: Request, longest_s: float) -> Question:
        """The question in a node's request. longest_s: for which an answer is of use, unless the request says less.

        Raises:
            ValueError: a number is not finite.
        """
        if request.dtype == wire.FLOAT32:
            tensor = models.as_batch([request.data], request.dtype, request.shape)
            payload = Payload(tensor=paths.numbers(np.ravel(tensor).tolist(), wire.MAX_DATA))
        else:
            payload = Payload(data=bytes(request.data), media=request.media, dtype=request.dtype, shape=request.shape)
        lesson = replace(NO_LESSON, bin=request.k, probability=request.chance)
        return cls(payload, lesson, min(request.remaining_ms / 1000 or longest_s, longest_s))


@dataclass(frozen=True)
class Answer:
    """What became of a question.

    Attributes:
        label: the class; -1: there is none.
        why: the reason for that.
        cause: what that belongs to.
        of_sample: it failed on this sample, so the gate asks about others meanwhile.
        untaken: the server has not begun with the question, so the sample is not to blame.
        retry_s: seconds after which the server wants to be asked again; 0: it does not say.
        payload: what was asked about, with the data of its picture.
    """

    label: int
    why: str = ""
    cause: Cause = Cause.SAMPLE
    _: KW_ONLY
    of_sample: bool = False
    untaken: bool = False
    retry_s: float = 0.0
    payload: Payload | None = None

    @classmethod
    def failed(cls, error: Exception, payload: Payload) -> Answer:
        """The outcome of a question that an exception ended."""
        answer = cls(-1, describe(error), of_error(error), payload=payload, of_sample=getattr(error, "of_sample", False))
        return replace(answer, untaken=error.untaken, retry_s=error.retry_s) if isinstance(error, Later) else answer

    @property
    def again(self) -> bool:
        """Whether the gate asks about the sample again."""
        return self.label < 0 and self.cause.waits

    @property
    def away(self) -> bool:
        """Whether the remote model as a whole is away."""
        return self.again and not self.of_sample


Deliver = Callable[[Answer], object]


def hand_over(answer: Answer, deliver: Deliver) -> None:
    """Deliver an answer. What fails then is logged: it must not end a thread of a transport."""
    try:
        deliver(answer)
    except Exception:  # a defect, or a policy's
        LOG.exception("an answer")


class Remote:
    """A remote model. A thread fetches the picture of a question, and then _pose() asks.

    Args:
        config: says where pictures may come from.
        threads: number of questions that are prepared, or asked, at once.
    """

    def __init__(self, config: GateConfig, threads: int) -> None:
        allowed = [Allowed.parse(host) for host in config.picture_hosts]
        if not allowed and "://" in config.picture:
            parts = urlsplit(config.picture)
            allowed = [Allowed(host=parts.hostname or "", port=parts.port)]
        self._pictures = PictureClient(allowed, config.picture_limit, config.picture_timeout, config.picture_wait)
        self._threads = ThreadPoolExecutor(threads, "remote model")
        self._closed = False

    def test(self, deliver: Deliver) -> None:
        """Ask a test question, if it is of use; `deliver` is called with what became of it, label 0 for any answer."""

    def ask(self, question: Question, deliver: Deliver) -> None:
        """Ask; `deliver` is called once, in another thread, maybe much later."""
        with suppress(RuntimeError):  # it is closed: the question waits in the queue
            self._threads.submit(self._prepare, question, deliver)

    def close(self) -> None:
        """End. Questions without an answer get none."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pictures.close()

    def _prepare(self, question: Question, deliver: Deliver) -> None:
        payload = question.payload
        try:
            if not (payload.data or payload.tensor):
                data, media = self._pictures.fetch(payload.url)
                payload = replace(payload, url="", data=data, media=media)
            self._pose(replace(question, payload=payload), deliver)
        except Exception as error:  # no picture, no answer, an invalid one, or a user's function
            if not self._closed:  # the reason
                hand_over(Answer.failed(error, payload), deliver)

    def _pose(self, question: Question, deliver: Deliver) -> None:
        raise NotImplementedError


class ModelRemote(Remote):
    """A remote model that `h2t2 rdl` serves: a file, a function, a server, a chain."""

    def __init__(self, config: GateConfig, log: Callable[[str], None]) -> None:
        """UserError, ValueError: there is no such model."""
        source = source_of(config)
        self._model = models.load(source, log, config.hang_after)
        concurrent = models.is_url(source.path) or source.path.endswith(".toml")
        super().__init__(config, config.in_flight if concurrent else 1)

    def test(self, deliver: Deliver) -> None:
        """As Remote.test."""
        if isinstance(self._model, models.OnServer):
            self._threads.submit(self._test, self._model, deliver)

    def close(self) -> None:
        """As Remote.close."""
        super().close()
        self._model.close()
        self._threads.shutdown()

    def _test(self, model: models.OnServer, deliver: Deliver) -> None:
        try:
            model.test(TEST_S)
            answer = Answer(0)
        except Exception as error:
            answer = Answer.failed(error, Payload())
        if not self._closed:
            hand_over(answer, deliver)

    def _pose(self, question: Question, deliver: Deliver) -> None:
        hand_over(Answer(self._label(question), payload=question.payload), deliver)

    def _label(self, question: Question) -> int:
        payload, model = question.payload, self._model
        if payload.data:
            batch: models.Batch = [models.Detected(payload.data, question.key, question.label, payload.media)]
        else:
            batch = np.array([payload.tensor], np.float32)
        if payload.dtype != wire.RAW:
            raise ValueError("only workers understand int8 numbers: give the gate worker:N, or the node float32")
        if payload.data and not model.raw:
            raise ValueError("the remote model takes numbers: give `tensor` in place of picture and text")
        scores = np.asarray(model.scores(batch), float)
        if scores.shape[0] != 1 or not ((scores >= 0) & (scores <= 1)).all():
            raise ValueError(f"the remote model gave {scores.tolist()}; want scores from 0 to 1")
        return int(models.labels(scores)[0])


def source_of(config: GateConfig) -> models.Source:
    """The source of a configuration's remote model, and of the second one behind it."""

    def located(path: str) -> str:
        return path if models.is_url(path) else str(config.folder / path)

    costs = config.class_costs if isinstance(config.class_costs, list) else None
    event = None if costs else config.event
    secret = str(config.folder / config.remote_secret) if config.remote_secret else ""
    patience_s = min(config.patience, LONGEST_PATIENCE_S)
    dtype = wire.FLOAT32 if config.tensor else None
    second = None
    if config.then:
        second = models.Source(
            located(config.then), event, costs=costs, variable="H2T2_THEN_TOKEN", dtype=dtype, patience_s=patience_s
        )
    return models.Source(
        located(config.remote), event, secret=secret, second=second, second_beta=config.then_beta, costs=costs, floats=True,
        dtype=dtype, output=config.output, patience_s=patience_s,
    )  # fmt: skip


class WorkerRemote(Remote):
    """Workers of `h2t2 rdl` behind the broker, or a person in their place: they answer requests for a model's number."""

    def __init__(self, config: GateConfig, link: GateLink, boot: int) -> None:
        if config.worker is None:
            raise UserError(f"remote {config.remote}: want worker:N")
        super().__init__(config, 4)
        self._model, self._link, self._boot = config.worker, link, boot
        self._patience = config.patience
        self._sequences = count(1)
        self._outstanding: dict[int, tuple[Payload, Deliver, float]] = {}  # number -> and until when it may be answered
        threading.Thread(target=self._receive, name="replies", daemon=True).start()

    def _pose(self, question: Question, deliver: Deliver) -> None:
        sequence = next(self._sequences)
        request = self._request(sequence, question.payload, question)
        self._link.meet()
        self._outstanding[sequence] = question.payload, deliver, time.monotonic() + self._patience
        if not (self._link.is_connected() and self._link.workers() and self._link.send(request)):
            self._finish(sequence, Answer(-1, f"no worker serves model {self._model}", Cause.SERVER, untaken=True))

    def _request(self, sequence: int, payload: Payload, question: Question) -> bytes:
        """The request for a question. ValueError for a payload that is too large for one."""
        lesson, raw = question.lesson, bool(payload.data)
        data = payload.data if raw else np.array(payload.tensor, "<f4").tobytes()
        shape = payload.shape or ((len(data),) if raw else (len(payload.tensor),))
        return wire.encode_request(
            self._model, self._boot, sequence, shape, data, remaining_ms=round(question.seconds * 1000),
            chance=lesson.probability, k=min(lesson.bin, 255), dtype=payload.dtype if raw else wire.FLOAT32,
            media=payload.media,
        )  # fmt: skip

    def _receive(self) -> None:
        while not self._closed:
            reply = self._link.receive(200)
            for sequence, (_, _, until) in list(self._outstanding.items()):
                if until < time.monotonic():
                    self._finish(sequence, Answer(-1, "no answer in time", Cause.SERVER, of_sample=True))
            if reply is None:
                continue
            try:
                status, boot, sequence, label, _ = wire.decode_reply(reply)
            except ValueError:
                continue
            if boot == self._boot:
                untaken = status in (wire.BUSY, wire.NOBODY)
                answer = Answer(label) if label >= 0 else Answer(-1, STATUS[status], of_reply(status), untaken=untaken)
                self._finish(sequence, answer)

    def _finish(self, sequence: int, answer: Answer) -> None:
        if outstanding := self._outstanding.pop(sequence, None):
            payload, deliver, _ = outstanding
            hand_over(replace(answer, payload=payload), deliver)

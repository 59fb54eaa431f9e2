"""A person in a remote model's place: requests wait on a desk until somebody answers, perhaps minutes later.

The device has decided long before; the label still teaches it while it holds the sample's ticket.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire

from .inbox import Item
from .models import Batch

MAX_REQUESTS = 256  # on the desk: as many as a device holds tickets for


class Person:
    """The model of a worker with a desk: it accepts every request and never runs."""

    raw = True
    shape: tuple[int, ...] | None = None

    def scores(self, batch: Batch) -> np.ndarray:
        raise ValueError("a person answers one sample at a time")


@dataclass(frozen=True)
class Waiting:
    """A request on a desk. number: counts the requests of this desk from 0."""

    number: int
    item: Item
    request: worker_wire.Request


@dataclass(frozen=True)
class Answer:
    """The answer to a request: status and label of the reply."""

    waiting: Waiting
    status: int
    label: int

    def reply(self) -> bytes:
        """The payload of the reply. A person's score is 1."""
        request = self.waiting.request
        return worker_wire.encode_reply(self.status, request.boot, request.sequence, self.label, ONE if self.label >= 0 else 0)


class Desk:
    """For two threads: the worker's adds requests and takes answers, the other shows requests to a person.

    Attributes:
        classes: number of classes.
        label_count: number of labels so far.
    """

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.label_count = 0
        self._next_number = 0
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    @property
    def size(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def add(self, item: Item, request: worker_wire.Request) -> None:
        """Add a request. Where there is no room, the oldest is answered "busy"."""
        with self._lock:
            self._waiting.append(Waiting(self._next_number, item, request))
            self._next_number += 1
            if len(self._waiting) > MAX_REQUESTS:
                self._answers.put(Answer(self._waiting.popleft(), wire.BUSY, -1))

    def first(self) -> Waiting | None:
        """The oldest request; None where none waits."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def answer(self, number: int, label: int | None) -> bool:
        """Answer a request with a class, or with None where the person cannot tell.

        Returns:
            Whether the request still waited.

        Raises:
            ValueError: there is no such class.
        """
        if label is not None and not 0 <= label < self.classes:
            raise ValueError(f"class {label}: want 0 to {self.classes - 1}")
        with self._lock:
            waiting = next((entry for entry in self._waiting if entry.number == number), None)
            if waiting is None:
                return False
            self._waiting.remove(waiting)
            self.label_count += label is not None
        outcome = (wire.FAILED, -1) if label is None else (wire.OK, label)
        self._answers.put(Answer(waiting, *outcome))
        return True

    def take_answers(self) -> list[Answer]:
        """Take the answers that have not been sent."""
        answers = []
        while not self._answers.empty():
            answers.append(self._answers.get())
        return answers

"""A person in a remote model's place: requests wait on a desk until somebody answers, minutes later perhaps.

The device has decided long before; the label still teaches it, as long as it holds the sample's ticket.
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

MOST = 256  # requests on the desk: as many as a device holds tickets for


class Person:
    """The model that a worker of such a desk has: it takes whatever comes, and is never run."""

    raw = True
    shape: tuple[int, ...] | None = None

    def scores(self, batch: Batch) -> np.ndarray:
        raise ValueError("a person answers one sample at a time")


@dataclass(frozen=True)
class Waiting:
    """item: what came, and from whom; request: what it says. number: of this request on this desk, from 0."""

    number: int
    item: Item
    request: worker_wire.Request


@dataclass(frozen=True)
class Answer:
    """status, label: of the reply to a request that waited."""

    waiting: Waiting
    status: int
    label: int

    def reply(self) -> bytes:
        """Its payload; a person is sure."""
        request = self.waiting.request
        return worker_wire.encode_reply(self.status, request.boot, request.sequence, self.label, ONE if self.label >= 0 else 0)


class Desk:
    """For two threads: the worker's puts requests on it and takes answers from it, the other shows requests to somebody.

    classes: how many there are to choose from. answered: labels that were given so far.
    """

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.answered = 0
        self._came = 0
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    @property
    def size(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    def put(self, item: Item, request: worker_wire.Request) -> None:
        """One more; the oldest is given up, as busy, where there is no room."""
        with self._lock:
            self._waiting.append(Waiting(self._came, item, request))
            self._came += 1
            if len(self._waiting) > MOST:
                self._answers.put(Answer(self._waiting.popleft(), wire.BUSY, -1))

    def first(self) -> Waiting | None:
        """What has waited longest, None: nothing waits."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def answer(self, number: int, label: int | None) -> bool:
        """A person says a class of that request, or None for one that nobody can tell. Whether it was still waiting.

        ValueError for a class that does not exist.
        """
        if label is not None and not 0 <= label < self.classes:
            raise ValueError(f"class {label}: want 0 to {self.classes - 1}")
        with self._lock:
            found = next((one for one in self._waiting if one.number == number), None)
            if found is None:
                return False
            self._waiting.remove(found)
            self.answered += label is not None
        told = (wire.FAILED, -1) if label is None else (wire.OK, label)
        self._answers.put(Answer(found, *told))
        return True

    def answers(self) -> list[Answer]:
        """Those that have not been sent yet."""
        made = []
        while not self._answers.empty():
            made.append(self._answers.get())
        return made

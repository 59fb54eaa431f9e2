"""A person in a remote model's place: requests wait on a desk until somebody answers, perhaps minutes later.

The device has decided long before; the label still teaches it while it holds the sample's ticket.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire

from .inbox import Item
from .models import Batch, Model

MAX_REQUESTS = 256  # on the desk: as many as a device holds tickets for
KEYS, SKIP = "0123456789abcdef", "s"  # that a person presses: one for each class, and one where nobody can tell
ON_THE_WAY_S = 0.5  # an answer must leave so long before the deadline


class Person(Model):
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

    @property
    def request(self) -> worker_wire.Request:
        """What waits."""
        return self.item.request

    def remaining_s(self, clock_s: float) -> float | None:
        """Seconds until the device decides by itself, negative when it has; None: it does not tell. clock_s: of the inbox."""
        remaining_ms = self.request.remaining_ms
        return self.item.came + remaining_ms / 1000 - clock_s if remaining_ms else None


@dataclass(frozen=True)
class Answer:
    """The answer to a request: status and label of the reply. due: when it is sent; the person may take it back until then."""

    waiting: Waiting
    status: int
    label: int
    due: float = 0.0

    def reply(self) -> bytes:
        """The payload of the reply. A person's score is 1."""
        request = self.waiting.request
        return worker_wire.encode_reply(self.status, request.boot, request.sequence, self.label, ONE if self.label >= 0 else 0)


class Desk:
    """For two threads: the worker's adds requests and takes answers, the other shows requests to a person.

    Args:
        classes: number of classes.
        hold_s: seconds for which an answer may be taken back, less where the device would decide without it meanwhile.
        clock: the inbox's, in seconds.

    Attributes:
        label_count: number of labels so far.
    """

    def __init__(self, classes: int, hold_s: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.classes = classes
        self._hold_s, self._clock = hold_s, clock
        self.label_count = 0
        self._next_number = 0
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._answers: deque[Answer] = deque()

    @property
    def size(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def add(self, item: Item) -> None:
        """Add a request. Where there is no room, the oldest is answered "busy"."""
        with self._lock:
            self._waiting.append(Waiting(self._next_number, item))
            self._next_number += 1
            if len(self._waiting) > MAX_REQUESTS:
                self._answers.append(Answer(self._waiting.popleft(), wire.BUSY, -1))

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
            self._answers.append(Answer(waiting, *outcome, self._clock() + self._hold(waiting)))
        return True

    def _hold(self, waiting: Waiting) -> float:
        """Seconds for which an answer is held."""
        remaining = waiting.remaining_s(self._clock())
        if remaining is None or remaining < ON_THE_WAY_S:  # the label teaches, however late
            return self._hold_s
        return min(self._hold_s, remaining - ON_THE_WAY_S)

    def last(self) -> tuple[Answer, float] | None:
        """The last answer that may be taken back, and for how many seconds; None where there is none."""
        with self._lock:
            answer = self._answers[-1] if self._answers else None
            seconds = answer.due - self._clock() if answer else 0.0
            return (answer, seconds) if answer and seconds > 0 else None

    def undo(self) -> bool:
        """Take the last answer back: its request waits again, before all others. Whether there was one."""
        with self._lock:
            if not self._answers or self._answers[-1].due <= self._clock():
                return False
            answer = self._answers.pop()
            self._waiting.appendleft(answer.waiting)
            self.label_count -= answer.label >= 0
            return True

    def take_answers(self, at_once: bool = False) -> list[Answer]:
        """Take the answers that are due and have not been sent. at_once: those that are held, too."""
        with self._lock:
            clock_s = self._clock()
            answers = [answer for answer in self._answers if at_once or answer.due <= clock_s]
            self._answers = deque(answer for answer in self._answers if not at_once and answer.due > clock_s)
            return answers

"""A node that loses no question: what it could not ask waits in a file, and the labels teach when workers answer again."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2t2.clock import ticks_ms
from h2t2.link import wire
from h2t2.link.backoff import Backoff
from h2t2.node.node import DOWN, Node

from ...common import places
from ..database import Schema
from ..failures import of_reply
from .backlog import Backlog
from .lesson import Lesson
from .queue_options import QueueOptions

PAUSE_S = 1.0  # until the next look at a queue all of whose samples may still be answered
MAX_EXPIRED = 4096  # offloads past their deadline whose replies still find their samples
# Numbers of requests for queued samples have this bit. Tickets, which the policy counts up to 2^28 - 1, never do: a reply to
# such a request cannot be taken for that to an offload, and boot, which names this start, stays that of every other message.
QUEUED = 1 << 31
SCHEMA = Schema(
    content="queue of a node",
    table="waiting",
    migrations=(places.text("fleet/queue/node.sql"), places.text("fleet/queue/attempts.sql")),
    remedy="name another file in --queue",
    busy_s=0.5,
    shrinks=True,
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What an offload sends, and what its label teaches.

    Attributes:
        number: its place in the queue; 0: it is not there.
        model: number of the remote model.
        dtype, shape, media, data: as wire.encode_request() takes them.
    """

    model: int
    dtype: int
    shape: tuple[int, ...]
    media: str
    data: bytes
    lesson: Lesson
    number: int = 0

    def request(self, boot: int) -> bytes:
        """The request for a label that only teaches, however late it comes. ValueError for data that do not fit a request."""
        return wire.encode_request(
            self.model,
            boot,
            QUEUED | self.number % QUEUED,
            self.shape,
            self.data,
            chance=self.lesson.probability,
            k=min(self.lesson.bin, 255),
            dtype=self.dtype,
            media=self.media,
        )


@dataclass(frozen=True)
class QueueFile:
    """Where a node keeps its queue, and the bounds of it."""

    path: Path
    options: QueueOptions


class Samples(Backlog[Sample]):
    """The file of a node, as Backlog says."""

    columns = ("model", "dtype", "shape", "media", "data", "lesson")

    def __init__(
        self, file: QueueFile, clock: Callable[[], float] = time.time, lived: Callable[[], float] = time.monotonic
    ) -> None:
        """UserError: the file cannot be used."""
        super().__init__(file.path, SCHEMA, file.options.queue_mb * 1_000_000, file.options.queue_age, clock, lived)

    def add(self, sample: Sample) -> int:
        """Append a sample; its number, or 0 where the disk fails."""
        return self.insert(
            model=sample.model,
            dtype=sample.dtype,
            shape=" ".join(map(str, sample.shape)),
            media=sample.media,
            data=sample.data,
            lesson=sample.lesson.as_json(),
        )

    def parse(self, number: int, row: tuple[Any, ...]) -> Sample:
        """As Backlog.parse."""
        model, dtype, shape, media, data, lesson = row
        return Sample(
            number=number,
            model=int(model),
            dtype=int(dtype),
            shape=tuple(map(int, str(shape).split())),
            media=str(media),
            data=bytes(data),
            lesson=Lesson.parse(str(lesson)),
        )


class QueueNode(Node):
    """A node that keeps the samples of offloads without an answer, and asks about them again, the oldest first.

    It asks about one at a time, when workers answer, nothing else is in flight, and the budget affords it. The label teaches
    what it would have taught in time, and counts as late; `act` is not called, as the sample was decided long ago.

    Attributes:
        queue: the samples.
    """

    def __init__(self, *arguments: Any, queue: Samples, patience: float, **options: Any) -> None:
        """Arguments as of Node.

        Args:
            queue: opened, and closed by the caller.
            patience: seconds until a question counts as unanswered, and is asked again.
        """
        super().__init__(*arguments, **options)
        self.queue, self._patience = queue, patience
        self._offloaded: dict[int, Sample] = {}  # in flight, by their tickets
        self._expired: dict[int, tuple[int, float]] = {}  # ticket -> number in the queue, and when the node asked
        self._question: Sample | None = None  # the sample that the workers are asked about
        self._question_at = self._retry_at = 0.0  # of time.monotonic()
        self._backoff = Backoff(random.SystemRandom().randrange(1 << 28))
        self._size = 0  # bytes of the last request for a queued sample
        self._answered = False  # whether the last reply was an answer

    def report(self, *names: str) -> dict[str, Any]:
        """As Node.report, with the counters of the queue."""
        queue = self.queue
        own = {"queued": queue.length, "queue_dropped": queue.dropped, "queue_stuck": not queue.is_writable}
        return {**super().report(*names), **own}

    def poll(self, wait_ms: int = 0) -> None:
        """As Node.poll, and ask about a queued sample where that is possible."""
        super().poll(wait_ms)
        self._end_question()
        self.queue.flush()
        if self.queue.length and not self._question and self._may_ask():
            self._ask_oldest()

    def _offload(self, sample: tuple[Any, int, int, int], shape: tuple[int, ...], remote: bytes, time_left: int) -> None:
        if len(remote) <= self.data_limit and wire.size_of(self.dtype, shape) == len(remote):
            self._offloaded[self.policy.ticket] = Sample(
                model=self.model_id,
                dtype=self.dtype,
                shape=tuple(shape),
                media=self.media,
                data=bytes(remote),
                lesson=Lesson.of(self.policy),
            )
        super()._offload(sample, shape, remote, time_left)

    def _give_up(self, ticket: int) -> None:
        """As Node._give_up; the ticket of a sample that goes into the queue is not lost."""
        sample = self._offloaded.pop(ticket, None)
        if sample is None:
            super()._give_up(ticket)
            return
        self._fall_back(ticket)  # before the disk
        if self._keep(ticket, sample):
            del self._expired[ticket]  # no reply will come
        elif not self.policy_torn:
            self.policy.lose(ticket)

    def _fall_back(self, ticket: int) -> None:
        """As Node._fall_back. A reply may still come: it teaches what the queue keeps."""
        super()._fall_back(ticket)
        sample = self._offloaded.pop(ticket, None)
        if sample:
            self._keep(ticket, sample)

    def _keep(self, ticket: int, sample: Sample) -> bool:
        """Queue a sample; its lesson replaces its ticket. False where the disk fails: the ticket stays."""
        number = self.queue.add(sample)
        if not number:
            return False
        if not self.policy_torn:
            self.policy.tickets.take(ticket)
        self._expired[ticket] = number, time.monotonic()
        while len(self._expired) > MAX_EXPIRED:
            del self._expired[next(iter(self._expired))]
        return True

    def _take_reply(self, payload: bytes) -> None:
        """As Node._take_reply, and take replies about samples of the queue."""
        try:
            status, boot, sequence, label, _ = wire.decode_reply(payload)
        except ValueError:
            boot = status = sequence = label = -1
        number = 0
        if boot == self.boot:
            if status == wire.OK:
                self._answered = True
                self.queue.attempts.end_outage()
            if status == wire.OK or not of_reply(status).waits:
                self._offloaded.pop(sequence, None)  # answered, or never to be
            number = sequence % QUEUED if sequence >= QUEUED else self._expired.pop(sequence, (0, 0.0))[0]
        if not number:
            super()._take_reply(payload)
            return
        self._note_status(status, sequence)
        self._take_label(number, status, label)

    def _take_label(self, number: int, status: int, label: int) -> None:
        """Take the reply about a sample of the queue, asked about for the first time or again."""
        sample = self.queue.find(number)
        if self._question and self._question.number == number:
            self._question = None
        if status != wire.OK and of_reply(status).waits:
            if status == wire.BUSY:
                self.queue.withdraw(number)
            else:
                self._note_failure(number)
            self._wait()
            return
        self._backoff.reset()
        self._retry_at = 0.0
        if sample is None:
            self.strangers += 1
            return
        if status != wire.OK or label >= self.policy.classes:
            self.queue.remove(number)
            self.queue.dropped += 1
        else:
            self.queue.remove(number, lambda: self._teach(sample.lesson, label))

    def _teach(self, lesson: Lesson, label: int) -> None:
        """Let the label of a queued sample teach."""
        self.late += bool(self.change(lesson.teach, self.policy, label))

    def _end_question(self) -> None:
        """Give up a question without an answer; its sample stays in the queue."""
        if not self._question:
            return
        is_down = self.standing() == DOWN
        if not is_down and time.monotonic() - self._question_at < self._patience:
            return
        if is_down:
            self.queue.withdraw(self._question.number)
        else:
            self._count_unanswered(ticks_ms(), QUEUED | self._question.number % QUEUED)
            self._note_failure(self._question.number)
        self._question = None
        self._wait()

    def _note_failure(self, number: int) -> None:
        """Note that a sample of the queue got no answer. It is the sample's fault where others have just got one."""
        if self.queue.fail(number, own=self._answered):
            self.queue.dropped += 1
        self._answered = False

    def _wait(self) -> None:
        """Ask about no sample of the queue for a while, which doubles until an answer comes."""
        self._retry_at = time.monotonic() + self._backoff.draw() / 1000

    def _may_ask(self) -> bool:
        """Whether workers answer and have nothing else of this node to do, no command paused it, and the budget affords it."""
        if self.in_flight or self.paused or self.policy_torn or time.monotonic() < self._retry_at:
            return False
        if self.budget:
            self.credit_budget(False)
            if not self.budget.affords(self._size):
                return False
        return self._is_reachable(ticks_ms())

    def _ask_oldest(self) -> None:
        """Ask about the oldest sample that fits the policy and the remote model; drop older ones that do not."""
        earliest = time.monotonic() - self._patience
        waiting = {number for number, asked_at in self._expired.values() if asked_at > earliest}
        question, dropped = self.queue.oldest(waiting, self._question_about)
        self.queue.dropped += dropped
        if question:
            self._send(*question)
        elif not dropped:  # the answers to all of them may still come
            self._retry_at = time.monotonic() + PAUSE_S

    def _question_about(self, sample: Sample) -> tuple[Sample, bytes]:
        """A queued sample and its request. ValueError, struct.error: nobody can label it, or its label teaches nothing."""
        if (sample.model, sample.dtype) != (self.model_id, self.dtype) or len(sample.data) > self.data_limit:
            raise ValueError("the remote model is another one")
        if not sample.lesson.fits(self.policy):
            raise ValueError("the policy is another one")
        request = sample.request(self.boot)
        if self.budget and self.budget.cost(len(request)) > self.budget.capacity:
            raise ValueError(f"{len(request)} bytes are more than the budget ever affords")
        return sample, request

    def _send(self, sample: Sample, request: bytes) -> None:
        """Send a request for a queued sample, if the budget affords it."""
        self._size = len(request)
        if self.budget and not self.budget.affords(self._size):
            return
        if not self.queue.begin(sample.number):
            return
        if not self.link.send(request):
            self.queue.withdraw(sample.number)
            self._wait()
            return
        self.pay(self.policy, self._size)
        self._question, self._question_at = sample, time.monotonic()
        for ticket, (number, _) in list(self._expired.items()):
            if number == sample.number:
                self._expired[ticket] = number, self._question_at
        if self.retry_ms:  # the workers were silent: this is a probe
            self.probe = (QUEUED | sample.number % QUEUED, ticks_ms(), self.link.announcements)

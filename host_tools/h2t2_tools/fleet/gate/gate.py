"""The gate: decides detections with a policy for each stream, asks the remote model, and lets late labels teach."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2t2.core.budget import Budget
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.link.backoff import Backoff
from h2t2.node.account import Account

from ..queue.lesson import NO_LESSON, Lesson
from . import config as configuration
from .backlog import Backlog, Waiting
from .config import REQUEST_SIZE, GateConfig
from .detection import LONGEST_KEY, Decision, Detection, Payload
from .remote import Answer, ModelRemote, Question, Remote
from .streams import Stream, Streams

LOG = logging.getLogger(__name__)
LOCAL, REMOTE, FALLBACK = "local", "remote", "fallback"
SHARE_OF_DEADLINE = 7 / 8  # in which an answer decides, as on a node; the rest of the deadline is for publishing
TURN_S = 0.05  # between two looks at deadlines, the queue and snapshots
LOGGED_FAILURES = 20
MAX_QUESTIONS = 256  # without an answer, decided or not; further samples wait in the queue
MAX_MISFITS = 16  # samples of another policy that one look at the queue drops
Act = Callable[[Decision], object]


@dataclass(kw_only=True)
class _Pending:
    """A question whose answer has not come. bin: of the score. decided: whether its decision is published."""

    detection: Detection
    stream: Stream
    lesson: Lesson
    acts: list[Act]
    began: float
    bin: int
    unfamiliar: bool = False
    decided: bool = False


@dataclass(kw_only=True)
class Counters:
    """What a gate has counted since its start.

    Attributes:
        samples: decisions.
        offloads: decisions that the policy wanted to ask for.
        replies: answers that decided.
        late: answers that came later and taught.
        fallbacks: decisions of the policy that had to do without an answer.
        unaffordable, unasked, crowded: decisions without the policy: the budget was spent, a command paused the gate, too many
            questions were in flight.
        repeated: messages whose identity was decided before.
        unfamiliar: decisions about scores that their stream has hardly seen.
        failed: questions that will never have an answer: no picture, an invalid answer, a sample of another policy.
    """

    samples: int = 0
    offloads: int = 0
    replies: int = 0
    late: int = 0
    fallbacks: int = 0
    unaffordable: int = 0
    unasked: int = 0
    crowded: int = 0
    repeated: int = 0
    unfamiliar: int = 0
    failed: int = 0


class Gate:
    """Decides detections. Several threads may use it.

    Args:
        config: its configuration.
        remote: the remote model; None: the one that the configuration names.
        act: is called with the decisions that a former start left unpublished.
    """

    def __init__(self, config: GateConfig, remote: Remote | None = None, act: Act = lambda decision: None) -> None:
        """UserError: the configuration names something that cannot be used."""
        self.config, self.counters = config, Counters()
        folder = config.folder / config.state
        self.streams = Streams(config, folder)
        self.backlog = Backlog(folder / "gate.db", config.queue_mb * 1_000_000, config.queue_age, config.remember)
        self.account = Account(config.bits)
        self.last: tuple[int, int, int] | None = None
        self.paused_until = 0.0
        budget = config.budget_arguments()
        self.budget = Budget(**budget) if budget else None
        if self.budget and self.streams.restored:
            self.budget.level = 0  # nobody knows what was spent before
        self._remote = remote or ModelRemote(config, LOG.warning)
        self._size = REQUEST_SIZE  # bytes of the last payload
        self._credited = time.monotonic()
        self._backoff = Backoff(random.SystemRandom().randrange(1 << 28))
        self._retry_at = 0.0  # when a remote model that is away is asked again; 0: it is not away
        self._pending: dict[int, _Pending] = {}
        self._number = 0
        self._misfits = 0  # samples of the queue that did not fit the policy
        self._asked_from_queue = 0  # the number of the sample of the queue that the remote model is asked about; 0: none
        self._lock = threading.RLock()
        self._ended = threading.Event()
        for waiting in self.backlog.undecided():
            self._decide_again(waiting, act)
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)
        self._thread.start()

    @classmethod
    def of_file(cls, path: str | Path) -> Gate:
        """The gate of a gate.toml. UserError for a wrong one."""
        return cls(configuration.load(Path(path)))

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_away(self) -> bool:
        """Whether the remote model is away."""
        return self._retry_at > 0

    @property
    def lessons(self) -> int:
        """Labels that the policies have learned from."""
        return sum(stream.policy.lessons for stream in self.streams)

    def decide(self, key: str, score: float | tuple[float, ...], payload: Payload | bytes = b"", **entries: Any) -> Decision:
        """Decide a sample and wait for it, at most until the deadline.

        Args:
            key: the stream: a camera, a room.
            score: 0 to 1, of class 1; or the scores of all classes.
            payload: what the remote model would see; bytes: a picture.
            entries: further ones of Detection: identity, label, features.

        Raises:
            ValueError: the score, the number of features or the picture is wrong.
        """
        if isinstance(payload, bytes):
            from .message import media_of

            payload = Payload(data=payload, media=media_of(payload)) if payload else Payload()
        decisions: list[Decision] = []
        decided = threading.Event()

        def act(decision: Decision) -> None:
            decisions.append(decision)
            decided.set()

        self.submit(Detection(key, score, payload=payload, **entries), act)
        decided.wait()
        return decisions[0]

    def submit(self, detection: Detection, act: Act) -> None:
        """Decide a sample. `act` is called once with the decision, within the deadline, in this thread or another one.

        Raises:
            ValueError: the key, the score or the number of features is wrong.
        """
        began = time.monotonic()
        with self._lock:
            if detection.identity and self._repeats(detection, act):
                return
            if not 0 < len(detection.key.encode()) <= LONGEST_KEY:
                raise ValueError(f"key: want 1 to {LONGEST_KEY} bytes")
            stream = self.streams.get(detection.key)
            policy = stream.policy
            reading = stream.reading(detection)
            if len(detection.features) != self.config.feature_count:
                raise ValueError(f"{len(detection.features)} features; feature_count is {self.config.feature_count}")
            k = policy.bin(reading)
            unfamiliar = stream.is_unfamiliar(k)
            self._count(stream, k, unfamiliar)
            pending = _Pending(
                detection=detection, stream=stream, lesson=NO_LESSON, acts=[act], began=began, bin=k, unfamiliar=unfamiliar
            )
            if not self._may_decide(detection):
                self._publish(pending, 0, policy.likely(reading), FALLBACK)
                return
            charge = min(ONE, policy.beta + self.budget.price()) if self.budget else policy.beta
            if charge != policy.charge:
                policy.set_charge(charge)
            action = policy.decide(reading)
            if action != OFFLOAD:
                self._publish(pending, 0, action, LOCAL)
                return
            pending.lesson = Lesson.take(policy, tuple(reading) if detection.features else ())
            stream.offloads += 1
            self.counters.offloads += 1
            number = self.backlog.add(detection, pending.lesson)
            if self._retry_at or len(self._pending) >= MAX_QUESTIONS:
                self._fall_back(pending, number)
                return
            number = number or self._next_number()
            self._pending[number] = pending
            self._spend(detection.payload, policy)
        seconds = self.config.deadline * SHARE_OF_DEADLINE
        self._remote.ask(Question.about(detection, pending.lesson, seconds), lambda answer: self._take(number, answer))

    def pause(self, seconds: float) -> None:
        """Ask nothing for a time; 0 ends the pause."""
        self.paused_until = time.monotonic() + seconds if seconds else 0.0

    @property
    def paused(self) -> bool:
        """Whether a command has paused the gate."""
        return time.monotonic() < self.paused_until

    def change(self, action: Callable[[Stream], object]) -> None:
        """Do something to every stream, while nothing else changes them, and save them."""
        with self._lock:
            for stream in self.streams:
                action(stream)
                stream.keeper.save()
        self._flush()

    def close(self) -> None:
        """Decide what is in flight, save what was learned, and end. What was asked waits in the queue for the next start."""
        self._ended.set()
        self._thread.join()
        self._remote.close()
        with self._lock:
            for number, pending in list(self._pending.items()):
                self._fall_back(pending, number)
            self._pending.clear()
        self.change(lambda stream: None)
        self.backlog.close()

    def _repeats(self, detection: Detection, act: Act) -> bool:
        """Whether the identity of a detection was decided before, or is about to be; its decision is published again."""
        for pending in self._pending.values():
            same = pending.detection.identity == detection.identity and pending.detection.topic == detection.topic
            if same and not pending.decided:
                self.counters.repeated += 1
                pending.acts.append(act)
                return True
        decision = self.backlog.decision(detection.topic, detection.identity)
        if decision:
            self.counters.repeated += 1
            act(decision)
        return decision is not None

    def _count(self, stream: Stream, k: int, unfamiliar: bool) -> None:
        self.counters.samples += 1
        stream.samples += 1
        self.account.count_score(k)
        if unfamiliar:
            self.counters.unfamiliar += 1
            stream.unfamiliar += 1
        if self.budget:
            self.budget.earn(self._elapsed_ms())

    def _elapsed_ms(self) -> int:
        """Milliseconds since the last call."""
        clock = time.monotonic()
        elapsed = int((clock - self._credited) * 1000)
        self._credited += elapsed / 1000
        return elapsed

    def _may_decide(self, detection: Detection) -> bool:
        """Whether the policy decides; counts why not."""
        if self.paused or detection.payload.empty:
            self.counters.unasked += 1
        elif sum(not pending.decided for pending in self._pending.values()) >= self.config.in_flight:
            self.counters.crowded += 1
        elif self.budget and not self.budget.affords(self._size):
            self.counters.unaffordable += 1
        else:
            return True
        return False

    def _spend(self, payload: Payload, policy: Any) -> None:
        self._size = len(payload.data) or self._size
        self.account.paid += policy.beta
        if self.budget:
            self.budget.spend(self._size)

    def _next_number(self) -> int:
        """A number for a question that the disk could not store: negative, as rows have positive ones."""
        self._number -= 1
        return self._number

    def _take(self, number: int, answer: Answer) -> None:
        """Take the answer to a question about a new sample."""
        with self._lock:
            pending = self._pending.pop(number, None)
            if pending is None:
                return
            policy, lesson = pending.stream.policy, pending.lesson
            taught = self._learn(pending.stream, lesson, answer)
            if pending.decided:
                self.counters.late += taught
            elif 0 <= answer.label < policy.classes:
                self.counters.replies += 1
                if taught:
                    waited_ms = int((time.monotonic() - pending.began) * 1000)
                    self.account.count_answer(policy, pending.bin, lesson.local, answer.label, waited_ms)
                self._publish(pending, number, answer.label, REMOTE)
            else:
                self._fall_back(pending, number)
            self._settle(number, pending.detection, answer)

    def _learn(self, stream: Stream, lesson: Lesson, answer: Answer) -> bool:
        """Note an answer, and let its label teach. Returns whether it taught."""
        if answer.payload:
            self._size = len(answer.payload.data) or self._size
        if answer.label < 0:
            self._note_failure(answer)
            return False
        self._note_success()
        if answer.label >= stream.policy.classes:
            self.counters.failed += 1
            return False
        try:
            taught = lesson.teach(stream.policy, answer.label)
        except Exception:  # of a policy: the gate goes on, and the sample is not asked about again
            LOG.exception("%s: a label", stream.key)
            return False
        if taught:
            stream.keeper.save_if_due()
        return taught

    def _settle(self, number: int, detection: Detection, answer: Answer) -> None:
        """Remove a sample from the queue, unless it is of use to ask again; then keep its picture."""
        if not answer.again:
            self.backlog.remove(number)
        elif answer.payload and answer.payload.data and not detection.payload.data:
            self.backlog.keep_payload(number, answer.payload)

    def _note_failure(self, answer: Answer) -> None:
        """Count a failure. A remote model that is away gets no new questions for a while, which doubles."""
        if answer.away:
            if not self._retry_at:
                LOG.warning("the remote model is away: %s; samples wait in the queue", answer.why)
            self._retry_at = time.monotonic() + self._backoff.draw() / 1000
            return
        self.counters.failed += not answer.again
        if self.counters.failed <= LOGGED_FAILURES or not self.counters.failed & 1023:
            LOG.warning("no answer: %s", answer.why)

    def _note_success(self) -> None:
        if self._retry_at:
            LOG.info("the remote model answers again; %d samples wait in the queue", self.backlog.length)
        self._retry_at = 0.0
        self._backoff.reset()

    def _fall_back(self, pending: _Pending, number: int) -> None:
        """Decide locally what the policy wanted to ask, once."""
        if not pending.decided:
            self.counters.fallbacks += 1
            self._publish(pending, number, pending.lesson.local, FALLBACK)

    def _publish(self, pending: _Pending, number: int, choice: int, source: str) -> None:
        """Remember a decision, and hand it over."""
        detection, stream = pending.detection, pending.stream
        pending.decided = True
        stream.last = choice
        self.last = (pending.bin, choice, (LOCAL, REMOTE, FALLBACK).index(source))
        beta = stream.policy.beta / ONE
        decision = Decision(
            id=detection.identity,
            key=detection.key,
            decision=choice,
            label=self.config.names[choice],
            source=source,
            score=detection.score,
            bin=pending.bin if stream.policy.classes == 2 else -1,
            cost=round(beta, 4) if source == REMOTE else stream.expected_cost(pending.bin, choice),
            unfamiliar=pending.unfamiliar,
            detected=detection.label,
            ms=int((time.monotonic() - pending.began) * 1000),
            topic=detection.topic,
        )
        self.backlog.decide(decision, number if number > 0 else 0)
        try:
            for act in pending.acts:
                act(decision)
        except Exception:  # of a user's function: the decision stands
            LOG.exception("a decision could not be handed over")

    def _decide_again(self, waiting: Waiting, act: Act) -> None:
        """Decide a sample locally that a former start was killed with."""
        detection, stream = waiting.detection, self.streams.get(waiting.detection.key)
        if not stream.fits(detection, waiting.lesson):
            self._drop(waiting)
            return
        k = int(stream.policy.bin(stream.reading(detection)))
        self.counters.samples += 1
        self.counters.offloads += 1
        pending = _Pending(detection=detection, stream=stream, lesson=waiting.lesson, acts=[act], began=time.monotonic(), bin=k)
        self._fall_back(pending, waiting.number)

    def _drop(self, waiting: Waiting) -> None:
        """Remove a sample of the queue that the policy cannot learn from."""
        self.backlog.remove(waiting.number)
        self.counters.failed += 1
        if not self._misfits:
            LOG.warning("the queue holds samples of another policy (bits, classes, features); they are dropped")
        self._misfits += 1

    def _run(self) -> None:
        while not self._ended.wait(TURN_S):
            try:
                with self._lock:
                    self._expire()
                    question = self._next_from_queue()
                if question:
                    waiting, stream = question
                    self._ask_from_queue(waiting, stream)
                self._flush()
            except Exception:  # the gate goes on
                LOG.exception("the gate")

    def _expire(self) -> None:
        """Decide what is past its deadline. The answer may still come and teach."""
        latest = time.monotonic() - self.config.deadline * SHARE_OF_DEADLINE
        for number, pending in list(self._pending.items()):
            if pending.began <= latest:
                self._fall_back(pending, number)

    def _next_from_queue(self) -> tuple[Waiting, Stream] | None:
        """The next sample of the queue to ask about, if it is time and the budget affords it."""
        if self._asked_from_queue or self.paused or time.monotonic() < self._retry_at:
            return None
        if self.budget:
            self.budget.credit(self._elapsed_ms())
            if not self.budget.affords(self._size):
                return None
        for _ in range(MAX_MISFITS):
            waiting = self.backlog.oldest(self._pending)
            if waiting is None:
                return None
            stream = self.streams.get(waiting.detection.key)
            if stream.fits(waiting.detection, waiting.lesson):
                self._spend(waiting.detection.payload, stream.policy)
                self._asked_from_queue = waiting.number
                return waiting, stream
            self._drop(waiting)
        return None

    def _ask_from_queue(self, waiting: Waiting, stream: Stream) -> None:
        def take(answer: Answer) -> None:
            with self._lock:
                self._asked_from_queue = 0
                self.counters.late += self._learn(stream, waiting.lesson, answer)
                self._settle(waiting.number, waiting.detection, answer)
                question = self._next_from_queue() if answer.label >= 0 and not self._ended.is_set() else None
            if question:
                self._ask_from_queue(*question)

        self._remote.ask(Question.about(waiting.detection, waiting.lesson), take)

    def _flush(self) -> None:
        """Write the snapshots that are due, outside the lock: decisions do not wait for the disk."""
        for stream in self.streams:
            try:
                stream.store.flush()
            except OSError as error:
                stream.keeper.unsaved += 1
                LOG.error("%s: the snapshot is not saved: %s", stream.key, error)

"""The gate: decides detections with a policy for each stream, asks the remote model, and lets late labels teach."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h2t2.core.budget import Budget
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.node.asking import Asking
from h2t2.node.spent import Spent
from h2t2.node.store import file_store

from ...common import event, policies
from ...common.durations import Clock
from ...common.lock import hold
from ...common.log import is_logged
from ...common.untrusted import one_line
from ..queue.attempts import Attempts
from ..queue.lesson import NO_LESSON, Lesson
from . import gate_config as configuration
from .detection import LONGEST_KEY, LONGEST_TEXT, Decision, Detection, Payload
from .gate_backlog import Backlog, Waiting
from .gate_config import REQUEST_SIZE, GateConfig
from .media import media_of
from .remote import Answer, Deliver, ModelRemote, Question, Remote
from .remote_health import Health
from .streams import Stream, Streams

LOG = logging.getLogger(__name__)
LOCAL, REMOTE, FALLBACK = "local", "remote", "fallback"
TURN_S = 0.05  # between two looks at deadlines, the queue and snapshots
MAX_QUESTIONS = 256  # without an answer, decided or not; further samples wait in the queue
KILLED = "the gate was ended before the answer came"
OTHER_POLICY = "another policy: bits, classes, features"
Act = Callable[[Decision], object]


@dataclass(kw_only=True)
class _Pending:
    """A question whose answer has not come. mark: the detection's. bin: of the score. decided: its decision is published."""

    detection: Detection
    mark: str
    stream: Stream
    lesson: Lesson
    acts: list[Act]
    began: float
    bin: int
    unfamiliar: bool = False
    decided: bool = False


class Gate(Asking):
    """Decides detections. Several threads may use it.

    Args:
        config: its configuration.
        remote: the remote model; None: the one that the configuration names.
        act: is called with the decisions that a former start left unpublished.
        clock: seconds, for the waits until the remote model is asked again.

    Attributes:
        repeated: messages that came again within minutes.
        unfamiliar: decisions about scores that their stream has hardly seen.
        failed: questions that will never have an answer: no picture, an invalid answer, a sample of another policy.
    """

    def __init__(
        self, config: GateConfig, remote: Remote | None = None, act: Act = lambda decision: None, clock: Clock = time.monotonic
    ) -> None:
        """UserError: the configuration names something that cannot be used."""
        self.config = config
        self.repeated = self.unfamiliar = self.failed = 0
        folder = config.folder / config.state
        with suppress(OSError):  # Streams says what is wrong
            folder.mkdir(parents=True, exist_ok=True)
        self._folder_lock = hold(folder, "h2t2 gate", "give one of them another `state`")
        self.streams = Streams(config, folder)
        self.backlog = Backlog(folder / "gate.db", config.queue_mb * 1_000_000, config.queue_age, config.remember)
        self.paused_until = 0.0
        budget = config.budget_arguments()
        super().__init__(config.bits, round(config.deadline * 1000), Budget(**budget) if budget else None)
        self._spent = Spent(self.budget, file_store(f"{folder / 'budget'}")) if self.budget and self.budget.limit else None
        self._unsaved = 0  # times that the file of the budget could not be written
        self._remote = remote or ModelRemote(config, LOG.warning)
        self._size = REQUEST_SIZE  # bytes of the last payload
        self.health = Health(clock)
        self.backlog.attempts = Attempts(clock)
        self._pending: dict[int, _Pending] = {}
        self._number = 0
        self._asked_from_queue = 0  # the number of the sample of the queue that the remote model is asked about; 0: none
        self._lock = threading.RLock()
        self._ended = threading.Event()
        if config.classes == 2:
            LOG.info(event.in_words(config.names[1] if config.class_names else "class 1", config.delta_fp, config.delta_fn))
        self._remote.test(self._take_test)
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
            payload = Payload(data=payload, media=media_of(payload)) if payload else Payload()
        decision: Future[Decision] = Future()
        self.submit(Detection(key, score, payload=payload, **entries), decision.set_result)
        return decision.result()

    def ask(self, question: Question, deliver: Deliver) -> None:
        """Ask the remote model for a node, which decides and learns by itself; as Remote.ask()."""
        self._remote.ask(question, deliver)

    def submit(self, detection: Detection, act: Act, stored: Callable[[], object] = lambda: None) -> None:
        """Decide a sample.

        Args:
            act: is called once with the decision, within the deadline, in this thread or another one.
            stored: is called where the disk has the sample before it is decided: a later start decides it then.

        Raises:
            ValueError: the key, the score or the number of features is wrong.
        """
        began = time.monotonic()
        with self._lock:
            mark = detection.mark()
            if mark and detection.may_repeat and self._repeats(detection, mark, act, stored):
                return
            if not 0 < len(detection.key.encode()) <= LONGEST_KEY:
                raise ValueError(f"key: want 1 to {LONGEST_KEY} bytes")
            stream = self.streams.get(detection.key)
            policy = stream.policy
            reading = policies.reading(policy, detection.score, detection.features)
            if len(detection.features) != self.config.feature_count:
                raise ValueError(f"{len(detection.features)} features; feature_count is {self.config.feature_count}")
            k = policy.bin(reading)
            unfamiliar = stream.is_unfamiliar(k)
            self._count(detection, stream, k, unfamiliar)
            pending = _Pending(
                detection=detection, mark=mark, stream=stream, lesson=NO_LESSON, acts=[act], began=began, bin=k,
                unfamiliar=unfamiliar,
            )  # fmt: skip
            may_ask = not self.paused and not detection.payload.empty
            undecided = sum(not question.decided for question in self._pending.values())
            has_room = undecided < self.config.in_flight
            if not self.may_decide(may_ask, has_room, self._size):
                self._publish(pending, 0, policy.likely(reading), FALLBACK, self._obstacle(detection, has_room))
                return
            stream.pass_time(began)
            self.set_charge(policy, policy.beta)
            action = policy.decide(reading)
            if action != OFFLOAD:
                self._publish(pending, 0, action, LOCAL, "the score is enough")
                return
            pending.lesson = Lesson.take(policy)
            stream.offloads += 1
            self.offloads += 1
            asks = self.health.may_ask() and len(self._pending) < MAX_QUESTIONS
            number = self.backlog.add(detection, pending.lesson, mark, asked=asks)
            if number:
                stored()
            if not asks:
                away = f"the remote model is away: {self.health.unanswered}" if self.health.is_away else ""
                self._fall_back(pending, number, away or f"{MAX_QUESTIONS} questions have no answer yet")
                return
            if not number:  # the disk could not store it: a negative number, as rows have positive ones
                self._number -= 1
                number = self._number
            self._pending[number] = pending
            self._pay(detection.payload, policy)
        question = Question.about(detection, pending.lesson, self.wait_ms / 1000)
        self._remote.ask(question, lambda answer: self._take(number, answer))

    def judge(self, answer: int, truth: int) -> dict[str, Any]:
        """Count an answer of the remote model as right or wrong, by the true class of its sample, which a person tells.

        Returns:
            The error rates, as far as something is known of them.
        """
        with self._lock:
            self.streams.judge(answer, truth)
            return self.streams.errors.rates(self.config.classes)

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
        """End: finish(), and close the file."""
        if not self._ended.is_set():
            self.finish()
        self.backlog.close()
        if self._folder_lock:
            self._folder_lock.release()

    def finish(self) -> None:
        """Decide what is in flight, save what was learned. What was asked waits in the queue for the next start."""
        self._ended.set()
        self._thread.join()
        self._remote.close()
        with self._lock:
            for number, pending in list(self._pending.items()):
                self._fall_back(pending, number, "the gate ended before the answer came")
            for number in (*self._pending, self._asked_from_queue):
                self.backlog.withdraw(number)
            self._pending.clear()
            if self._spent:
                self._spent.ended = True
        self.change(lambda stream: None)

    def _repeats(self, detection: Detection, mark: str, act: Act, stored: Callable[[], object]) -> bool:
        """Whether a detection was decided before, or is about to be; its decision is handed over again."""
        for number, pending in self._pending.items():
            if not pending.decided and (pending.detection.topic, pending.mark) == (detection.topic, mark):
                self.repeated += 1
                pending.acts.append(act)
                if number > 0:
                    stored()
                return True
        decision = self.backlog.decision(detection.topic, mark, of_any_age=detection.redelivered)
        if decision:
            self.repeated += 1
            act(replace(decision, repeated=True))
        return decision is not None

    def hand_over_unpublished(self, take: Callable[[list[Decision]], object]) -> None:
        """Hand over the decisions that the broker does not have, in their order and before any later one."""
        with self._lock:
            take(self.backlog.unpublished())

    def _count(self, detection: Detection, stream: Stream, k: int, unfamiliar: bool) -> None:
        self.samples += 1
        stream.samples += 1
        self.count_score(k)
        if unfamiliar:
            self.unfamiliar += 1
            stream.unfamiliar += 1
        if detection.payload.why:
            self.failed += 1
            if is_logged(self.failed):
                LOG.warning("nothing to ask about: %s", detection.payload.why)
        self.credit_budget(True)

    def _pay(self, payload: Payload, policy: Any) -> None:
        self._size = len(payload.data) or self._size
        self.pay(policy, self._size)

    def _take_test(self, answer: Answer) -> None:
        """Take the outcome of the test question: anything but an answer concerns every sample."""
        with self._lock:
            if answer.label >= 0:
                LOG.info("the remote model answers a test question")
                if not self.health.answers:  # else answers about samples, which came first, tell more
                    self._note_success(0.0)
            else:
                LOG.warning("the remote model does not answer a test question: %s", answer.why)
                self.health.note_failure(answer.why, server=True, retry_s=answer.retry_s)

    def _take(self, number: int, answer: Answer) -> None:
        """Take the answer to a question about a new sample."""
        with self._lock:
            pending = self._pending.pop(number, None)
            if pending is None:
                return
            stream, waited_s, late = pending.stream, time.monotonic() - pending.began, pending.decided
            usable = self._note(number, stream, answer, waited_s if late else 0.0)
            if not late and (usable or self.health.answers):  # otherwise it is known to be away
                self.count_question(stream.policy, pending.bin, pending.lesson.local, int(usable))
            if not late and usable:
                self.replies += 1
                self._publish(pending, number, answer.label, REMOTE, "the remote model answered")
            elif not late:
                unknown = f"the remote model answered class {answer.label} of {stream.policy.classes}"
                self._fall_back(pending, number, unknown if answer.label >= 0 else answer.why)

            def teach() -> None:
                if not self._teach(stream, pending.lesson, answer.label):
                    return
                if late:
                    self.late += 1
                else:
                    local, ms = pending.lesson.local, int(waited_s * 1000)
                    self.count_answer(stream.policy, pending.bin, local, answer.label, ms)

            self._settle(number, pending.detection, answer, teach if usable else None)

    def _note(self, number: int, stream: Stream, answer: Answer, late_s: float = 0.0) -> bool:
        """Note the answer to a question.

        Args:
            number: of the sample in the queue.
            late_s: seconds after which it came, if it came too late to decide.

        Returns:
            Whether its label decides and teaches.
        """
        if answer.payload:
            self._size = len(answer.payload.data) or self._size
        if answer.label < 0:
            self._note_failure(number, answer)
            return False
        self._note_success(late_s)
        if answer.label >= stream.policy.classes:
            self.failed += 1
            return False
        return True

    def _teach(self, stream: Stream, lesson: Lesson, label: int) -> bool:
        """Let a label teach; whether it did."""
        try:
            taught = lesson.teach(stream.policy, label)
        except Exception:  # of a policy: the gate goes on, and the sample is not asked about again
            LOG.exception("%s: a label", stream.key)
            return False
        if taught and stream.keeper.is_due():
            stream.keeper.save()
        return taught

    def _settle(self, number: int, detection: Detection, answer: Answer, teach: Callable[[], None] | None) -> None:
        """Remove a sample from the queue, and let its label teach then; or keep its picture, if it is of use to ask again."""
        if answer.again:
            if answer.payload and answer.payload.data and not detection.payload.data:
                self.backlog.keep_payload(number, answer.payload)
        elif number > 0:
            self.backlog.remove(number, teach or (lambda: None))
        elif teach:  # the disk has never had it
            teach()

    def _note_failure(self, number: int, answer: Answer) -> None:
        """Count a failure: of the remote model, which then gets few questions for a while, or of the sample."""
        own = self.health.answers and not answer.untaken
        again = self.backlog.attempts.has_failed(number)
        dropped = not answer.again or self.backlog.fail(number, own=own)
        self.failed += dropped
        was_away = self.health.is_away
        if answer.away or not again:  # one sample that fails each time is no remote model that is away
            self.health.note_failure(answer.why, server=answer.away, retry_s=answer.retry_s)
        if self.health.is_away and not was_away:
            LOG.warning("the remote model is away: %s; samples wait in the queue", answer.why)
        elif dropped and is_logged(self.failed):
            LOG.warning("no answer: %s", answer.why)

    def _note_success(self, late_s: float) -> None:
        if self.health.is_away:
            LOG.info("the remote model answers again; %d samples wait in the queue", self.backlog.length)
        self.backlog.attempts.end_outage()
        self.health.note_answer(late_s, self.config.deadline)

    def _obstacle(self, detection: Detection, has_room: bool) -> str:
        """Why the policy does not decide a sample, in the order of may_decide()."""
        if detection.payload.empty:
            return detection.payload.why or "the message has no picture, text or tensor"
        if self.paused:
            return "the gate is paused"
        return "the budget is spent" if has_room else f"{self.config.in_flight} questions are under way (in_flight)"

    def _fall_back(self, pending: _Pending, number: int, reason: str) -> None:
        """Decide locally what the policy wanted to ask, once."""
        if not pending.decided:
            self.fallbacks += 1
            self._publish(pending, number, pending.lesson.local, FALLBACK, reason)

    def _publish(self, pending: _Pending, number: int, choice: int, source: str, reason: str) -> None:
        """Remember a decision, and hand it over. reason: why the source is this one; its text may be a stranger's."""
        detection, stream = pending.detection, pending.stream
        pending.decided = True
        if source == FALLBACK and stream.policy.limit:
            choice = stream.policy.limit.bypass(stream.policy, choice)
            if stream.keeper.is_due():
                stream.keeper.save()
        stream.last = choice
        self.last = (pending.bin, choice, (LOCAL, REMOTE, FALLBACK).index(source))
        beta = round(stream.policy.beta / ONE, 4)
        decision = Decision(
            id=detection.identity, key=detection.key, score=detection.score, detected=detection.label, topic=detection.topic,
            mark=pending.mark, bin=pending.bin if stream.policy.classes == 2 else -1, unfamiliar=pending.unfamiliar,
            decision=choice, label=self.config.names[choice], source=source, reason=one_line(reason)[:LONGEST_TEXT],
            cost=beta if source == REMOTE else stream.expected_cost(pending.bin, choice) if pending.bin >= 0 else None,
            ms=int((time.monotonic() - pending.began) * 1000),
        )  # fmt: skip
        decision = self.backlog.decide(decision, number if number > 0 else 0)
        try:
            for act in pending.acts:
                act(decision)
        except Exception:  # of a user's function: the decision stands
            LOG.exception("a decision could not be handed over")

    def _decide_again(self, waiting: Waiting, act: Act) -> None:
        """Decide a sample locally that a former start was killed with."""
        stream, detection = self.streams.get(waiting.detection.key), waiting.detection
        k, choice = self._by_score(stream, detection)
        pending = _Pending(
            detection=detection, mark=waiting.mark, stream=stream, lesson=waiting.lesson, acts=[act], began=time.monotonic(),
            bin=k,
        )  # fmt: skip
        self.samples += 1
        if stream.fits(detection, waiting.lesson):
            self.offloads += 1
            self._fall_back(pending, waiting.number, KILLED)
        else:
            self.failed += 1
            self._publish(pending, waiting.number, choice, FALLBACK, KILLED)
            self.backlog.drop(waiting.number, OTHER_POLICY)

    def _by_score(self, stream: Stream, detection: Detection) -> tuple[int, int]:
        """(bin, class) of a sample by its score alone; -1 and the safest class where it has scores of other classes."""
        policy = stream.policy
        if (len(detection.score) if isinstance(detection.score, tuple) else 2) != policy.classes:
            return -1, int(policy.safest_class())
        reading = policies.reading(policy, detection.score, (0,) * self.config.feature_count)
        return int(policy.bin(reading)), int(policy.likely(reading))

    def _run(self) -> None:
        while not self._ended.wait(TURN_S):
            try:
                with self._lock:
                    self._expire()
                    self.backlog.flush()
                    question = self._next_from_queue()
                if question:
                    waiting, stream = question
                    self._ask_from_queue(waiting, stream)
                self._flush()
            except Exception:  # the gate goes on
                LOG.exception("the gate")

    def _expire(self) -> None:
        """Decide what is past its deadline. The answer may still come and teach."""
        latest = time.monotonic() - self.wait_ms / 1000
        for number, pending in list(self._pending.items()):
            if pending.began <= latest:
                if not pending.decided and self.health.answers:
                    self.count_question(pending.stream.policy, pending.bin, pending.lesson.local, 0)
                self._fall_back(pending, number, f"no answer within {self.config.deadline:g} s (deadline)")

    def _next_from_queue(self) -> tuple[Waiting, Stream] | None:
        """The next sample of the queue to ask about, if it is time and the budget affords it."""
        if self._asked_from_queue or self.paused or not self.health.is_due:
            return None
        if self.budget:
            self.credit_budget(False)
            if not self.budget.affords(self._size):
                return None
        question, dropped = self.backlog.oldest(self._pending, self._with_stream)
        self.failed += dropped
        if not question or not self.backlog.begin(question[0].number):
            return None
        self.health.may_ask()
        self._pay(question[0].detection.payload, question[1].policy)
        self._asked_from_queue = question[0].number
        return question

    def _with_stream(self, waiting: Waiting) -> tuple[Waiting, Stream]:
        """A sample of the queue with its stream. ValueError: it is of another policy."""
        stream = self.streams.get(waiting.detection.key)
        if not stream.fits(waiting.detection, waiting.lesson):
            raise ValueError(OTHER_POLICY)
        return waiting, stream

    def _ask_from_queue(self, waiting: Waiting, stream: Stream) -> None:
        def take(answer: Answer) -> None:
            with self._lock:
                self._asked_from_queue = 0
                usable = self._note(waiting.number, stream, answer)

                def teach() -> None:
                    self.late += self._teach(stream, waiting.lesson, answer.label)

                self._settle(waiting.number, waiting.detection, answer, teach if usable else None)
                question = self._next_from_queue() if answer.label >= 0 and not self._ended.is_set() else None
            if question:
                self._ask_from_queue(*question)

        self._remote.ask(Question.about(waiting.detection, waiting.lesson), take)

    def _flush(self) -> None:
        """Write the snapshots that are due, outside the lock: decisions do not wait for the disk."""
        if self._spent and (self._spent.ended or self._spent.budget.is_due()):
            try:
                for _ in self._spent.saving():
                    pass
            except OSError as error:
                self._unsaved += 1
                if is_logged(self._unsaved):
                    LOG.error("what the budget spends is not saved, so nothing is asked: %s", error)
        for stream in self.streams:
            try:
                stream.store.flush()
            except OSError as error:
                stream.keeper.unsaved += 1
                LOG.error("%s: the snapshot is not saved: %s", stream.key, error)

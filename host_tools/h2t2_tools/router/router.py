"""The router: decides each sample with the local model, or asks the remote one where that pays."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.core.policy import OFFLOAD
from h2t2.node.start import seed_of
from h2t2.units import q15

from ..common import policies
from ..common.matrices import equal_costs
from ..common.policies import DEFAULTS
from ..common.remote_errors import OPTIONS, RemoteErrors
from ..fleet.queue.lesson import Lesson
from . import router_folder
from .decision_log import NOTHING_DECIDED, Log, Report
from .explanation import Explanation, explain
from .models import InvalidAnswer, RouterModel
from .naming import Naming

MOST_CLASSES = 16
SAMPLES_KEPT = 2000  # for export()
MOST_BITS = 8  # of a score on a device
LOCAL, REMOTE, FALLBACK, ASKED = "local", "remote", "fallback", "asked"


@dataclass(frozen=True)
class Decision:
    """What a router says of a sample.

    Attributes:
        label: The class as the models name it (`classes`), otherwise its number from 0.
        source: "local", "remote", "fallback" if the remote model failed or was late, or "asked" if ask_later() wants a label.
        score: The local model's score of class 1; of more than two classes its largest score.
        number: The class's number from 0.
        ticket: Of "asked" and "fallback": what teach() takes with a label that comes later, a text that can be stored.
    """

    label: Any
    source: str
    score: float
    number: int
    ticket: str | None = None


@dataclass(frozen=True)
class _Sample:
    """A sample that the policy has decided.

    Attributes:
        x: The sample.
        bin: Of its score.
        score: As in a Decision.
        local: The class to act on, without an answer.
        lesson: What an answer teaches; None without an offload.
    """

    x: Any
    bin: int
    score: float
    local: int
    lesson: Lesson | None


class Router:
    """Decides samples between a local model, which is cheap, and a remote one, which is right.

    It uses the policy that runs on devices, and learns from each answer of the remote model. Threads may share a router.

        router = Router(local=small, remote=big, beta=0.1)
        for x in samples:
            act(router.decide(x).label)
        router.save("porch")

    `with Router(...) as router:` or `with Router.load(...) as router:` saves at the end.

    Args:
        local: An object with predict_proba, a Keras model, a function, a path or a URL. A function takes a batch (n, ...) and
            returns n scores of class 1, or (n, K) scores.
        remote: One of those, or an object with predict, or an async function. A function may return n class names. A path or a
            URL may be all that `h2t2 rdl` serves.
        beta: Cost of asking the remote model, 0..1.
        delta_fp, delta_fn: Costs of a false alarm and of a missed event, 0..1, of two classes.
        costs: (K, K), of more than two classes: `costs[i][j]` of saying j where i is true, 0..1; None: each mistake costs 1.
        classes: Names of the classes in the order of the local model's scores; None: its classes_, or numbers from 0.
        event: The class that is the event, whose miss costs delta_fn. Two named classes need it; of 0 and 1 it is 1, of False
            and True it is True. Of three classes or more: the policy decides between this class and all others; None: between
            all classes, by `costs`.
        local_columns, remote_columns: Which numbers of a sample the models read; None: all.
        policy: "adaptive" or "h2t2".
        keep: Number of the latest samples that it remembers for export().
        on_decision: Called with each sample and its Decision.
        path: Folder that save() writes without an argument.
        options: Further options of the policy, such as bits, seed, miss_rate or prior. With miss_rate and more than two classes
            `normal` is the class that is no event.

    Attributes:
        failures: Number of questions without an answer, by kind: the type of the exception, or of what is no answer. A warning
            shows the first of each kind.

    Raises:
        UserError: A model is of no known kind.
        ValueError: An option is unknown or out of range. decide() raises it as well, for models that do not fit each other.
    """

    def __init__(
        self,
        local: Any,
        remote: Any,
        *,
        beta: float = DEFAULTS["beta"],
        delta_fp: float = DEFAULTS["delta_fp"],
        delta_fn: float = DEFAULTS["delta_fn"],
        costs: Sequence[Sequence[float]] | None = None,
        classes: Sequence[Any] | None = None,
        event: Any = None,
        local_columns: Sequence[int] | None = None,
        remote_columns: Sequence[int] | None = None,
        policy: str = "adaptive",
        keep: int = SAMPLES_KEPT,
        on_decision: Callable[[Any, Decision], object] | None = None,
        path: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.local = RouterModel(local, "local", local_columns)
        self.remote = RouterModel(remote, "remote", remote_columns)
        unknown = set(options) - policies.option_names(policy) - ({"rdl_confusion"} if costs is not None else set())
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: policy {policy} has no such option")
        policies.check("costs", costs)
        self.beta, self.delta_fp, self.delta_fn = beta, delta_fp, delta_fn
        self.costs = None if costs is None else [list(row) for row in costs]
        self.options = {"seed": seed_of(socket.gethostname(), self.local.name, self.remote.name), **options}
        self.on_decision, self.path = on_decision, None if path is None else Path(path)
        self._kind = policy
        self.naming = Naming(self.local, self.remote, classes, event, costs is not None)
        self._errors = RemoteErrors(remote, self.classes, fixed=not OPTIONS.isdisjoint(options))
        self._make_policy(len(costs) if costs is not None else 2)  # a wrong option fails here, not at the first decision
        for name, value in (("beta", beta), ("delta_fp", delta_fp), ("delta_fn", delta_fn)):
            q15(value, name)
        self.failures: Counter[str] = Counter()
        # with the remote model's class, if it was asked
        self._samples: deque[tuple[np.ndarray, int | None]] = deque(maxlen=keep)
        self._policy: Any = None
        self._log: Log | None = None
        self._lock = threading.RLock()
        self._late: set[asyncio.Future[Any]] = set()  # questions that outlived their deadline

    @property
    def policy(self) -> Any:
        """The runtime's policy. It exists from the first decision on, which tells the number of classes."""
        return self._policy

    @property
    def classes(self) -> list[Any] | None:
        """Names of the classes in the order of their numbers; None: they are numbers."""
        return self.naming.names

    @property
    def event(self) -> Any:
        """The class that is the event; None: it is 1 of numbers from 0, or the policy decides between all classes."""
        event = self.naming.event
        return None if event is None else (self.naming.order or [0, 1])[event]

    # --- decisions

    def decide(self, x: Any) -> Decision:
        """Decide a sample, and learn from the remote model's answer if it was asked.

        Args:
            x: The sample as both models read it, without a batch.

        Raises:
            ValueError: A model gives no scores of this sample.
        """
        return self.decide_many(np.asarray(x)[None])[0]

    def decide_many(self, rows: Any) -> list[Decision]:
        """Decide samples (n, ...) with one call of the local model, and one of the remote model for all that are asked about.

        Where that fails because of a sample, a remote model in a file or behind a URL is asked about each of them alone.

        The policy decides all of them before it learns from the first answer: of a long stream, give some dozens at a time.

        Raises:
            ValueError: As decide().
        """
        if self.remote.is_async:
            raise ValueError(f"remote model {self.remote.name}: an async function; only adecide() awaits it")
        rows = np.asarray(rows)
        samples = self._decide(rows)
        offloaded = [n for n, sample in enumerate(samples) if sample.lesson]
        answers = dict(zip(offloaded, self._ask(rows[offloaded]))) if offloaded else {}
        with self._lock:
            decisions = [self._settle(sample, answers.get(n)) for n, sample in enumerate(samples)]
        for sample, decision in zip(samples, decisions):
            self._tell(sample, decision)
        return decisions

    async def adecide(self, x: Any, *, deadline: float | None = None) -> Decision:
        """Decide a sample while other tasks go on: questions to the remote model run side by side.

        Args:
            x: The sample.
            deadline: Seconds that the answer may take; then the decision is the local one, and a late answer teaches.

        Raises:
            ValueError: As decide().
        """
        batch = np.asarray(x)[None]
        (sample,) = self._decide(batch)
        if sample.lesson:
            question = asyncio.ensure_future(self._aask(batch))
            try:
                await asyncio.wait({question}, timeout=deadline)
            finally:  # also where the caller gives up: the sample is decided once
                answer = question.result() if question.done() else None
                decision = self._settle(sample, answer)
                if not question.done():
                    self._await_late(question, decision.ticket)
        else:
            decision = self._settle(sample, None)
        self._tell(sample, decision)
        return decision

    def ask_later(self, x: Any) -> Decision:
        """Decide a sample whose label comes later, if the policy wants one: from a person, or a model that takes hours.

        A decision whose source is "asked" is the local one, and has a `ticket` for teach(). The remote model is not called.

        Raises:
            ValueError: As decide().
        """
        (sample,) = self._decide(np.asarray(x)[None])
        decision = self._settle(sample, None, later=True)
        self._tell(sample, decision)
        return decision

    def teach(self, ticket: str, label: Any) -> bool:
        """Learn a label that ask_later() wanted, also after a restart. Call it once for a ticket.

        Args:
            ticket: Of the decision.
            label: The class, as the models name it.

        Returns:
            Whether the router learned; False: the ticket has been used, or is of another policy.

        Raises:
            ValueError: The label is none of the classes, or the text is no ticket.
        """
        try:
            entries = json.loads(ticket)
            lesson, number = Lesson.parse(json.dumps(entries["lesson"])), int(entries["number"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"ticket {ticket[:40]!r}: not one of a decision") from error
        with self._lock:
            if self._policy is None or self._log is None or not lesson.fits(self._policy):
                return False
            answer = self.naming.number(label)
            if not self._log.add_late_answer(number, answer):
                return False
            return lesson.teach(self._policy, answer)

    def judge(self, decision: Decision, label: Any) -> bool:
        """Count an answer of the remote model as right or wrong, by the true class that a person tells.

        Tell it of right answers, too: their shares become `rdl_fp` and `rdl_fn`, of more classes `rdl_confusion`, unless the
        options set these.

        Args:
            decision: Whose source is "remote".
            label: The true class, as the models name it.

        Returns:
            Whether it counted: the decision is an answer.

        Raises:
            ValueError: The label is none of the classes.
        """
        true = self.naming.number(label)
        with self._lock:
            if decision.source != REMOTE or self._policy is None:
                return False
            self._errors.judge(decision.number, true)
            self._errors.tell(self._policy)
        return True

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        scores = self.local.scores(rows)
        if scores.dtype.kind == "O":
            raise ValueError(f"local model {self.local.name}: it gives names; the policy needs its scores")
        return self.naming.scores(scores)

    def _decide(self, rows: np.ndarray) -> list[_Sample]:
        scores = self._scores(rows)
        with self._lock:
            return [self._decide_one(x, row) for x, row in zip(rows, scores)]

    def _decide_one(self, x: Any, row: Any) -> _Sample:
        """Let the policy decide a sample by the local model's score, or its scores of three classes or more."""
        if self._policy is None:
            self._start(len(row) if row.ndim else 2)
        policy = self._policy
        score = float(row.max() if row.ndim else row)
        if (len(row) if row.ndim else 2) != policy.classes:
            raise ValueError(f"local model {self.local.name}: it gives another number of scores than before")
        reading = policies.reading(policy, row.tolist() if row.ndim else score)
        k, action = policy.bin(reading), policy.decide(reading)
        local, lesson = (policy.local, Lesson.take(policy)) if action == OFFLOAD else (action, None)
        return _Sample(x=x, bin=k, score=score, local=local, lesson=lesson)

    def _settle(self, sample: _Sample, answer: int | None, later: bool = False) -> Decision:
        """Learn the remote model's class of a sample, take the decision down, and return it.

        answer: None without one. later: the sample was not asked about, because its label comes later.
        """
        number, source = sample.local, LOCAL
        with self._lock:
            policy, log = self._policy, self._log
            assert log is not None
            if sample.lesson and answer is not None:
                number, source = answer, REMOTE
                sample.lesson.teach(policy, answer)
            elif sample.lesson:
                source = ASKED if later else FALLBACK
                number = policy.limit.bypass(policy, sample.local) if policy.limit else sample.local
            self._samples.append((sample.x, answer))
            place = log.add(sample.bin, offloaded=bool(sample.lesson), answer=answer, local=sample.local, acted=number)
        ticket = None
        if sample.lesson and answer is None:
            ticket = json.dumps({"number": place, "lesson": json.loads(sample.lesson.as_json())})
        return Decision(self.naming.name(number), source, sample.score, number, ticket)

    def _tell(self, sample: _Sample, decision: Decision) -> None:
        if self.on_decision:
            self.on_decision(sample.x, decision)

    def _ask(self, rows: np.ndarray) -> list[int | None]:
        """Return the remote model's class of each sample, or None where it fails."""
        try:
            answers, errors = self.remote.answers(rows)
        except Exception as error:  # a model of any library
            self._note_failure(error, len(rows))
            return [None] * len(rows)
        for failure in errors.values():
            self._note_failure(failure)
        return [None if n in errors else self._class_of(answer) for n, answer in enumerate(answers)]

    async def _aask(self, batch: np.ndarray) -> int | None:
        """As _ask of one sample, while other tasks go on."""
        try:
            answers = await self.remote.ascores(batch)
        except Exception as error:  # a model of any library
            self._note_failure(error)
            return None
        return self._class_of(answers[0])

    def _class_of(self, answer: Any) -> int | None:
        """Return the class that the remote model's answer names, or None if it names none."""
        try:
            return self.naming.of_answer(answer)
        except InvalidAnswer as error:
            self._note_failure(error)
            return None

    def _await_late(self, question: asyncio.Future[int | None], ticket: str | None) -> None:
        """Let an answer that comes after its deadline teach."""
        assert ticket is not None

        def end(late: asyncio.Future[int | None]) -> None:
            self._late.discard(late)
            if not late.cancelled() and (answer := late.result()) is not None:
                self.teach(ticket, self.naming.name(answer))

        self._late.add(question)
        question.add_done_callback(end)

    def report(self, labels: Sequence[Any] | None = None) -> Report:
        """Return what the decisions so far cost.

        Args:
            labels: The true class of each sample so far, in their order: they judge the local decisions. None: the answers of
                the remote model do.

        Raises:
            ValueError: There are more or fewer labels than decisions, or a label is none of the classes.
        """
        true = self._true_classes(labels) if self._log or labels else None
        return self._log.report(true) if self._log else NOTHING_DECIDED

    def explain(self, labels: Sequence[Any] | None = None) -> Explanation:
        """Return what the router has learned, by the local model's score: a table, and a picture in a notebook.

        Args:
            labels: As of report().

        Raises:
            ValueError: As report(), or there is no decision yet.
        """
        if self._log is None:
            raise ValueError("explain: no decision yet")
        return explain(self._log, self._true_classes(labels))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what the router has learned."""
        return (self.explain() if self._log else NOTHING_DECIDED)._repr_html_()

    def save(self, path: str | Path | None = None) -> None:
        """Save the router into a folder: its options, its decisions, and the same snapshot as a device's.

        A device goes on where the router stopped, from a copy of the folder's h2t2.state.0 and .1 (docs/from-a-notebook.md).

        Args:
            path: The folder; None: `path` of the router.

        Raises:
            ValueError: No folder was named, or there is no decision yet.
            OSError: The folder cannot be written.
        """
        place = self.path if path is None else Path(path)
        if place is None:
            raise ValueError("save: name a folder")
        if self._log is None:
            raise ValueError("save: no decision yet")
        with self._lock:
            options = {**self._options(), "number": self._policy.classes, "judged": self._errors.judged}
            router_folder.write(place, options, self._policy, self._log.columns())

    @classmethod
    def load(cls, path: str | Path, *, local: Any, remote: Any, **options: Any) -> Router:
        """Return a router that goes on where one was saved, or where a device was.

        Args:
            path: The folder that save() wrote; or a device's snapshot, PATH of its PATH.0 and PATH.1.
            local, remote: The models, which are not saved.
            options: What differs from the saved options; for a device's snapshot, those of the device.

        Raises:
            ValueError: There is no complete snapshot, or it is of a policy with other options.
            UserError: As Router().
        """
        saved_options, columns, snapshot = router_folder.read(Path(path))
        if len(saved_options.get("classes") or ()) == 2:  # of release 1.0, which took the second class as the event
            saved_options.setdefault("event", saved_options["classes"][1])
        number = saved_options.pop("number", len(options["costs"]) if options.get("costs") else 2)
        judged = saved_options.pop("judged", [])
        router = cls(local, remote, **{"path": path if saved_options else None, **saved_options, **options})
        router._continue(number, snapshot, columns, judged)
        return router

    def _continue(self, number: int, snapshot: bytes, columns: dict[str, np.ndarray], judged: list[list[int]]) -> None:
        """Go on with so many classes from a snapshot, the columns of a log, and RemoteErrors.judged."""
        self._errors.judged = judged
        self._start(number)
        router_folder.into_policy(self._policy, snapshot)
        if columns:
            self._log = Log.of_columns(self._policy, columns)

    def _options(self) -> dict[str, Any]:
        """The options that make such a router again, as JSON has them."""
        return {
            "beta": self.beta,
            "delta_fp": self.delta_fp,
            "delta_fn": self.delta_fn,
            "costs": self.costs,
            "classes": self.naming.order,
            "event": self.event,
            "local_columns": self.local.columns,
            "remote_columns": self.remote.columns,
            "policy": self._kind,
            "keep": self._samples.maxlen,
            **self.options,
        }

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {
                "parameters": self.get_params(),
                "samples": list(self._samples),
                "snapshot": router_folder.of_policy(self._policy) if self._policy else None,
                "columns": self._log.columns() if self._log else {},
                "number": self.naming.count,
                "judged": self._errors.judged,
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        Router.__init__(self, **state["parameters"])
        self._samples.extend(state["samples"])
        if state["snapshot"] is not None:
            self._continue(state["number"], state["snapshot"], state["columns"], state["judged"])

    def __enter__(self) -> Router:
        return self

    def __exit__(self, *_: object) -> None:
        if self.path and self._log:
            self.save()

    # --- as scikit-learn's estimators have it

    @property
    def classes_(self) -> np.ndarray:
        """Names of the classes, or their numbers, (K,)."""
        return np.array(self.classes if self.classes is not None else range(self.naming.count or 2))

    def predict(self, x: Any) -> np.ndarray:
        """Return the labels that decide_many() gives samples (n, ...), (n,)."""
        return np.array([decision.label for decision in self.decide_many(x)])

    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the local model's scores of samples (n, ...), (n, K). Nothing is decided or learned."""
        scores = self._scores(np.asarray(x))
        return np.stack([1 - scores, scores], 1) if scores.ndim == 1 else scores

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what Router() takes."""
        models = {"local": self.local.model, "remote": self.remote.model}
        return {**models, **self._options(), "on_decision": self.on_decision, "path": self.path}

    def _true_classes(self, labels: Sequence[Any] | None) -> np.ndarray | None:
        """The numbers of labels, one for each decision. ValueError: there are more or fewer, or one is none of the classes."""
        decided = len(self._log.bins) if self._log else 0
        if labels is not None and len(labels) != decided:
            raise ValueError(f"{len(labels)} labels for {decided} decisions; report() and explain() want one for each")
        return None if labels is None else np.array([self.naming.number(label) for label in labels])

    def export(self, folder: str | Path, board: str = "", *, samples: tuple[Any, Any] | None = None) -> list[str]:
        """Write a project that `h2t2 run` starts: both models, a configuration, and an app that reads the first samples.

        Args:
            folder: New or empty; its name becomes the device's.
            board: Kind of a board that gets a section, such as "pico_w"; "": none. `h2t2 new FOLDER --board KIND` adds one.
            samples: Samples (n, ...) and their true labels (n,), which calibrate and judge the models. None: the samples
                decided so far; the remote model is asked about each of them once, and counts as right.

        Returns:
            The names of the files that were written.

        Raises:
            UserError: A model cannot go onto a device, or there are too few samples. The message names a remedy.
            Failure: The local model loses too much accuracy as int8.
            ValueError: No sample has been decided yet.
        """
        from .router_project import export

        if self._policy is None:
            raise ValueError("export: no decision yet; the first ones tell the number of classes, and what the sensor measures")
        if samples is None:
            x = np.stack([sample for sample, _ in self._samples])
            unasked = [n for n, (_, answer) in enumerate(self._samples) if answer is None]
            labels = [answer for _, answer in self._samples]
            for n, row in zip(unasked, self.remote.scores(x[unasked]) if unasked else ()):
                labels[n] = self.naming.of_answer(row)
        else:
            x, labels = np.asarray(samples[0]), [self.naming.number(label) for label in samples[1]]
        options = {"policy": self._kind, "delta_fp": self.delta_fp, "delta_fn": self.delta_fn, **self.options}
        known = x, self.naming.of_classes(np.array(labels))
        return export(self, Path(folder), board, samples=known, answered=samples is None, options=options)

    def _start(self, classes: int) -> None:
        """Create the policy and the log."""
        if self.classes is not None and len(self.classes) != classes:
            raise ValueError(f"classes: {len(self.classes)} names; the local model scores {classes} classes")
        if classes > MOST_CLASSES:
            raise ValueError(f"local model {self.local.name}: {classes} classes; want 2 to {MOST_CLASSES}")
        self._policy = self._make_policy(classes)
        self._errors.tell(self._policy)
        self._log = Log(self._policy)
        self.naming.count = classes

    def _make_policy(self, classes: int) -> Any:
        """Make the policy for so many classes. ValueError for an option that is out of range."""
        numbers = {"beta": self.beta, "delta_fp": self.delta_fp, "delta_fn": self.delta_fn, **self.options}
        if classes > 2:
            numbers["costs"] = self.costs or equal_costs(classes)
        elif self.costs is not None:
            raise ValueError("costs: of three classes or more; of two, delta_fp and delta_fn say it")
        if "normal" in numbers:
            numbers["normal"] = self.naming.number(numbers["normal"])
        if numbers.get("ordered") is None:
            numbers["ordered"] = policies.can_read_past(self._kind, numbers)
        policy = policies.make(self._kind, numbers)
        if policy.bits > MOST_BITS:
            raise ValueError(f"bits {policy.bits}: want 1 to {MOST_BITS}, as on a device")
        return policy

    def _note_failure(self, error: Exception, samples: int = 1) -> None:
        """Count that so many samples have no answer of the remote model, and show the first failure of each kind."""
        kind = error.kind if isinstance(error, InvalidAnswer) else type(error).__name__
        with self._lock:
            self.failures[kind] += samples
            is_first = self.failures[kind] == samples
        if is_first:
            trace = "" if isinstance(error, InvalidAnswer) else "\n" + "".join(traceback.format_exception(error))
            warnings.warn(f"no answer of the remote model: {error}{trace}", stacklevel=4)

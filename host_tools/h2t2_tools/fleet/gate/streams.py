"""The streams of a gate: one policy, one snapshot for each camera, room or species, up to a limit."""

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from h2t2.clock import FAR_MS
from h2t2.core.adaptive import Adaptive
from h2t2.core.forecaster import INCREMENT, P
from h2t2.core.numbers import ONE
from h2t2.core.policies import make
from h2t2.node.keeper import Keeper
from h2t2.node.store import FileSlot, Store

from ...common import policies
from ...common.errors import file_errors
from ...common.remote_errors import OPTIONS, RemoteErrors
from ...common.untrusted import parse_json
from ..queue.lesson import Lesson
from .detection import Detection
from .gate_config import GateConfig

LOG = logging.getLogger(__name__)
OTHERS = "*"  # the stream of keys above the limit; no key may be quoted to this name
RARE = 256  # a score is unfamiliar where fewer than one in so many fell into its bin
KNOWN = 100  # scores that a stream must have seen to call one unfamiliar


class DeferredStore(Store):
    """A store whose writes wait in memory until flush(): a decision never waits for the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__([FileSlot(f"{path}.0"), FileSlot(f"{path}.1")])
        self._pending: bytes | None = None
        self._lock, self._writing = threading.Lock(), threading.Lock()

    def writing(self, size: int, chunks: Any) -> Iterator[None]:
        """Keep a content for flush(). The chunks share a buffer."""
        content = b"".join(bytes(chunk) for chunk in chunks)
        with self._lock:
            self._pending = content
        return iter(())

    def flush(self) -> None:
        """Write what is pending. OSError where the disk fails."""
        with self._writing:
            with self._lock:
                content, self._pending = self._pending, None
            if content is not None:
                for _ in super().writing(len(content), (content,)):
                    pass


class Stream:
    """One stream.

    Attributes:
        key: its name.
        policy: of its own.
        keeper: saves the policy.
        samples, offloads, unfamiliar: counters of this start.
        last: its last decision; -1: none.
        decided_at: when its policy decided last, of time.monotonic(); None: not in this start.
    """

    cost = None  # nobody measures what an offload costs

    def __init__(self, key: str, config: GateConfig, folder: Path, prior: list[int] | None) -> None:
        """prior: how often each bin holds an event by the other streams, for a stream without a snapshot; None: unknown."""
        self.key = key
        path = folder / _file_name(key)
        self.policy: Any = make(config.policy, config.arguments(config.stream_seed(key)))
        if not config.prior and isinstance(self.policy, Adaptive):
            self._set_prior(Path(f"{path}.prior"), prior, config.origin.hex())
        self.store = DeferredStore(path)
        self.keeper = Keeper(
            self.policy,
            self.store,
            every=config.snapshot_every,
            mismatch=config.snapshot_mismatch,
            complain=lambda kind, error: LOG.error("%s: %s: %s", key, kind, error),
            log=lambda text: LOG.info("%s: %s", key, text),
            origin=config.origin,
        )
        self.samples = self.offloads = self.unfamiliar = 0
        self.last = -1
        self.decided_at: float | None = None
        if self.keeper.restored:
            self.policy.pass_time(-1)

    def _set_prior(self, path: Path, prior: list[int] | None, origin: str) -> None:
        """Start from a prior. Snapshots do not hold it, so a file of its own does, with its origin as they have it."""
        try:
            saved: Any = parse_json(path.read_bytes()) if path.exists() else {}
            if isinstance(saved, list):  # of a former release, which did not say the origin
                prior = saved
            elif saved and saved["origin"] == origin:
                prior = saved["prior"]
            if prior:
                self.policy.set_prior(prior)
                if saved != {"prior": prior, "origin": origin}:
                    path.write_text(json.dumps({"prior": prior, "origin": origin}))
        except (OSError, ValueError, TypeError, KeyError) as error:
            LOG.warning("%s: %s; it starts without what the others have learned", path, error)

    def pass_time(self, now: float) -> None:
        """Tell the policy the time since the sample before. now: Of time.monotonic()."""
        if self.decided_at is not None:
            self.policy.pass_time(min(int((now - self.decided_at) * 1000), FAR_MS))
        self.decided_at = now

    def fits(self, detection: Detection, lesson: Lesson) -> bool:
        """Whether a sample of a former start, and what it teaches, are of this policy: of its classes, bins and features."""
        scores = len(detection.score) if isinstance(detection.score, tuple) else 2
        if scores != self.policy.classes or not lesson.fits(self.policy):
            return False
        k = int(self.policy.bin(policies.reading(self.policy, detection.score, detection.features)))
        return k == lesson.bin & (1 << int(self.policy.bits)) - 1

    def is_unfamiliar(self, k: int) -> bool:
        """Whether few of the recent scores of this stream fell into a bin. Call it before decide(), which counts the score."""
        forecaster = getattr(self.policy, "forecaster", None)
        if forecaster is None or self.policy.classes > 2:
            return False
        total = sum(forecaster.slow)
        return bool(total >= KNOWN * INCREMENT and forecaster.slow[k] * RARE < total)

    def expected_cost(self, k: int, decision: int) -> float | None:
        """What a local decision is expected to cost, by what the policy has learned; None where it does not tell."""
        policy = self.policy
        if not isinstance(policy, Adaptive):
            return None
        p = policy.estimate(k)[P]
        cost = (ONE - p) * policy.delta_fp if decision else p * policy.delta_fn
        return round(cost / ONE / ONE, 4)


class Streams:
    """All streams of a gate. Streams with a snapshot are there from the start, so that a new one can start from them.

    Attributes:
        errors: Of the remote model; all policies count with them.
        advice: Why asking does not pay, in words; "": it does.
    """

    def __init__(self, config: GateConfig, folder: Path) -> None:
        self._config, self._folder = config, folder
        self._streams: dict[str, Stream] = {}
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._errors_file = folder / "errors.json"
            self.errors, self.advice = self._read_errors(), ""
            names = sorted({path.name.removesuffix(path.suffix) for path in folder.glob("*.[01]")})
        for name in names[: config.streams + 1]:
            key = OTHERS if name == _file_name(OTHERS) else unquote(name.removeprefix("stream-"))
            self._add(key, None)

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._streams.values()))

    def __len__(self) -> int:
        return len(self._streams)

    def get(self, key: str) -> Stream:
        """The stream of a key; above the limit the stream of all others."""
        stream = self._streams.get(key)
        if stream:
            return stream
        if len(self._streams) >= self._config.streams:
            key = OTHERS
        if key not in self._streams:
            self._add(key, self.pooled())
        return self._streams[key]

    def _add(self, key: str, prior: list[int] | None) -> None:
        stream = self._streams[key] = Stream(key, self._config, self._folder, prior)
        self._tell_errors(stream)

    def judge(self, answer: int, truth: int) -> None:
        """Count an answer of the remote model as right or wrong by its sample's true class."""
        self.errors.judge(answer, truth)
        for stream in self:
            self._tell_errors(stream)
        try:
            self._errors_file.write_text(json.dumps({"judged": self.errors.judged, "origin": self._config.origin.hex()}))
        except OSError as error:
            LOG.error("%s is not saved: %s", self._errors_file, error)

    def _tell_errors(self, stream: Stream) -> None:
        self.errors.tell(stream.policy)
        advice = policies.never_worth_asking(stream.policy)
        if advice and not self.advice:
            LOG.warning(advice)
        self.advice = advice

    def _read_errors(self) -> RemoteErrors:
        """The errors of the remote model, with what people told a former start of a gate with this model."""
        config = self._config
        errors = RemoteErrors(
            config.folder / config.remote, config.class_names, fixed=not OPTIONS.isdisjoint(config.model_fields_set)
        )
        try:
            saved = parse_json(self._errors_file.read_bytes()) if self._errors_file.exists() else {}
            if saved and saved["origin"] == config.origin.hex():
                judged = [[int(number) for number in entry] for entry in saved["judged"]]
                if not all(0 <= k < config.classes for truth, answer, _ in judged for k in (truth, answer)):
                    raise ValueError("a class that there is not")
                errors.judged = judged
        except (OSError, ValueError, TypeError, KeyError) as error:
            LOG.warning("%s: %s; the errors of the remote model are counted anew", self._errors_file, error)
        return errors

    def pooled(self) -> list[int] | None:
        """How often each bin holds an event by all streams, weighted by their labels, Q15; None: nothing is known."""
        policies = [stream.policy for stream in self if isinstance(stream.policy, Adaptive) and stream.policy.lessons]
        total = sum(policy.lessons for policy in policies)
        if not total:
            return None
        bins = range(1 << policies[0].bits)
        return [sum(policy.lessons * int(policy.estimate(k)[P]) for policy in policies) // total for k in bins]


def _file_name(key: str) -> str:
    """The name of a stream's files; keys are quoted, so that none leaves the folder."""
    return "others" if key == OTHERS else "stream-" + quote(key, safe="")

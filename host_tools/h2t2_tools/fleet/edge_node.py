"""`h2t2 node`: an edge node on this machine, fed from a pair's test part, one JSON line a decision."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from h2t2.clock import ticks_diff, ticks_ms
from h2t2.cpython import signals
from h2t2.cpython.paho import PahoLink
from h2t2.cpython.quantise import local_input
from h2t2.ldl.open import open_ldl
from h2t2.node import start
from h2t2.node.node import Node
from h2t2.node.service import SOURCES, Service, summary

from ..common import event, pairs, policies
from ..common.errors import UserError, as_user_error
from ..common.lock import hold
from ..common.untrusted import parse_integer
from ..common.user_function import import_app
from .config import NodeConfig
from .endpoint import Endpoint
from .hang import HangGuard
from .monitoring import savings
from .monitoring.state import State
from .queue.queueing_node import QueueFile, QueueNode
from .queue.queueing_node import Samples as QueuedSamples

LOG = logging.getLogger(__name__)

Tag = tuple[int, int]  # the number of a sample in the stream, and in the test part


@dataclass(frozen=True)
class Samples:
    """Test samples of a pair for a node. order: their numbers, one after the other."""

    pair: pairs.Pair
    order: list[int]


class Runner:
    """Runs a node of a configuration on this machine, on test samples or on what an app measures.

    Args:
        config: the node's configuration.
        ldl: path of the local model.
        resolver: the kernels that run it.
        title: of the pair's event, where the configuration names no classes.
        samples: test samples; None where the configuration has an app.
        out: where the JSON lines go.
        opener: opens the local model, as open_ldl().
        queue: where offloads without an answer wait; None: nowhere.
    """

    def __init__(
        self,
        config: NodeConfig,
        ldl: str,
        resolver: str,
        *,
        title: str,
        samples: Samples | None,
        out: TextIO,
        opener: Callable[..., Any] = open_ldl,
        queue: QueueFile | None = None,
    ) -> None:
        self.config, self.out, self._opener, self._queue = config, out, opener, queue
        self._event = config.class_names[1] if config.class_names else title
        self._content = {**config.content(), "ldl": ldl, "resolver": resolver}
        if config.head:
            self._content["head"] = str(config.folder / config.head)
        self._due: dict[int, int] = {}  # sample -> when it was due, ticks
        self._act: Callable[..., None] = self._show_decision
        self._sensor: Callable[[], tuple[Any, bytes, Tag]] | None = None  # an app measures and acts itself
        if samples is not None:
            self._act, self._sensor = self._show_sample, self._sense
            self.samples, self._stream = samples, enumerate(samples.order)
            self._content["patient"] = True
        else:
            config.program()  # refuses a file that is no app
            path = config.folder / config.app
            folders = path.parent, Path(config.snapshot).parent  # an update's app lies beside the snapshot
            sys.path[:0] = [str(folder.resolve()) for folder in folders]
            self._content["app"] = path.stem
        self._service: Service | None = None
        self._stopped = False

    def stream(self, to: Endpoint) -> dict[str, Any]:
        """Stream the samples, and write a JSON line for each decision. SIGTERM and SIGINT end the stream in order. At its end
        the log says what was saved.

        Returns:
            The summary.

        Raises:
            UserError: another process uses the snapshot or the queue, the queue cannot be used, the app raises as it
                starts, or a snapshot does not fit and the configuration says to stop then.
        """
        signals.on_stop(self._stop)
        with ExitStack() as files:
            kind: Callable[..., Node] = Node
            for path, option in ((self.config.snapshot, "snapshot"), (self._queue.path if self._queue else "", "queue")):
                lock = hold(Path(path), "h2t2 node", f"give one of them another --{option}") if path else None
                if lock:
                    files.callback(lock.release)
            if self._queue:
                queue = files.enter_context(closing(QueuedSamples(self._queue)))
                kind = partial(QueueNode, queue=queue, patience=self._queue.options.patience)
            while True:
                report, restart = self._start(to, kind)
                if not restart or self._stopped:
                    break
        if report:
            report["saved"] = savings.saved_so_far(State.model_validate_json(json.dumps(report)))
            LOG.info("saved so far: %s", savings.in_words(report["saved"]))
        return report

    def _stop(self) -> None:
        """Stop the node. A signal calls this, maybe between two starts."""
        self._stopped = True
        if self._service:
            self._service.stop()

    def _start(self, to: Endpoint, kind: Callable[..., Node]) -> tuple[dict[str, Any], bool]:
        """Start the node and run it to its end: its summary, and whether an update wants a restart. kind: makes the node."""
        with as_user_error():
            content, updates = start.active_config(self._content, _say)
        boot = start.boot_number()
        link = PahoLink(to.host, to.port, self.config.device, self.config.model_id, boot, seed=boot >> 2, **to.login)
        guard = HangGuard(updates, content.get("every_ms", 0) // 1000 + content.get("every_us", 0) // 10**6, _say)
        try:
            try:
                if content.get("app"):
                    import_app(content["app"])
                with as_user_error():
                    running = start.service(
                        content, link, self._act, sensor=self._sensor, watchdog=guard.feed, log=_say, updates=updates,
                        opener=self._opener, kind=kind,
                    )  # fmt: skip
            except Exception as error:
                if updates and updates.failed(error):
                    return {}, True
                raise
            self._service = running
            if running.node.policy.classes == 2:
                LOG.info(event.in_words(self._event, self.config.delta_fp, self.config.delta_fn))
            running.node.complain.log = _complain
            if self._stopped:
                running.stop()
            try:
                link.open(self.config.deadline_ms)
            except OSError as error:
                LOG.warning("%s; deciding locally until it answers", error)
            taught = running.node.policy.lessons
            self._print({"start": {"boot": boot, "restored": running.keeper.restored, "taught": taught}})
            running.run()
            policy = running.node.policy
            learned = {"thresholds": policies.thresholds(policy), **policies.learned_state(policy)}
            return {**summary(running), **learned}, bool(running.next_cause)
        finally:
            guard.stop()
            link.close()

    def _sense(self) -> tuple[Any, bytes, Tag]:
        assert self._service
        n, index = next(self._stream)
        pair, x = self.samples.pair, self.samples.pair.x[index]
        self._due[n] = self._service.sensing.since
        local = local_input(self._service.node.ldl, pair.model_input(x, "ldl"))
        return local.ravel().data, pair.test_payload(index), (n, index)

    def _show_sample(self, tag: Tag, k: int, decision: int, source: int) -> None:
        assert self._service
        n, index = tag
        node = self._service.node
        line = {"n": n, "sample": index, "bin": k, "decision": decision, **self._named(decision), "source": SOURCES[source]}
        line["ms"] = ticks_diff(ticks_ms(), self._due.pop(n))  # since it was due
        line.update(taught=node.policy.lessons, strangers=node.strangers)
        if n % 20 == 0:
            line["thresholds"] = policies.thresholds(node.policy)
        self._print(line)

    def _show_decision(self, n: int, k: int, decision: int, source: int) -> None:
        self._print({"n": n, "bin": k, "decision": decision, **self._named(decision), "source": SOURCES[source]})

    def _named(self, decision: int) -> dict[str, str]:
        """The name of a decision, for its JSON line; {} where the classes have none."""
        names = self.config.class_names
        return {"name": names[decision]} if names else {}

    def _print(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self.out, flush=True)


def order(path: Path, samples: int) -> list[int]:
    """The numbers in a file, one per line, each 0..samples - 1. UserError, naming the line, for other text."""
    numbers = []
    for n, line in enumerate(path.read_text().split(), 1):
        if parse_integer(line, samples - 1) is None:
            raise UserError(f"{path}: entry {n}, {line[:20]!r}, is not a test sample, 0..{samples - 1}")
        numbers.append(int(line))
    return numbers


def _say(text: str) -> None:
    """Log a message of the node."""
    LOG.log(logging.INFO if sys.exc_info()[1] is None else logging.WARNING, "%s", text)


def _complain(text: str) -> None:
    """Log trouble of the node; with a traceback while an exception is handled, such as one of the user's app."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, OSError):
        _say(text)
    else:
        LOG.error("%s", text, exc_info=error)


@contextmanager
def output(path: str) -> Iterator[TextIO]:
    """Standard output for "-", else a new file."""
    if path == "-":
        yield sys.stdout
    else:
        with Path(path).open("w") as file:
            yield file

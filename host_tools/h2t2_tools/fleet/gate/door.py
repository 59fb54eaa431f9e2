"""A gate's door to MQTT: scores come in, decisions go out, and the gate is a device of the fleet.

The door acknowledges a message after its decision or its question is stored, so a broker repeats what a killed gate had not
done. The gate still decides it once. What a connection or a start leaves unpublished, the next one publishes.
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt

from h2t2.node.commands import Command, change, take
from h2t2.node.start import boot_number

from ...common.durations import Clock
from ...common.log import is_logged
from ...common.untrusted import parse_json
from ..detections import LARGEST, OWN
from ..endpoint import Endpoint
from .detection import Decision
from .gate import Gate
from .gate_config import GateConfig
from .gate_link import GateLink
from .gate_state import encoded, state
from .message import Ignored, Reader
from .remote import WorkerRemote

LOG = logging.getLogger(__name__)
LAST_S = 1.0  # for the broker to acknowledge the last decisions
TURN_S = 0.2  # between two looks at commands and at the time of the next report
REPORT_S = 1.0  # at the earliest after a report, when a decision has changed


class Topics:
    """The subscriptions that the broker keeps for a gate, in a file: what is no longer configured has to be given up.

    Attributes:
        former: topics of former starts that are no longer configured.
    """

    def __init__(self, path: Path, topics: list[str]) -> None:
        self._path, self._topics = path, topics
        stored: Any = []
        with suppress(OSError, ValueError):
            stored = parse_json(path.read_bytes())
        self.former = [topic for topic in stored if isinstance(topic, str) and topic and topic not in topics]

    def keep(self) -> None:
        """Store the configured topics, once the broker has given up the others."""
        try:
            self._path.write_text(json.dumps(self._topics))
        except OSError as error:
            LOG.error("%s: %s", self._path, error.strerror)


class Door:
    """Connects a gate with a broker until close().

    Attributes:
        gate: the gate.
        strangers: messages that could not be read, or were too large.
        oversize: those that were too large.
        namesakes: whether another client has our name.
        ignored: messages that `when` left out.
        unpublished: decisions that could be neither published nor stored.
        limit, answers, carried_out, refused, log: of commands.take().
    """

    def __init__(
        self, config: GateConfig, to: Endpoint, clock: Clock = time.monotonic, on_open: Callable[[], object] = lambda: None
    ) -> None:
        """
        Args:
            config: the gate's.
            to: the broker.
            clock: as Gate's.
            on_open: is called before the first message is taken, and at the latest when the door is open. From then on no
                signal may raise an exception here: only close() ends a model that has been asked.

        Raises:
            UserError: the configuration names something that cannot be used.
            Failure: the broker refuses us.
        """
        self._config, self._reader, self._boot = config, Reader(config), boot_number()
        self.strangers = self.ignored = self.unpublished = self.oversize = self.carried_out = self.refused = 0
        self.limit: Any = None
        self.answers: list[tuple[str, str]] = []
        self.log = LOG.info
        self.namesakes = False
        self._began = self._reported_at = time.monotonic()
        self._reported: dict[str, int] = {}
        self._topics = Topics(config.folder / config.state / "topics.json", [config.topic])
        self._closing = threading.Event()
        self._link = link = GateLink(config, self._boot, self._topics.former, to.host, to.port, **to.login)
        with ExitStack() as opened:  # what a failure, or a signal, closes
            opened.callback(link.close)
            remote = WorkerRemote(config, link, self._boot) if config.worker is not None else None
            self.gate = Gate(config, remote, self._publish, clock)
            opened.callback(self.gate.close)
            self._on_open = on_open
            link.serve(self.gate.backlog, self._on_message, self._on_ready)
            on_open()
            opened.pop_all()
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more messages, decide what is in flight, save, and say goodbye."""
        self._closing.set()
        self._thread.join()
        self.gate.finish()
        self._report()
        latest = time.monotonic() + LAST_S
        while self._link.unpublished() and time.monotonic() < latest:
            time.sleep(0.01)
        self._link.close()
        self.gate.close()

    def summary(self) -> dict[str, Any]:
        """The state, with the counters of the door."""
        return {**self._state(), "ignored": self.ignored, "unpublished": self.unpublished}

    def _on_ready(self) -> None:
        """Publish what a former start or connection left."""
        self._on_open()
        self._topics.keep()
        self.gate.hand_over_unpublished(self._link.begin_decisions)

    def _on_message(self, message: mqtt.MQTTMessage, acknowledge: Callable[[], object]) -> None:
        if self._closing.is_set():  # without an acknowledgement the broker delivers it to the next start
            return
        try:
            if message.topic.endswith(OWN) or message.retain:  # a wildcard may match our own decisions; a retained score is old
                self.ignored += 1
            else:
                self._take(message, acknowledge)
                return
        except Ignored:
            self.ignored += 1
        except ValueError as error:
            self._note_stranger(error)
        except Exception:  # a defect must not make the broker repeat the message for ever
            LOG.exception("a message")
        acknowledge()

    def _take(self, message: mqtt.MQTTMessage, acknowledge: Callable[[], object]) -> None:
        """Take a score. It is acknowledged once the disk has it, or it is decided."""
        detection = self._reader.read(message.topic, bytes(message.payload))
        detection = replace(detection, delivery=message.mid, redelivered=message.dup)

        def act(decision: Decision) -> None:
            if not (message.dup and decision.repeated):  # the broker has it, or gets it from the outbox
                self._publish(decision)
            acknowledge()

        self.gate.submit(detection, act, stored=acknowledge)

    def _note_stranger(self, error: Exception) -> None:
        self.strangers += 1
        if is_logged(self.strangers):
            LOG.warning("a message that is not as configured: %s (%d so far)", error, self.strangers)

    def _publish(self, decision: Decision) -> None:
        if not decision.topic:  # of another door
            return
        if not self._link.publish_decision(decision):  # the next connection publishes what is stored
            self.unpublished += not decision.place

    def _run(self) -> None:
        while not self._closing.wait(TURN_S):
            try:
                self._turn()
            except Exception:  # the door stays open
                LOG.exception("the gate's report")

    def _turn(self) -> None:
        self._note_trouble()
        command = self._link.command()
        if command is not None:
            self._link.answer(take(self, command, Door._carry_out))
        waited = time.monotonic() - self._reported_at
        changed = command is not None or (waited >= REPORT_S and self._decisions() != self._reported)
        if changed or waited >= self._config.telemetry:
            self._report()

    def _note_trouble(self) -> None:
        """Count and log messages that were too large, and log it once that another client has our name."""
        while self._link.oversize > self.oversize:
            self.oversize += 1
            self._note_stranger(ValueError(f"it has more than {LARGEST:,} bytes"))
        if self._link.has_namesake() != self.namesakes:
            self.namesakes = not self.namesakes
            if self.namesakes:
                LOG.warning("another client has this name: give one of them another `device` than %s", self._config.device)

    def _decisions(self) -> dict[str, int]:
        """The last decision of every stream."""
        return {stream.key: stream.last for stream in self.gate.streams}

    def _report(self) -> None:
        self._reported_at, self._reported = time.monotonic(), self._decisions()
        self._link.report(encoded(self._state()))

    def _state(self) -> dict[str, Any]:
        uptime_s = int(time.monotonic() - self._began)
        entries = state(self.gate, boot=self._boot, uptime_s=uptime_s, strangers=self.strangers, complaints=self.unpublished)
        return {**entries, "namesakes": self.namesakes}

    def _carry_out(self, command: Command) -> str | None:
        """Carry out a command for every stream; return a note for its sender, or None."""
        if command.name == "pause":
            self.gate.pause(command.value)
        elif command.name == "set" and "costs" in command.value and self._config.classes == 2:  # also before the first stream
            raise ValueError("this gate decides between two classes: set delta_fp and delta_fn")
        else:
            self.gate.change(lambda stream: change(stream, command.name, command.value))
        return None

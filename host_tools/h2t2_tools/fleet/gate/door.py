"""A gate's door to MQTT: scores come in, decisions go out, and the gate is a device of the fleet.

The door acknowledges a message after its decision is published or its question stored, so a broker repeats what a killed gate
had not done. An identity is decided once all the same.
"""

import logging
import threading
import time
from collections import deque
from typing import Any

import paho.mqtt.client as mqtt

from h2t2.core.numbers import ONE
from h2t2.cpython.mqtt_session import Client, Session, make_client
from h2t2.cpython.paho import PahoLink
from h2t2.node.commands import Command
from h2t2.node.desk import Desk
from h2t2.node.start import boot_number

from ..connection import start
from ..endpoint import Endpoint
from .config import OWN, GateConfig
from .detection import Decision
from .gate import Gate
from .message import LARGEST, Ignored, Reader
from .remote import WorkerRemote
from .state import encoded, state

LOG = logging.getLogger(__name__)
TURN_S = 0.2  # between two looks at commands and at the time of the next report
REPORT_S = 1.0  # at the earliest after a report, when a decision has changed
LOGGED_STRANGERS = 20


class Door:
    """Connects a gate with a broker until close().

    Attributes:
        gate: the gate.
        strangers: messages that could not be read.
        ignored: messages that `when` left out.
        unpublished: decisions that could not be published, as the broker was away.
    """

    def __init__(self, config: GateConfig, to: Endpoint) -> None:
        """
        Args:
            config: the gate's.
            to: the broker.

        Raises:
            UserError: the configuration names something that cannot be used.
            Failure: the broker cannot be reached.
        """
        self._config, self._reader, self._boot = config, Reader(config), boot_number()
        self.strangers = self.ignored = self.unpublished = 0
        self._began = self._reported_at = time.monotonic()
        self._reported: dict[str, int] = {}
        self._closing = threading.Event()
        self._early: deque[Decision] = deque()
        self._session: Session | None = None
        link = PahoLink(to.host, to.port, config.device, config.worker, self._boot, seed=self._boot >> 2, **to.login)
        self._link = link
        try:
            remote = WorkerRemote(config, link, self._boot) if config.worker is not None else None
            self.gate = Gate(config, remote, self._publish)
            self._desk = Desk(self._carry_out, LOG.info)
            self._session = Session(
                to.host,
                to.port,
                lambda: self._client(to),
                [config.topic],
                seed=self._boot >> 2,
                on_up=self._publish_early,
            )
            start(self._session)
        except BaseException:
            link.close()
            raise
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more messages, decide what is in flight, save, and say goodbye."""
        self._closing.set()
        self._thread.join()
        self.gate.close()
        self._report()
        if self._session:
            self._session.close()
        self._link.close()

    def summary(self) -> dict[str, Any]:
        """The state, with the counters of the door."""
        return {**self._state(), "ignored": self.ignored, "unpublished": self.unpublished}

    def _client(self, to: Endpoint) -> Client:
        """A client that takes scores. The broker keeps its session, so that it delivers what came while the gate was away."""
        name = f"h2t2-{self._config.device}-scores"
        client = make_client(name, limit=LARGEST, manual_ack=True, clean_session=False, **to.login)
        client.max_inflight_messages_set(4096)
        client.max_queued_messages_set(0)
        client.on_message = self._on_message
        return client

    def _publish_early(self, session: Session) -> None:
        """Publish what a former start left, after the connection."""
        while self._early:
            self._publish(self._early.popleft())

    def _on_message(self, client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        if self._closing.is_set():  # without an acknowledgement the broker delivers it to the next start
            return
        try:
            topic = message.topic
            if topic.endswith(OWN) or message.retain:  # a wildcard may match our own decisions; a retained score is old
                self.ignored += 1
            else:
                self._take(topic, bytes(message.payload))
        except ValueError as error:
            self._note_stranger(error)
        except Exception:  # a defect must not make the broker repeat the message for ever
            LOG.exception("a message")
        client.ack(message.mid, message.qos)

    def _take(self, topic: str, payload: bytes) -> None:
        try:
            detection = self._reader.read(topic, payload)
        except Ignored:
            self.ignored += 1
            return
        self.gate.submit(detection, self._publish)

    def _note_stranger(self, error: Exception) -> None:
        self.strangers += 1
        if self.strangers <= LOGGED_STRANGERS or not self.strangers & 1023:  # a stranger must not fill the log
            LOG.warning("a message that is not as configured: %s (%d so far)", error, self.strangers)

    def _publish(self, decision: Decision) -> None:
        if not decision.topic:  # of another door
            return
        session = self._session
        if session is None or not session.up.is_set():
            if not self._closing.is_set() and len(self._early) < 1000:
                self._early.append(decision)
            else:
                self.unpublished += 1
        elif not session.publish(decision.topic + OWN, decision.as_json(), 1):
            self.unpublished += 1

    def _run(self) -> None:
        while not self._closing.wait(TURN_S):
            try:
                self._turn()
            except Exception:  # the door stays open
                LOG.exception("the gate's report")

    def _turn(self) -> None:
        command = self._link.command()
        if command is not None:
            self._link.answer(self._desk.take(command))
        waited = time.monotonic() - self._reported_at
        changed = command is not None or (waited >= REPORT_S and self._decisions() != self._reported)
        if changed or waited >= self._config.telemetry:
            self._report()

    def _decisions(self) -> dict[str, int]:
        """The last decision of every stream."""
        return {stream.key: stream.last for stream in self.gate.streams}

    def _report(self) -> None:
        self._reported_at, self._reported = time.monotonic(), self._decisions()
        self._link.report(encoded(self._state()))

    def _state(self) -> dict[str, Any]:
        uptime_s = int(time.monotonic() - self._began)
        return state(self.gate, boot=self._boot, uptime_s=uptime_s, strangers=self.strangers, complaints=self.unpublished)

    def _carry_out(self, command: Command) -> str | None:
        """Carry out a command for every stream; return a note for its sender, or None."""
        value = command.value
        if command.name == "pause":
            self.gate.pause(value)
            return None
        if command.name == "set" and "costs" in value and self._config.classes == 2:
            raise ValueError("this gate decides between two classes: set delta_fp and delta_fn")

        def change(stream: Any) -> None:
            policy = stream.policy
            if command.name == "set":
                policy.set_deltas(value.get("delta_fp", policy.delta_fp), value.get("delta_fn", policy.delta_fn))
                if "costs" in value:
                    policy.change_costs(value["costs"])
                policy.set_beta(min(value.get("beta", policy.beta), ONE))
            elif command.name == "prior":
                policy.set_prior(value)
            elif command.name == "reset":
                policy.reset()

        self.gate.change(change)
        return None

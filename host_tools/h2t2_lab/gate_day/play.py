"""Plays a day through a Mosquitto of its own into `h2t2 gate`, with `h2t2 home-assistant` beside it."""

import json
import random
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt

from h2t2.cpython.mqtt_session import Client, Session, make_client
from h2t2.link import wire
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet import broker, home_assistant
from h2t2_tools.fleet.children import child, ready
from h2t2_tools.fleet.gate import presets

from ..http_server import serving
from .days import Day, Message, Sample

READY = "ready: device"  # of a line of the gate's log
PATIENCE_S = 60.0
SEED = 5


@dataclass(frozen=True)
class Played:
    """A day that was played.

    Attributes:
        configuration: that the preset wrote.
        samples: in their order.
        decisions: (topic, content), in their order.
        message: the first message.
        state: the gate's, after the day.
        discovery: the message to Home Assistant, after the day.
    """

    configuration: str
    samples: list[Sample]
    decisions: list[tuple[str, dict[str, Any]]]
    message: Message
    state: dict[str, Any]
    discovery: dict[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """Identity -> number of its decisions."""
        counts = dict.fromkeys((sample.identity for sample in self.samples), 0)
        for _, decision in self.decisions:
            counts[decision["id"]] = counts.get(decision["id"], 0) + 1
        return counts


class Listener:
    """Publishes messages, and waits for what the gate and Home Assistant's announcer publish."""

    def __init__(self, url: str, decisions: str, device: str) -> None:
        """decisions: their topic. device: the gate's name."""
        self.decisions: list[tuple[str, dict[str, Any]]] = []
        self.retained: dict[str, dict[str, Any]] = {}
        self.topics = (wire.topic(device, "state"), home_assistant.topic(device))
        self._changed = threading.Condition()
        self._session = Session(*broker.parse(url), self._client, [decisions, *self.topics])
        self._session.start()
        self._session.open()

    def publish(self, topic: str, content: dict[str, Any]) -> None:
        """Publish a message. Failure where the broker does not take it."""
        if not self._session.publish(topic, json.dumps(content), 1):
            raise Failure(f"{topic}: the broker is away")

    def wait(self, condition: Callable[[], bool], purpose: str) -> None:
        """Wait until a condition holds, which a message makes true. Failure, naming the purpose, after a minute."""
        with self._changed:
            if not self._changed.wait_for(condition, PATIENCE_S):
                raise Failure(f"no {purpose} in {PATIENCE_S:g} s; {len(self.decisions)} decisions so far")

    def close(self) -> None:
        """End the connection."""
        self._session.close()

    def _client(self) -> Client:
        client = make_client("")
        client.on_message = self._take
        return client

    def _take(self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        with self._changed:
            content = json.loads(message.payload)
            if message.topic in self.topics:
                self.retained[message.topic] = content
            else:
                self.decisions.append((message.topic, content))
            self._changed.notify_all()


def write(day: Day, folder: Path, url: str, web: str, **entries: Any) -> Path:
    """Write the configuration of a day's preset into a folder, as `h2t2 gate --preset` does, and the remote model.

    Args:
        day: the day.
        folder: an empty one.
        url: of the broker.
        web: address of the detector's web server, and of the remote model's.
        entries: further entries of the configuration.
    """
    path = folder / f"{day.preset}.toml"
    presets.write(day.preset, day.remote(folder, web), web, url, path)
    further = {**asdict(day.costs), "telemetry": "1s", **entries}
    with path.open("a") as file:
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in further.items())
    return path


def play(
    day: Day, hours: Sequence[int] = range(24), per_hour: int = 60, progress: Callable[[int], object] = lambda hour: None
) -> Played:
    """Play a day. Each stream's next message comes when its last one is decided: the same day has the same decisions.

    Args:
        day: a new one.
        hours: of the day that are played.
        per_hour: messages of a stream in an hour.
        progress: is called with each hour.

    Raises:
        Failure: a decision, the state or the message to Home Assistant does not come.
    """
    rng, first = random.Random(SEED), None
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="h2t2-day-") as name, _running(day, Path(name)) as listener:
        configuration = (Path(name) / f"{day.preset}.toml").read_text()
        for hour in hours:
            progress(hour)
            for _ in range(per_hour):
                for stream, scores in day.streams.items():
                    score, is_event = scores.draw(hour, rng)
                    number = len(samples) + 1
                    sample = Sample(number, day.identity(number), stream, hour, round(score, 4), is_event)
                    samples.append(sample)
                    day.events[sample.identity] = is_event
                    for topic, content in day.messages(sample):
                        first = first or (topic, content)
                        listener.publish(topic, content)
                listener.wait(lambda: len(listener.decisions) >= len(samples), "decision")
        state, discovery = listener.topics
        listener.wait(lambda: listener.retained.get(state, {}).get("samples") == len(samples), "state")
        listener.wait(lambda: listener.retained.get(discovery, {}).keys() >= {"cmps"}, "message to Home Assistant")
        names = {*day.streams}
        listener.wait(
            lambda: names <= {entity["name"] for entity in listener.retained[discovery]["cmps"].values()},
            "entity of each stream",
        )
    assert first is not None
    return Played(configuration, samples, listener.decisions, first, listener.retained[state], listener.retained[discovery])


@contextmanager
def _running(day: Day, folder: Path) -> Iterator[Listener]:
    """Run broker, servers, announcer and gate for a day."""
    with broker.running("mosquitto") as url, serving(day.answer) as web:
        path = write(day, folder, url, web)
        with child(["home-assistant", day.rule, "--broker", url]), ready(["gate", str(path)], READY):
            listener = Listener(url, day.decisions, day.preset)
            try:
                yield listener
            finally:
                listener.close()

"""The simulated day of each preset: its streams, its messages, and the servers that its gate asks.

Scores and events are simulated. So are the servers: they know each event, and the remote models are always right.
"""

import base64
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from h2t2_tools.fleet.rdl.models.pictures import data_url

from .. import material
from ..http_server import Answer
from . import messages
from .scores import Costs, Scores

Message = tuple[str, dict[str, Any]]  # topic, content


@dataclass(frozen=True)
class Sample:
    """A message that the gate decides about.

    Attributes:
        number: from 1, over all streams.
        identity: of the message, as the decision repeats it.
        stream: its key.
        hour: of the day.
        score: of the detector.
        is_event: whether the detector is right about it.
    """

    number: int
    identity: str
    stream: str
    hour: int
    score: float
    is_event: bool


class Day(ABC):
    """The day of a preset.

    Attributes:
        preset: its name.
        streams: key of a stream -> its scores.
        costs: of the gate.
        threshold: the threshold that the detector uses by default; None: it has none.
        rule: the argument of `h2t2 home-assistant`.
        decisions: filter of the topics of decisions.
        events: identity -> whether it is an event; the servers know it.
    """

    preset: ClassVar[str]
    streams: ClassVar[dict[str, Scores]]
    costs: ClassVar[Costs] = Costs(beta=0.2, delta_fp=0.7, delta_fn=1.0)
    threshold: ClassVar[float | None] = None
    rule: ClassVar[str]
    decisions: ClassVar[str]

    def __init__(self) -> None:
        self.events: dict[str, bool] = {}

    def identity(self, number: int) -> str:
        """The identity of a message by its number."""
        return str(number)

    @abstractmethod
    def messages(self, sample: Sample) -> list[Message]:
        """The messages of a sample. The gate decides the first and takes no notice of the others."""

    @abstractmethod
    def remote(self, folder: Path, url: str) -> str:
        """Prepare the remote model in a folder and return it as --remote takes it. url: of the server."""

    @abstractmethod
    def answer(self, path: str, body: bytes, headers: Any) -> Answer:
        """Answer a request of the gate: for a picture or a clip, or for a label."""


class FrigateDay(Day):
    """Two cameras; the scores of the garden change at noon, when the sun comes round. A person's picture is green."""

    preset = "frigate"
    streams: ClassVar = {
        "front_door": Scores(0.35, 0.78, 0.25),
        "garden": Scores(0.35, 0.78, 0.25, drifted=(0.55, 0.62)),
    }
    threshold = 0.7
    rule = "frigate=occupancy"
    decisions = "frigate/events/decision"

    def __init__(self) -> None:
        super().__init__()
        self.pictures = {True: messages.jpeg("green"), False: messages.jpeg("red")}

    def identity(self, number: int) -> str:
        """As Day.identity: the time at which the object was new, and letters."""
        return f"{messages.BEGAN + number:.6f}-mxklsc"

    def messages(self, sample: Sample) -> list[Message]:
        """As Day.messages: every eighth object is updated and ends."""
        kinds = ("new", "update", "end") if sample.number % 8 == 0 else ("new",)
        at = round(messages.BEGAN + sample.number, 6)
        return [("frigate/events", messages.event(kind, sample.identity, sample.stream, sample.score, at)) for kind in kinds]

    def remote(self, folder: Path, url: str) -> str:
        """As Day.remote: the description of a language model that sees pictures."""
        question = "Is there a person in the picture? Answer with one of: {classes}."
        entries = {"url": f"{url}/v1", "model": "llava", "prompt": question, "classes": ["no", "yes"], "logprobs": False}
        (folder / "llava.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items()))
        return "llava.toml"

    def answer(self, path: str, body: bytes, headers: Any) -> Answer:
        """As Day.answer: Frigate's snapshot, or a chat completion."""
        if path.startswith("/api/events/"):
            return self.pictures[self.events[path.split("/")[3]]]
        url = json.loads(body)["messages"][0]["content"][1]["image_url"]["url"]
        word = "yes" if url == data_url(self.pictures[True], "image/jpeg") else "no"
        return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": word}}]}).encode()


BIRDS = {  # scientific name -> common name, pitch of the simulated song in Hz
    "Parus major": ("Great Tit", 3600),
    "Turdus merula": ("Eurasian Blackbird", 2200),
    "Erithacus rubecula": ("European Robin", 2800),
    "Corvus corax": ("Common Raven", 800),
    "Strix aluco": ("Tawny Owl", 1200),
}
NOISE_HZ = 400  # in a clip without the bird
FUNCTION = material.text("programs/birds.py.txt")


class BirdnetGoDay(Day):
    """Five species of unlike quality: BirdNET knows a great tit well, and takes a barking deer for a raven."""

    preset = "birdnet-go"
    streams: ClassVar = {
        "Parus major": Scores(0.9, 0.85, 0.45, lowest=0.3),
        "Turdus merula": Scores(0.8, 0.8, 0.5, lowest=0.3),
        "Erithacus rubecula": Scores(0.6, 0.7, 0.5, lowest=0.3),
        "Corvus corax": Scores(0.15, 0.75, 0.7, lowest=0.3),
        "Strix aluco": Scores(0.3, 0.62, 0.45, lowest=0.3),
    }
    threshold = 0.8
    rule = "birdnet-go=sound"
    decisions = "birdnet/decision"

    def __init__(self) -> None:
        super().__init__()
        self._species: dict[str, str] = {}
        self._late: set[str] = set()  # clips that were asked for before they were there
        self._clips = {pitch: messages.clip(pitch) for pitch in (NOISE_HZ, *(pitch for _, pitch in BIRDS.values()))}

    def messages(self, sample: Sample) -> list[Message]:
        self._species[sample.identity] = sample.stream
        at = f"{sample.hour:02}:{sample.number % 60:02}:00"
        return [("birdnet", messages.bird(sample.number, sample.stream, BIRDS[sample.stream][0], sample.score, at))]

    def remote(self, folder: Path, url: str) -> str:
        """As Day.remote: a function that hears the clip."""
        pitches = {species: pitch for species, (_, pitch) in BIRDS.items()}
        (folder / "birds.py").write_text(FUNCTION.format(pitches=pitches))
        return "birds.py:scores"

    def answer(self, path: str, body: bytes, headers: Any) -> Answer:
        """As Day.answer: a clip. BirdNET-Go writes some only after the message."""
        identity = path.rpartition("/")[2]
        if identity.endswith("00") and identity not in self._late:
            self._late.add(identity)
            return 404, b"{}"
        return self._clips[BIRDS[self._species[identity]][1] if self.events[identity] else NOISE_HZ]


class GenericDay(Day):
    """Two detectors that publish a picture with each score. A picture of an event is green."""

    preset = "generic"
    streams: ClassVar = {"porch": Scores(0.3, 0.75, 0.3), "workshop": Scores(0.1, 0.6, 0.35)}
    rule = "generic=motion"
    decisions = "detector/+/decision"

    def __init__(self) -> None:
        super().__init__()
        self.pictures = {True: messages.jpeg("green"), False: messages.jpeg("red")}

    def messages(self, sample: Sample) -> list[Message]:
        picture = self.pictures[sample.is_event]
        return [(f"detector/{sample.stream}", messages.generic(sample.identity, sample.score, picture))]

    def remote(self, folder: Path, url: str) -> str:
        """As Day.remote: a server of the open inference protocol."""
        return f"{url}/v2/models/second"

    def answer(self, path: str, body: bytes, headers: Any) -> Answer:
        """As Day.answer: the server's description, its model's, or scores."""
        if path == "/v2":
            return json.dumps({"name": "simulated", "version": "1", "extensions": []}).encode()
        if not path.endswith("/infer"):
            inputs = [{"name": "picture", "datatype": "BYTES", "shape": [-1, 1]}]
            outputs = [{"name": "event", "datatype": "FP32", "shape": [-1]}]
            return json.dumps({"name": "second", "platform": "", "inputs": inputs, "outputs": outputs}).encode()
        pictures = [base64.b64decode(item) for item in json.loads(body)["inputs"][0]["data"]]
        scores = [float(picture == self.pictures[True]) for picture in pictures]
        output = {"name": "event", "datatype": "FP32", "shape": [len(scores)], "data": scores}
        return json.dumps({"model_name": "second", "outputs": [output]}).encode()


DAYS: dict[str, type[Day]] = {day.preset: day for day in (FrigateDay, BirdnetGoDay, GenericDay)}

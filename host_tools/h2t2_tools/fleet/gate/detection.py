"""A detection: a score of somebody else's model, and what the remote model would see of it. A decision about it."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

LONGEST_KEY = 64  # bytes of a stream's name
LONGEST_TEXT = 200  # characters of an identity and of a detector's label


@dataclass(frozen=True)
class Payload:
    """What the remote model is asked about. Exactly one of url, data and tensor is set; none of them: nothing can be asked.

    Attributes:
        url: where a picture is.
        data: a picture or a text, unchanged.
        media: type of the data.
        tensor: numbers, for models that take numbers.
    """

    url: str = ""
    data: bytes = b""
    media: str = ""
    tensor: tuple[float, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to ask about."""
        return not (self.url or self.data or self.tensor)


@dataclass(frozen=True)
class Detection:
    """A score to decide about.

    Attributes:
        key: the stream that it belongs to: a camera, a room, a species. Each stream has a policy of its own.
        score: 0 to 1, of class 1; or the scores of all classes.
        identity: the gate decides once for each identity of a topic; "": unknown.
        topic: where the message came from; "" for other doors.
        label: the detector's own name for it.
        payload: what the remote model would see.
        features: int8 numbers in 1/32 that the policy's head learns from.
    """

    key: str
    score: float | tuple[float, ...]
    _: KW_ONLY
    identity: str = ""
    topic: str = ""
    label: str = ""
    payload: Payload = field(default_factory=Payload)
    features: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision.

    Attributes:
        id: the identity of the detection.
        key: its stream.
        decision: the class, from 0.
        label: its name; its number where it has none.
        source: "local": the detector's score was enough; "remote": the remote model's answer; "fallback": the policy wanted
            to ask and could not.
        score: of the detector.
        bin: of the score, -1 for more than two classes.
        cost: what the decision costs: beta for an answer of the remote model, otherwise the expected cost of a
            mistake; None: nothing tells it.
        unfamiliar: whether the stream has hardly seen such scores.
        detected: the detector's own name for it.
        ms: from the message to the decision.
        topic: where the message came from.
    """

    id: str
    key: str
    decision: int
    label: str
    source: str
    score: float | tuple[float, ...]
    bin: int
    cost: float | None
    unfamiliar: bool
    detected: str
    ms: int
    topic: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The entries that are published."""
        entries = dict(vars(self))  # asdict() takes twenty times as long
        del entries["topic"]
        return entries

    def as_json(self) -> str:
        """The decision as it is published."""
        return json.dumps(self.as_dict(), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, topic: str) -> Decision:
        """A decision that as_json() wrote."""
        entries = json.loads(text)
        if isinstance(entries["score"], list):
            entries["score"] = tuple(entries["score"])
        return cls(**entries, topic=topic)

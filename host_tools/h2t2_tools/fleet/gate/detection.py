"""A detection: a score of somebody else's model, and what the remote model would see of it. A decision about it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from h2t2.link import wire

NO_IDENTITY = ("", "0")  # a detector without a database sends 0
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
        dtype, shape: of a node's int8 or uint8 data, which only workers understand.
        why: why there is nothing to ask about although the configuration names it; "": there is, or it names nothing.
    """

    url: str = ""
    data: bytes = b""
    media: str = ""
    tensor: tuple[float, ...] = ()
    dtype: int = wire.RAW
    shape: tuple[int, ...] = ()
    why: str = ""

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
        identity: the detector's own number for it; "" and "0": unknown.
        topic: where the message came from; "" for other doors.
        label: the detector's own name for it.
        payload: what the remote model would see.
        features: int8 numbers in 1/32 that the policy's head learns from.
        delivery: the broker's number of this delivery; 0: unknown.
        redelivered: the broker may have delivered it before, under the same number.
    """

    key: str
    score: float | tuple[float, ...]
    _: KW_ONLY
    identity: str = ""
    topic: str = ""
    label: str = ""
    payload: Payload = field(default_factory=Payload)
    features: tuple[int, ...] = ()
    delivery: int = field(default=0, compare=False)
    redelivered: bool = field(default=False, compare=False)

    @property
    def may_repeat(self) -> bool:
        """Whether an earlier message with the same mark was this one."""
        return self.redelivered or self.identity not in NO_IDENTITY

    def mark(self) -> str:
        """What a repetition of the message has in common with it: identity, key, score and picture; "": nothing is sure.

        An identity alone tells nothing: two cameras count from 1, and a counter begins anew. Without an identity only the
        broker's repetition of a delivery is one.
        """
        name = self.identity
        if name in NO_IDENTITY:
            if not self.delivery:
                return ""
            name = f"\0{self.delivery}"
        payload = self.payload
        content = repr((self.key, self.score, payload.url, payload.tensor)).encode() + payload.data
        return f"{name} {hashlib.sha256(content).hexdigest()[:16]}"


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
        reason: why the source is this one, in words; "" of a decision of release 1.0.
        score: of the detector.
        bin: of the score, -1 for more than two classes.
        cost: what the decision costs: beta for an answer of the remote model, otherwise the expected cost of a
            mistake; None: nothing tells it.
        unfamiliar: whether the stream has hardly seen such scores.
        detected: the detector's own name for it.
        ms: from the message to the decision.
        topic: where the message came from.
        place: of the decision among those that are not published yet; 0: it is not there; negative: only in memory.
        mark: as Detection.mark().
        repeated: whether it was decided before.
    """

    id: str
    key: str
    decision: int
    label: str
    source: str
    reason: str = ""
    score: float | tuple[float, ...]
    bin: int
    cost: float | None
    unfamiliar: bool
    detected: str
    ms: int
    topic: str = ""
    place: int = field(default=0, compare=False)
    mark: str = ""
    repeated: bool = field(default=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The entries that are published."""
        entries = dict(vars(self))  # asdict() takes twenty times as long
        for name in ("topic", "place", "mark", "repeated"):
            del entries[name]
        return entries

    def as_json(self) -> str:
        """The decision as it is published."""
        return json.dumps(self.as_dict(), separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, topic: str, mark: str) -> Decision:
        """A decision that as_json() wrote."""
        entries = json.loads(text)
        if isinstance(entries["score"], list):
            entries["score"] = tuple(entries["score"])
        return cls(**entries, topic=topic, mark=mark)

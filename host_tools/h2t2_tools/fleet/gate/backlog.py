"""What a gate must not lose, in one SQLite file: samples that wait for the remote model, and decisions by identity."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common import places
from ..database import Schema, transaction
from ..queue import backlog
from ..queue.lesson import Lesson
from .detection import Decision, Detection, Payload

SCHEMA = Schema(
    content="queue of a gate",
    table="waiting",
    migrations=(places.text("fleet/gate/backlog.sql"),),
    remedy="name another folder in `state`",
    busy_s=5.0,
    shrinks=True,
)


@dataclass(frozen=True)
class Waiting:
    """A sample that the policy wanted to ask about.

    Attributes:
        number: its place in the queue.
    """

    number: int
    detection: Detection
    lesson: Lesson


class Backlog(backlog.Backlog[Waiting]):
    """The file of a gate, as queue.backlog.Backlog, with the decisions.

    Args:
        path: of the file.
        room: bytes.
        age: seconds.
        remember: number of decisions.
    """

    columns = ("key", "identity", "topic", "score", "label", "lesson", "url", "media", "data", "tensor")

    def __init__(self, path: Path, room: int, age: float, remember: int, clock: Callable[[], float] = time.time) -> None:
        self._remember = remember
        super().__init__(path, SCHEMA, room, age, clock)

    def add(self, detection: Detection, lesson: Lesson) -> int:
        """Append a sample; its number, or 0 where the disk fails."""
        payload = detection.payload
        return self.insert(
            key=detection.key,
            identity=detection.identity,
            topic=detection.topic,
            score=json.dumps(detection.score),
            label=detection.label,
            lesson=lesson.as_json(),
            url=payload.url,
            media=payload.media,
            data=payload.data,
            tensor=json.dumps(payload.tensor),
            decided=0,
        )

    def keep_payload(self, number: int, payload: Payload) -> None:
        """Store the data of a sample that came with a URL only: the picture may be gone later."""
        statement = "UPDATE waiting SET data = ?, media = ? WHERE id = ?"
        self._try(lambda: self._base.execute(statement, (payload.data, payload.media, number)), None)

    def undecided(self) -> list[Waiting]:
        """Samples whose decisions a former start did not publish."""

        def select() -> list[Waiting]:
            numbers = self._base.execute("SELECT id FROM waiting WHERE NOT decided ORDER BY id").fetchall()
            return [waiting for (number,) in numbers if (waiting := self._read(number))]

        return self._try(select, [])

    def decide(self, decision: Decision, number: int = 0) -> None:
        """Remember a decision, before it is published. number: of the sample in the queue."""

        def write() -> None:
            with transaction(self._base):
                if number:
                    self._base.execute("UPDATE waiting SET decided = 1 WHERE id = ?", (number,))
                if decision.id and self._remember:
                    row = (decision.topic, decision.id, self._clock(), decision.as_json())
                    self._base.execute("INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?)", row)
            self._keep_bounds()

        if number or (decision.id and self._remember):
            self._try(write, None)

    def decision(self, topic: str, identity: str) -> Decision | None:
        """The decision about an identity; None where there is none, or it is forgotten."""

        def select() -> Decision | None:
            statement = "SELECT content FROM decisions WHERE topic = ? AND identity = ?"
            row = self._base.execute(statement, (topic, identity)).fetchone()
            return Decision.parse(row[0], topic) if row else None

        return self._try(select, None)

    def _forget(self) -> None:
        excess = "SELECT rowid FROM decisions ORDER BY at DESC LIMIT -1 OFFSET ?"
        self._base.execute(f"DELETE FROM decisions WHERE rowid IN ({excess})", (self._remember,))

    def parse(self, number: int, row: tuple[Any, ...]) -> Waiting:
        """As queue.backlog.Backlog.parse."""
        key, identity, topic, score, label, lesson, url, media, data, tensor = row
        scores, taken = json.loads(str(score)), Lesson.parse(str(lesson))
        payload = Payload(
            url="" if data else str(url),
            data=bytes(data),
            media=str(media),
            tensor=tuple(json.loads(str(tensor))),
        )
        detection = Detection(
            str(key),
            tuple(scores) if isinstance(scores, list) else scores,
            identity=str(identity),
            topic=str(topic),
            label=str(label),
            payload=payload,
            features=taken.features[len(scores) if isinstance(scores, list) else 1 :],
        )
        return Waiting(number, detection, taken)

"""What a gate must not lose, in one SQLite file: samples that wait for the remote model, decisions by identity, and decisions
that the broker does not have yet."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...common import places
from ...common.durations import Clock
from ..database import Schema, transaction
from ..queue import backlog
from ..queue.lesson import Lesson
from .detection import Decision, Detection, Payload

REPEATED_S = 600.0  # for so long a message may come again: a broker repeats what a gate has not acknowledged
MAX_UNSAVED = 1000  # decisions in memory, while the file cannot be written
SCHEMA = Schema(
    content="queue of a gate",
    table="waiting",
    migrations=(
        places.text("fleet/gate/backlog.sql"),
        places.text("fleet/queue/attempts.sql"),
        places.text("fleet/gate/outbox.sql"),
        "ALTER TABLE waiting ADD COLUMN mark TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE outbox ADD COLUMN received INTEGER NOT NULL DEFAULT 0",
    ),
    remedy="name another folder in `state`",
    busy_s=5.0,
    shrinks=True,
)


@dataclass(frozen=True)
class Waiting:
    """A sample that the policy wanted to ask about.

    Attributes:
        number: its place in the queue.
        mark: of the detection as it came.
    """

    number: int
    detection: Detection
    lesson: Lesson
    mark: str = ""


class Backlog(backlog.Backlog[Waiting]):
    """The file of a gate, as queue.backlog.Backlog, with the decisions.

    Args:
        path: of the file.
        room: bytes.
        age: seconds.
        remember: number of decisions.

    Attributes:
        received: places of the decisions that the broker has taken over, and may not have forwarded.
    """

    columns = ("key", "identity", "topic", "score", "label", "lesson", "url", "media", "data", "tensor", "mark")
    dated = ("waiting", "decisions")
    may_age = "decided"  # however late it is: an accepted detection gets its decision

    def __init__(
        self, path: Path, room: int, age: float, remember: int, clock: Clock = time.time, lived: Clock = time.monotonic
    ) -> None:
        self._remember = remember
        self._unsaved: dict[int, tuple[Decision, int]] = {}  # place -> what decide() could not write, and its number
        self._unsaved_place = 0  # of the last decision in _unsaved; it counts down
        self._published: set[int] = set()  # places of published decisions whose rows are not deleted yet
        super().__init__(path, SCHEMA, room, age, clock, lived)
        self.received: set[int] = self._try(
            lambda: {row[0] for row in self._base.execute("SELECT id FROM outbox WHERE received")}, set()
        )

    def add(self, detection: Detection, lesson: Lesson, mark: str = "", *, asked: bool = False) -> int:
        """Append a sample; its number, or 0 where the disk fails. asked: as insert()'s."""
        payload = detection.payload
        return self.insert(
            asked=asked, key=detection.key, identity=detection.identity, topic=detection.topic,
            score=json.dumps(detection.score), label=detection.label, lesson=lesson.as_json(), url=payload.url,
            media=payload.media, data=payload.data, tensor=json.dumps(payload.tensor), mark=mark, decided=0,
        )  # fmt: skip

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

    def decide(self, decision: Decision, number: int = 0) -> Decision:
        """Remember a decision, before it is published, and return it with its place among the unpublished ones.

        number: of the sample in the queue.
        """

        if not (number or decision.mark or decision.topic):
            return decision
        place = self._save(decision, number, publish=bool(decision.topic))
        if place < 0:
            self._unsaved_place -= 1
            place = self._unsaved_place
            self._unsaved[place] = replace(decision, place=place), number
            while len(self._unsaved) > MAX_UNSAVED:
                del self._unsaved[next(iter(self._unsaved))]
        return replace(decision, place=place)

    def unpublished(self) -> list[Decision]:
        """The decisions that the broker does not have, the oldest first."""

        def select() -> list[Decision]:
            rows = self._base.execute("SELECT id, topic, content FROM outbox ORDER BY id").fetchall()
            return [replace(Decision.parse(content, topic, ""), place=place) for place, topic, content in rows]

        decisions: list[Decision] = self._try(select, [])
        decisions += [decision for decision, _ in self._unsaved.values() if decision.topic]
        return [decision for decision in decisions if decision.place not in self._published]

    def note_received(self, place: int) -> None:
        """The broker has taken a decision over: published again, it would be another one."""
        self.received.add(place)
        self._write(lambda: self._base.execute("UPDATE outbox SET received = 1 WHERE id = ?", (place,)), None)

    def forget_received(self) -> None:
        """The broker has forgotten what it has taken over."""
        if self.received:
            self.received.clear()
            self._write(lambda: self._base.execute("UPDATE outbox SET received = 0"), None)

    def note_published(self, place: int) -> None:
        """The broker has forwarded a decision. It is not published again, even where the file cannot be written."""
        self.received.discard(place)
        self._published.add(place)
        self._delete_published()

    def _delete_published(self) -> bool:
        """Delete the decisions that are published. False where the file fails; flush() tries again."""

        def delete() -> bool:
            for place in [*self._published]:
                if place > 0:
                    self._base.execute("DELETE FROM outbox WHERE id = ?", (place,))
                if place not in self._unsaved:
                    self._published.discard(place)
            return True

        return self._write(delete, False)

    def flush(self) -> bool:
        """As queue.backlog.Backlog.flush, and write what could not be written before."""
        if not super().flush() or not self._delete_published():
            return False
        for place, (decision, number) in list(self._unsaved.items()):
            if decision.topic and place not in self._published:  # a connection publishes it from memory
                continue
            if self._save(decision, number, publish=False) < 0:
                return False
            del self._unsaved[place]
            self._published.discard(place)
        return True

    def _save(self, decision: Decision, number: int, publish: bool) -> int:
        """Write a decision. Returns its place among the unpublished ones; 0 for no such place, -1 where the file fails."""

        def write() -> int:
            place, content = 0, decision.as_json()
            with transaction(self._base):
                if number:
                    self._base.execute("UPDATE waiting SET decided = 1 WHERE id = ?", (number,))
                if decision.mark and self._remember:
                    row = (decision.topic, decision.mark, self._stamp(), content)
                    self._base.execute("INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?)", row)
                if publish:
                    statement = "INSERT INTO outbox (topic, content) VALUES (?, ?)"
                    place = self._base.execute(statement, (decision.topic, content)).lastrowid or 0
            self._keep_bounds()
            return place

        return self._write(write, -1)

    def decision(self, topic: str, mark: str, of_any_age: bool = False) -> Decision | None:
        """The decision about a detection of the last minutes, or of any age; None where there is none, or it is forgotten."""

        for decision, _ in self._unsaved.values():
            if (decision.topic, decision.mark) == (topic, mark):
                return decision

        def select() -> Decision | None:
            statement = "SELECT content FROM decisions WHERE topic = ? AND identity = ? AND at > ?"
            earliest = 0.0 if of_any_age else self._stamp() - REPEATED_S
            row = self._base.execute(statement, (topic, mark, earliest)).fetchone()
            return Decision.parse(row[0], topic, mark) if row else None

        return self._try(select, None)

    def _forget(self) -> None:
        excess = "SELECT rowid FROM decisions ORDER BY at DESC LIMIT -1 OFFSET ?"
        self._base.execute(f"DELETE FROM decisions WHERE rowid IN ({excess})", (self._remember,))

    def parse(self, number: int, row: tuple[Any, ...]) -> Waiting:
        """As queue.backlog.Backlog.parse."""
        key, identity, topic, score, label, text, url, media, data, tensor, mark = row
        scores, lesson = json.loads(str(score)), Lesson.parse(str(text))
        payload = Payload(
            url="" if data else str(url), data=bytes(data), media=str(media), tensor=tuple(json.loads(str(tensor)))
        )
        features = lesson.features[len(scores) if isinstance(scores, list) else 1 :]
        scores = tuple(scores) if isinstance(scores, list) else scores
        detection = Detection(
            str(key), scores, identity=str(identity), topic=str(topic), label=str(label), payload=payload, features=features
        )
        return Waiting(number, detection, lesson, str(mark))

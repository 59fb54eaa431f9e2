"""What a gate must not lose, in one SQLite file: samples that wait for the remote model, and decisions by identity.

The backlog is bounded by size and age. The oldest samples go first, whatever they were asked for: dropping by reason would
bias what the policy learns.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..database import Schema, open_file, transaction, used_bytes
from .detection import Decision, Detection, Payload
from .lesson import Lesson

LOG = logging.getLogger(__name__)
LOOK = 64  # changes between two looks at the bounds
SILENT_S = 60.0  # between two logged failures
SCHEMA = Schema(
    content="queue of a gate",
    table="waiting",
    migrations=(
        """
CREATE TABLE waiting (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, key TEXT NOT NULL, identity TEXT NOT NULL, topic TEXT NOT NULL,
    score TEXT NOT NULL, label TEXT NOT NULL, lesson TEXT NOT NULL, url TEXT NOT NULL, media TEXT NOT NULL, data BLOB NOT NULL,
    tensor TEXT NOT NULL, decided INTEGER NOT NULL
);
CREATE TABLE decisions (topic TEXT NOT NULL, identity TEXT NOT NULL, at REAL NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (topic, identity));
CREATE INDEX by_time ON decisions (at);
""",
    ),
    remedy="name another folder in `state`",
    busy_s=5.0,
    shrinks=True,
)
COLUMNS = "at, key, identity, topic, score, label, lesson, url, media, data, tensor, decided"
READ = "id, key, identity, topic, score, label, lesson, url, media, data, tensor"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Waiting:
    """A sample that the policy wanted to ask about.

    Attributes:
        number: its place in the queue.
    """

    number: int
    detection: Detection
    lesson: Lesson


class Backlog:
    """The file of a gate, for several threads. Where the disk fails, the gate goes on; `failures` counts.

    Args:
        path: of the file.
        room: bytes.
        age: seconds.
        remember: number of decisions.
    """

    def __init__(self, path: Path, room: int, age: float, remember: int, clock: Callable[[], float] = time.time) -> None:
        self._base = open_file(path, SCHEMA)
        self._room, self._age, self._remember, self._clock = room, age, remember, clock
        self._lock = threading.Lock()
        self._changes = 0
        self._silent_until = 0.0
        self.failures = self.dropped = 0
        self.length = self._try(lambda: int(self._base.execute("SELECT count(*) FROM waiting").fetchone()[0]), 0)

    def add(self, detection: Detection, lesson: Lesson) -> int:
        """Append a sample; its number, or 0 where the disk fails."""
        payload = detection.payload
        row = (
            self._clock(), detection.key, detection.identity, detection.topic, json.dumps(detection.score), detection.label,
            lesson.as_json(), payload.url, payload.media, payload.data, json.dumps(payload.tensor), 0,
        )  # fmt: skip

        def insert() -> int:
            marks = ", ".join("?" * len(row))
            number = self._base.execute(f"INSERT INTO waiting ({COLUMNS}) VALUES ({marks})", row).lastrowid
            self.length += 1
            self._keep_bounds()
            return number or 0

        return self._try(insert, 0)

    def keep_payload(self, number: int, payload: Payload) -> None:
        """Store the data of a sample that came with a URL only: the picture may be gone later."""
        statement = "UPDATE waiting SET data = ?, media = ? WHERE id = ?"
        self._try(lambda: self._base.execute(statement, (payload.data, payload.media, number)), None)

    def remove(self, number: int) -> None:
        """Delete a sample that has its label, or will never have one."""

        def delete() -> None:
            self.length -= self._base.execute("DELETE FROM waiting WHERE id = ?", (number,)).rowcount

        self._try(delete, None)

    def oldest(self, excluding: Collection[int] = ()) -> Waiting | None:
        """The oldest sample whose number is not among those excluded; None without one."""

        def select() -> Waiting | None:
            for (number,) in self._base.execute("SELECT id FROM waiting ORDER BY id"):
                waiting = None if number in excluding else self._read(number)
                if waiting:
                    return waiting
            return None

        return self._try(select, None) if self.length else None

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

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    def _read(self, number: int) -> Waiting | None:
        """A sample by its number. One that no gate can read is dropped: None."""
        row = self._base.execute(f"SELECT {READ} FROM waiting WHERE id = ?", (number,)).fetchone()
        try:
            return _waiting(row)
        except (ValueError, KeyError, TypeError) as error:
            LOG.warning("the queue: sample %d cannot be read and is dropped: %s", number, error)
            self.length -= self._base.execute("DELETE FROM waiting WHERE id = ?", (number,)).rowcount
            self.dropped += 1
            return None

    def _keep_bounds(self) -> None:
        """Delete what is too old, or too much, once in LOOK changes."""
        self._changes += 1
        if self._changes % LOOK:
            return
        count = self._base.execute("DELETE FROM waiting WHERE at < ?", (self._clock() - self._age,)).rowcount
        excess = "SELECT rowid FROM decisions ORDER BY at DESC LIMIT -1 OFFSET ?"
        self._base.execute(f"DELETE FROM decisions WHERE rowid IN ({excess})", (self._remember,))
        while used_bytes(self._base) > self._room and self.length > count:
            count_of_oldest = max(1, (self.length - count) // 10)
            oldest = f"SELECT id FROM waiting ORDER BY id LIMIT {count_of_oldest}"
            count += self._base.execute(f"DELETE FROM waiting WHERE id IN ({oldest})").rowcount
        self.length -= count
        self.dropped += count

    def _try(self, action: Callable[[], Result], default: Result) -> Result:
        """The result of an action on the file; the default, logged and counted, where the file fails."""
        with self._lock:
            try:
                return action()
            except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
                self.failures += 1
                if time.monotonic() > self._silent_until:
                    self._silent_until = time.monotonic() + SILENT_S
                    LOG.error("the queue: %s (failure %d)", error, self.failures)
                with suppress(sqlite3.Error):
                    self._base.rollback()
                return default


def _waiting(row: tuple[Any, ...]) -> Waiting:
    """A row as a sample."""
    number, key, identity, topic, score, label, lesson, url, media, data, tensor = row
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
        features=taken.features[1:],
    )
    return Waiting(int(number), detection, taken)

"""Samples that wait for a remote model, in a table of an SQLite file.

The table is bounded by size and age. The oldest samples go first, whatever they were asked for: dropping by reason would bias
what the policy learns. A sample that nobody answers about, although others are answered, goes after MAX_ATTEMPTS. A question
that the end of its process cuts off counts as an attempt: a sample may be what ends it.
"""

import logging
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ...common.durations import Clock
from ..ages import Ages
from ..database import Schema, open_file, savepoint, used_bytes
from .attempts import MAX_ATTEMPTS, Attempts

LOG = logging.getLogger(__name__)
LOOK, LOOK_S = 64, 60.0  # changes, and seconds, between two looks at the bounds
SILENT_S = 60.0  # between two logged failures
RETRY_S = 1.0  # between two tries to write to a file that could not be written
MAX_MISFITS = 16  # samples of another policy or model that one look at the queue drops


class Numbered(Protocol):
    """A sample of the queue."""

    @property
    def number(self) -> int:
        """Its place in the queue."""


Sample = TypeVar("Sample", bound=Numbered)
Result = TypeVar("Result")


class Backlog(Generic[Sample]):
    """The table `waiting` of a file, for several threads. Where the disk fails, its user goes on; `failures` counts.

    While the file cannot be written, nothing of it is asked about: what an answer settles would be asked about again.

    Attributes:
        is_writable: whether the last write succeeded. The first is that of next(), or of flush().
        length: samples that wait.
        dropped: samples that were too old or too many, or that nobody could read.
        misfits: samples of another policy or model.
        attempts: when each may be asked about again.
    """

    columns: tuple[str, ...]  # that parse() takes, beside the number
    dated: tuple[str, ...] = ("waiting",)  # tables with a column `at`
    may_age = "1"  # the condition of rows that go when they are too old

    def __init__(
        self, path: Path, schema: Schema, room: int, age: float, clock: Clock = time.time, lived: Clock = time.monotonic
    ) -> None:
        """UserError: the file cannot be used.

        Args:
            schema: of a table `waiting` with the columns id, at and attempts, and those of `columns`.
            room: bytes.
            age: seconds.
            clock: Unix seconds. It may step, when it is set.
            lived: seconds that never step.
        """
        self._base = open_file(path, schema)
        self._room, self._age, self._clock = room, age, clock
        self._ages = Ages("the queue", self._newest, self._shift, lived)
        self._lock = threading.Lock()
        self._changes = -1
        self._silent_until = 0.0
        self._looked_at = time.monotonic()
        self.attempts = Attempts()
        self.is_writable = False
        self._retry_at = 0.0
        # numbers of samples whose question has no outcome yet; their attempts in the file count it already
        self._open_questions: set[int] = set()
        self._settled: dict[int, Callable[[], object]] = {}  # numbers that wait for their deletion -> what follows it
        self.failures = self.dropped = self.length = self.misfits = 0
        self.length = self._try(lambda: int(self._base.execute("SELECT count(*) FROM waiting").fetchone()[0]), 0)
        self._try(self._stamp, 0.0)
        self._try(self._keep_bounds, None)

    def _stamp(self) -> float:
        """The time for a row, Unix seconds. After a step of the clock all rows move by it, so that each keeps its age."""
        unix_s = self._clock()
        self._ages.follow(unix_s)
        return unix_s

    def _newest(self) -> float:
        return max(self._base.execute(f"SELECT max(at) FROM {table}").fetchone()[0] or 0.0 for table in self.dated)

    def _shift(self, seconds: float) -> None:
        with savepoint(self._base):
            for table in self.dated:
                self._base.execute(f"UPDATE {table} SET at = at + ?", (seconds,))

    def parse(self, number: int, row: tuple[Any, ...]) -> Sample:
        """A row's `columns` as a sample. ValueError, KeyError or TypeError for a row that cannot be read."""
        raise NotImplementedError

    def insert(self, asked: bool = False, **row: Any) -> int:
        """Append a row; its number, or 0 where the disk fails. asked: it is asked about at once, as begin() says."""

        def write() -> int:
            row.update(at=self._stamp(), attempts=int(asked))
            statement = f"INSERT INTO waiting ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            number = self._base.execute(statement, tuple(row.values())).lastrowid
            self.length += 1
            if asked and number:
                self._open_questions.add(number)
            self._keep_bounds()
            return number or 0

        return self._write(write, 0)

    def remove(self, number: int, then: Callable[[], object] = lambda: None) -> None:
        """Delete a sample that has its label, or will never have one.

        Args:
            number: of the sample. Nobody is asked about it any more, even where the file cannot be written.
            then: runs once the sample is deleted: now, or in a later flush(). A label teaches there, so that it teaches once.
        """
        self._settled[number] = then
        self._delete_settled(number)

    def flush(self) -> bool:
        """Delete what is settled, where the file could not be written before; call it now and then.

        Returns:
            Whether the file can be written.
        """
        if time.monotonic() < self._retry_at:
            return False
        if not self.is_writable:
            oldest = "UPDATE waiting SET at = at WHERE id = (SELECT min(id) FROM waiting)"
            self._write(lambda: self._base.execute(oldest), None)
        for number in [*self._settled]:
            self._delete_settled(number)
        return self.is_writable

    def _delete_settled(self, number: int) -> None:
        def delete() -> bool:
            self._delete(number)
            return True

        if self._write(delete, False):
            self._settled.pop(number)()

    def find(self, number: int) -> Sample | None:
        """A sample by its number; None where there is none, or it is settled."""
        return None if number in self._settled else self._try(lambda: self._read(number), None)

    def next(self, excluding: Collection[int] = ()) -> Sample | None:
        """The sample to ask about: of those that have failed least often, the oldest.

        None where each is among those excluded, or waits because it has failed, or the file cannot be written. What is too old
        is deleted before.
        """
        if not self.length or not self.flush():
            return None
        waiting = self.attempts.waiting()

        def select() -> Sample | None:
            if time.monotonic() > self._looked_at + LOOK_S:  # a queue that nothing is added to grows older all the same
                self._delete_excess()
            for (number,) in self._base.execute("SELECT id FROM waiting ORDER BY attempts, id"):
                sample = None if number in excluding or number in waiting else self._read(number)
                if sample:
                    return sample
            return None

        return self._try(select, None)

    def oldest(self, excluding: Collection[int], question: Callable[[Sample], Result]) -> tuple[Result | None, int]:
        """The question about the sample of next() that has one. Up to MAX_MISFITS samples before it that have none are dropped.

        Args:
            excluding: as for next().
            question: makes it; raises ValueError or struct.error for a sample of another policy or model.

        Returns:
            The question, None where there is none; and how many samples were dropped.
        """
        for dropped in range(MAX_MISFITS):
            sample = self.next(excluding)
            if sample is None:
                return None, dropped
            try:
                return question(sample), dropped
            except (ValueError, struct.error) as error:
                self.drop(sample.number, str(error))
        return None, MAX_MISFITS

    def drop(self, number: int, why: str) -> None:
        """Remove a sample that the policy cannot learn from, or the remote model cannot be asked about."""
        self.remove(number)
        if not self.misfits:
            LOG.warning("the queue holds samples that nobody can be asked about (%s); they are dropped", why)
        self.misfits += 1

    def begin(self, number: int) -> bool:
        """Note that a sample is asked about now; fail(), withdraw() or remove() ends that.

        Returns:
            False: the file cannot be written, or the sample is dropped because it was asked about too often.
        """

        def write() -> bool:
            row = self._base.execute("SELECT attempts FROM waiting WHERE id = ?", (number,)).fetchone()
            if row is None:
                return False
            if row[0] >= MAX_ATTEMPTS:
                self._delete(number)
                self.dropped += 1
                return False
            self._base.execute("UPDATE waiting SET attempts = attempts + 1 WHERE id = ?", (number,))
            self._open_questions.add(number)
            return True

        return self._write(write, False)

    def withdraw(self, number: int) -> None:
        """Note that the question about a sample came to nothing, by no fault of the sample."""
        if number in self._open_questions:
            self._open_questions.remove(number)
            statement = "UPDATE waiting SET attempts = attempts - 1 WHERE id = ?"
            self._write(lambda: self._base.execute(statement, (number,)), None)

    def fail(self, number: int, *, own: bool) -> bool:
        """Note that a sample got no answer. own: it is the sample's own fault, as attempts.Attempts says.

        Returns:
            Whether it was dropped: it has failed too often.
        """

        def write() -> bool:
            if number not in self._open_questions:
                self._base.execute("UPDATE waiting SET attempts = attempts + 1 WHERE id = ?", (number,))
            self._open_questions.discard(number)
            row = self._base.execute("SELECT attempts FROM waiting WHERE id = ?", (number,)).fetchone()
            if row is None or row[0] < MAX_ATTEMPTS:
                return False
            self._delete(number)
            return True

        self.attempts.fail(number, own=own)
        if not own:
            self.withdraw(number)
            return False
        return self._write(write, False)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    def _delete(self, number: int) -> None:
        self.attempts.forget(number)
        self._open_questions.discard(number)
        self.length -= self._base.execute("DELETE FROM waiting WHERE id = ?", (number,)).rowcount

    def _read(self, number: int) -> Sample | None:
        """A sample by its number. One that nobody can read is dropped: None."""
        row = self._base.execute(f"SELECT {', '.join(self.columns)} FROM waiting WHERE id = ?", (number,)).fetchone()
        if row is None:
            return None
        try:
            return self.parse(number, row)
        except (ValueError, KeyError, TypeError) as error:
            LOG.warning("the queue: sample %d cannot be read and is dropped: %s", number, error)
            self._delete(number)
            self.dropped += 1
            return None

    def _keep_bounds(self) -> None:
        """Delete what is too old, or too much, at the start and once in LOOK changes."""
        self._changes += 1
        if not self._changes % LOOK:
            self._delete_excess()

    def _delete_excess(self) -> None:
        """Delete what is too old, or too much."""
        self._looked_at = time.monotonic()
        too_old = f"DELETE FROM waiting WHERE at < ? AND {self.may_age}"
        count = self._base.execute(too_old, (self._stamp() - self._age,)).rowcount
        self._forget()
        while used_bytes(self._base) > self._room and self.length > count:
            count_of_oldest = max(1, (self.length - count) // 10)
            oldest = f"SELECT id FROM waiting ORDER BY id LIMIT {count_of_oldest}"
            count += self._base.execute(f"DELETE FROM waiting WHERE id IN ({oldest})").rowcount
        self.length -= count
        self.dropped += count

    def _forget(self) -> None:
        """Delete what other tables hold too much of."""

    def _write(self, action: Callable[[], Result], default: Result) -> Result:
        """As _try, of an action that writes."""
        failures = self.failures
        result = self._try(action, default)
        self.is_writable = self.failures == failures
        return result

    def _try(self, action: Callable[[], Result], default: Result) -> Result:
        """The result of an action on the file; the default, logged and counted, where the file fails."""
        with self._lock:
            try:
                return action()
            except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
                self.failures += 1
                self.is_writable, self._retry_at = False, time.monotonic() + RETRY_S
                if time.monotonic() > self._silent_until:
                    self._silent_until = time.monotonic() + SILENT_S
                    LOG.error("the queue: %s (failure %d)", error, self.failures)
                with suppress(sqlite3.Error):
                    self._base.rollback()
                return default

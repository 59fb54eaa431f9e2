"""Samples that wait for a remote model, in a table of an SQLite file.

The table is bounded by size and age. The oldest samples go first, whatever they were asked for: dropping by reason would bias
what the policy learns.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from ...common.fields import DAY_S, Count, Duration, Options, option
from ..database import Schema, open_file, used_bytes

LOG = logging.getLogger(__name__)
LOOK = 64  # changes between two looks at the bounds
SILENT_S = 60.0  # between two logged failures
Sample = TypeVar("Sample")
Result = TypeVar("Result")


class QueueOptions(Options):
    """The options of whatever keeps samples for a remote model that is away."""

    queue_mb: Count = option(200, "room for samples that wait for the remote model, MB; the oldest go", group="operation")
    queue_age: Annotated[Duration, Field(ge=1, le=365 * DAY_S)] = option(7.0 * DAY_S, "age at which they go", group="operation")
    patience: Annotated[Duration, Field(ge=1, le=7 * DAY_S)] = option(
        60.0,
        "time for an answer that teaches; then the sample may be asked about again. For a person: hours",
        group="operation",
    )


class Backlog(Generic[Sample]):
    """The table `waiting` of a file, for several threads. Where the disk fails, its user goes on; `failures` counts.

    Attributes:
        length: samples that wait.
        dropped: samples that were too old or too many, or that nobody could read.
    """

    columns: tuple[str, ...]  # that parse() takes, beside the number

    def __init__(self, path: Path, schema: Schema, room: int, age: float, clock: Callable[[], float] = time.time) -> None:
        """UserError: the file cannot be used.

        Args:
            schema: of a table `waiting` with the columns id and at, and those of `columns`.
            room: bytes.
            age: seconds.
        """
        self._base = open_file(path, schema)
        self._room, self._age, self._clock = room, age, clock
        self._lock = threading.Lock()
        self._changes = -1
        self._silent_until = 0.0
        self.failures = self.dropped = self.length = 0
        self.length = self._try(lambda: int(self._base.execute("SELECT count(*) FROM waiting").fetchone()[0]), 0)
        self._try(self._keep_bounds, None)

    def parse(self, number: int, row: tuple[Any, ...]) -> Sample:
        """A row's `columns` as a sample. ValueError, KeyError or TypeError for a row that cannot be read."""
        raise NotImplementedError

    def insert(self, **row: Any) -> int:
        """Append a row; its number, or 0 where the disk fails."""
        row["at"] = self._clock()

        def write() -> int:
            statement = f"INSERT INTO waiting ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            number = self._base.execute(statement, tuple(row.values())).lastrowid
            self.length += 1
            self._keep_bounds()
            return number or 0

        return self._try(write, 0)

    def remove(self, number: int) -> None:
        """Delete a sample that has its label, or will never have one."""
        self._try(lambda: self._delete(number), None)

    def find(self, number: int) -> Sample | None:
        """A sample by its number; None where there is none."""
        return self._try(lambda: self._read(number), None)

    def oldest(self, excluding: Collection[int] = ()) -> Sample | None:
        """The oldest sample whose number is not among those excluded; None without one."""

        def select() -> Sample | None:
            for (number,) in self._base.execute("SELECT id FROM waiting ORDER BY id"):
                sample = None if number in excluding else self._read(number)
                if sample:
                    return sample
            return None

        return self._try(select, None) if self.length else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    def _delete(self, number: int) -> None:
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
        if self._changes % LOOK:
            return
        count = self._base.execute("DELETE FROM waiting WHERE at < ?", (self._clock() - self._age,)).rowcount
        self._forget()
        while used_bytes(self._base) > self._room and self.length > count:
            count_of_oldest = max(1, (self.length - count) // 10)
            oldest = f"SELECT id FROM waiting ORDER BY id LIMIT {count_of_oldest}"
            count += self._base.execute(f"DELETE FROM waiting WHERE id IN ({oldest})").rowcount
        self.length -= count
        self.dropped += count

    def _forget(self) -> None:
        """Delete what other tables hold too much of."""

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

"""Offloaded samples with their labels in one SQLite file, which several workers write; bounded by size.

Where the file has no more room, the store thins samples that were offloaded for certain: it deletes some of the older ones, at
random, and lowers the `share` of the others accordingly. Explored samples go last: they stand for all that were not offloaded.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from h2t2.core.numbers import ONE
from h2t2.cpython import worker_wire
from h2t2.link import wire

from ...common import places
from ...common.errors import UserError, file_errors
from ...common.fields import Device, ModelNumber
from ...common.untrusted import parse_json
from ..database import Schema, open_file, transaction, used_bytes

FILE = "samples.db"
EVERY_S = 0.5  # between two commits: a kill loses what came after the last
FULL = 0.9  # of the room, to which it is thinned
LEAST_DELETED = 1 / 64  # of the older samples at a time
LEAST_SHARE = 1 / 64  # a period of which so little has stayed is given up
LATEST = 1e11  # Unix seconds, in the year 5138
ITEM_BYTES = {wire.INT8: 1, wire.UINT8: 1, wire.FLOAT32: 4}
QUEUE = 10_000  # samples that may wait for the disk; the keeper drops and counts more
SCHEMA = Schema(
    content="samples",
    table="samples",
    migrations=(places.text("fleet/samples/store.sql"),),
    remedy="name another folder",
    busy_s=30.0,  # another worker may hold the file
)


Share = Annotated[int, Field(ge=0, le=ONE)]  # Q15
Byte = Annotated[int, Field(ge=0, le=255)]
Number = Annotated[int, Field(ge=0, le=2**32)]


def _sides(shape: Any) -> Any:
    """The numbers in a column `shape`; the column itself where it holds no list."""
    with suppress(ValueError, TypeError):
        return tuple(parse_json(shape))
    return shape


class Sample(BaseModel):
    """An offloaded sample, as a worker writes it.

    Args:
        at: Unix seconds.
        chance: probability (Q15) of its offload; 0 where the device did not send it.
        share: the part of samples like it that is kept.
        bin: of the local score.
        label, score: the remote model's answer; score in Q15.
        data: as the device sent them.
    """

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)

    id: int
    at: Annotated[float, Field(ge=0, le=LATEST)]
    device: Device
    model: ModelNumber
    boot: Number
    sequence: Number
    chance: Share
    share: Annotated[float, Field(ge=2.0**-60, le=1)]
    bin: Byte
    dtype: Annotated[int, Field(ge=0, le=wire.RAW)]
    shape: Annotated[tuple[Annotated[int, Field(gt=0, le=wire.MAX_DATA)], ...], BeforeValidator(_sides)]
    media: str
    data: bytes
    label: Byte
    score: Share

    @model_validator(mode="after")
    def _holds_its_shape(self) -> "Sample":
        if len(self.data) != prod(self.shape) * ITEM_BYTES.get(self.dtype, 1):
            raise ValueError("data of another shape")
        return self

    @property
    def weight(self) -> float:
        """How many samples of the device it stands for: 1 / (the probability that it was offloaded and kept)."""
        return 1 / ((self.chance / ONE if self.chance else 1.0) * self.share)


COLUMNS = tuple(Sample.model_fields)


def open_folder(folder: Path, create: bool = False) -> sqlite3.Connection:
    """The file in that folder. create: make folder and file where there are none.

    Raises:
        UserError: there is no file, or it holds no samples.
    """
    path = folder / FILE
    with file_errors(path):
        if create:
            folder.mkdir(parents=True, exist_ok=True)
    if not create and not path.is_file():
        raise UserError(f"{path}: no such file; `h2t2 rdl --keep {folder}` makes it")
    return open_file(path, SCHEMA)


@contextmanager
def readable(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file in that folder, until the context ends.

    Raises:
        UserError: there is no file, or the block reads a damaged part of it; the text says how to save the rest.
    """
    base = open_folder(folder)
    try:
        yield base
    except (sqlite3.Error, Damaged, UnicodeDecodeError) as error:
        path = folder / FILE
        saved = f"what can be read may be saved: mkdir saved; sqlite3 {path} .recover | sqlite3 saved/{FILE}"
        raise UserError(f"{path}: {error}; {saved}") from None
    finally:
        base.close()


class Damaged(Exception):
    """No worker has written this row of the file."""


class Keeper:
    """Writes what a worker answered, in a thread of its own: an answer never waits for the disk.

    Samples that cannot be written, because the disk is full or another process holds the file, wait for the next commit.

    dropped: samples that could not be kept: too many waited, or they still did at the end.
    """

    def __init__(self, folder: Path, megabytes: float, log: Callable[[str], None]) -> None:
        """UserError for a folder that cannot be used."""
        self._base = open_folder(folder, create=True)
        self._room, self._log = int(megabytes * 1e6), log
        self._queue: list[tuple[object, ...]] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self.dropped = 0
        self._silent_until = 0.0  # of the log
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self._thread.start()

    def keep(self, device: str, r: worker_wire.Request, reply: bytes) -> None:
        """Queue a request and its reply. Error replies are left out."""
        status, _, _, label, score = wire.decode_reply(reply)
        if status != wire.OK:
            return
        row = (
            time.time(), device, r.model, r.boot, r.sequence, r.chance, 1.0, r.k, r.dtype, json.dumps(list(r.shape)), r.media,
            bytes(r.data), label, score,
        )  # fmt: skip
        with self._lock:
            if len(self._queue) < QUEUE:
                self._queue.append(row)
            else:
                self.dropped += 1

    def close(self) -> None:
        """Write the queue, and end."""
        self._end.set()
        self._thread.join()
        self._base.close()
        self.dropped += len(self._queue)

    def _run(self) -> None:
        while not self._end.wait(EVERY_S):
            self._write()
        self._write()

    def _write(self) -> None:
        with self._lock:
            rows, self._queue = self._queue, []
        if not rows:
            return
        marks = ", ".join("?" * (len(COLUMNS) - 1))
        try:
            with transaction(self._base):
                self._base.executemany(f"INSERT OR IGNORE INTO samples ({', '.join(COLUMNS[1:])}) VALUES ({marks})", rows)
                if used_bytes(self._base) > self._room:
                    thin(self._base, int(FULL * self._room))
        except Exception as error:  # this thread goes on
            waiting = rows if isinstance(error, sqlite3.OperationalError) else []  # the disk is full, the file is locked
            with self._lock:
                queue = waiting + self._queue
                self._queue = queue[:QUEUE]
                self.dropped += len(rows) - len(waiting) + len(queue) - len(self._queue)
            if time.monotonic() > self._silent_until:
                self._silent_until = time.monotonic() + 60
                self._log(f"{len(rows)} samples could not be written: {error}; {self.dropped} are lost so far")


def thin(base: sqlite3.Connection, limit: int) -> None:
    """Delete samples until at most `limit` bytes are used: of the older certain ones as many as needed; explored ones last.

    The older ones are those that were written first: `at` is of a clock that may have been set.
    """
    certain = f"chance IN (0, {ONE})"
    while (used := used_bytes(base)) > limit:
        count = base.execute("SELECT count(*) FROM samples").fetchone()[0]
        older = base.execute(f"SELECT id FROM samples WHERE {certain} AND share > {LEAST_SHARE} ORDER BY id").fetchall()
        if older:
            middle = older[len(older) // 2][0]
            excess = count * (used - limit) / used  # samples of the mean size
            deleted = min(0.5, max(LEAST_DELETED, excess / (len(older) // 2 + 1)))
            which = f"{certain} AND share > {LEAST_SHARE} AND id <= ?"
            base.execute(f"DELETE FROM samples WHERE {which} AND abs(random() % 1000000) < ?", (middle, deleted * 1e6))
            base.execute(f"UPDATE samples SET share = share * ? WHERE {which}", (1 - deleted, middle))
            if used_bytes(base) > limit:
                _compact(base)
            continue
        if not count:
            return
        last = f"SELECT id FROM samples ORDER BY {certain} DESC, id LIMIT {max(1, count // 10)}"
        base.execute(f"DELETE FROM samples WHERE id IN ({last})")


def _compact(base: sqlite3.Connection) -> None:
    """Move the samples, in their order, behind the last one, so that half empty pages become free; pack the indexes, too."""
    numbered = "SELECT id AS old, row_number() OVER (ORDER BY id) AS n FROM samples"
    last = base.execute("SELECT max(id) FROM samples").fetchone()[0]
    base.execute(f"UPDATE samples SET id = ? + moved.n FROM ({numbered}) AS moved WHERE samples.id = moved.old", (last,))
    base.execute("REINDEX samples")


def read(base: sqlite3.Connection, device: str | None = None, model: int | None = None) -> Iterator[Sample]:
    """Samples in the order of time, of all devices and models or of one.

    Raises:
        sqlite3.Error, Damaged: the file is damaged.
    """
    where = [f"{name} = ?" for name, value in (("device", device), ("model", model)) if value is not None]
    values = [value for value in (device, model) if value is not None]
    clause = f" WHERE {' AND '.join(where)}" if where else ""
    for row in base.execute(f"SELECT {', '.join(COLUMNS)} FROM samples{clause} ORDER BY at, id", values):
        yield _sample(dict(zip(COLUMNS, row)))


def _sample(row: dict[str, Any]) -> Sample:
    """A row as a sample. Damaged, naming the column, for a row that no worker writes."""
    try:
        return Sample.model_validate(row)
    except ValidationError as error:
        name = str((*error.errors()[0]["loc"], "data")[0])
        raise Damaged(f"the file is damaged: sample {row['id']}: {name} is {str(row[name])[:40]!r}") from None


def delete_device(base: sqlite3.Connection, device: str) -> int:
    """Delete a device's samples and overwrite them in the file; how many there were."""
    base.execute("PRAGMA secure_delete = ON")
    count = base.execute("DELETE FROM samples WHERE device = ?", (device,)).rowcount
    base.execute("VACUUM")
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count

"""What a fleet has done so far, in one SQLite file: a row a device and a minute, and a log. Bounded by age and by size."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2t2.node.account import PLACES

from ...common.errors import UserError
from ...common.untrusted import parse_json
from .device import Device
from .report import minute

VERSION = 1
LARGEST = 2.0**53
STEP_S = 60  # a row a device each
BUSY_S = 0.25  # for which another process may hold the file: what waits is written a second later
COSTS = ("own", "always", "never")
COLUMNS = ("boot", "samples", "offloads", "replies", "fallbacks", "unasked", "saturated", *COSTS)
LONGEST = 1000  # characters of a line of the log
SCHEMA = f"""
CREATE TABLE devices (device TEXT PRIMARY KEY, boot INTEGER, since REAL, usual TEXT) WITHOUT ROWID;
CREATE TABLE minutes (device TEXT, at INTEGER, {", ".join(COLUMNS)}, PRIMARY KEY (device, at)) WITHOUT ROWID;
CREATE INDEX by_time ON minutes (at);
CREATE TABLE log (number INTEGER PRIMARY KEY, at REAL, device TEXT, kind TEXT, text TEXT);
CREATE INDEX by_device ON log (device, number);
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True)
class Line:
    """Of the log. at: Unix seconds. kind: command, answer or alarm."""

    at: float
    device: str
    kind: str
    text: str


@dataclass(frozen=True)
class Bounds:
    """What is kept at most: days, and megabytes of the file."""

    days: float = 30.0
    megabytes: float = 256.0


class History:
    """For one thread at a time. A note() is one transaction: a kill loses what came after the last.

    Every method but close() may raise sqlite3.Error: the disk is full, another process holds the file, or it is damaged. What
    is read of a damaged file is checked: a value that is no number or text of ours is left out.
    """

    def __init__(self, path: Path, bounds: Bounds = Bounds()) -> None:  # noqa: B008
        """UserError for a file that is none of ours."""
        self._path, self._bounds = path, bounds
        try:
            self._base = sqlite3.connect(path, BUSY_S, isolation_level=None, check_same_thread=False)
            version = self._base.execute("PRAGMA user_version").fetchone()[0]
            tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version == 0 and tables == 0:
                self._base.executescript("PRAGMA auto_vacuum = FULL; VACUUM;" + SCHEMA)
            elif version != VERSION:
                raise UserError(f"{path}: no history of this version; move it away, or name another file")
            self._base.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        except sqlite3.Error as error:
            remedy = "another process holds it" if "locked" in str(error) else "move it away, or name another file"
            raise UserError(f"{path}: {error}; {remedy}") from None
        except (ValueError, TypeError):  # sqlite3 meets text that is no UTF-8, or no row where there must be one
            raise UserError(f"{path}: it is damaged; move it away, or name another file") from None
        self._noted: dict[str, int] = {}

    def close(self) -> None:
        self._base.close()

    def recall(self, device: Device) -> None:
        """Tell a device that is just met what was known of it: what is usual there, and since when it runs."""
        row = self._base.execute("SELECT boot, since, usual FROM devices WHERE device = ?", (device.name,)).fetchone()
        if row is None:
            return
        if device.usual is None:
            device.usual = _histogram(row[2])
        if row[0] == device.boot and _is_number(row[1]) and row[1] < device.since:
            device.since = row[1]

    def note(self, devices: list[dict[str, Any]], now: float, lines: Iterable[Line] = ()) -> int:
        """Write a row for every device (report.of_device) that has said something in a minute that has none yet; how many.

        lines: of the log. Where it raises, nothing of all this is written, and it can be called again with the same.
        """
        at = int(now // STEP_S) * STEP_S
        rows, known = [], []
        said = [(line.at, line.device, line.kind, line.text[:LONGEST]) for line in lines]
        for one in devices:
            name, heard = one["device"], one["heard"]
            if one["state"] is None or not heard or self._noted.get(name) == at or now - heard > 2 * STEP_S:
                continue
            row = minute(one)
            usual = one["scores"]["usual"]
            rows.append((name, at, *(row[column] for column in COLUMNS)))
            known.append((name, row["boot"], one["since"], json.dumps(usual) if usual else None))
        if rows or said:
            with self._transaction():
                marks = ", ".join("?" * (2 + len(COLUMNS)))
                self._base.executemany(f"INSERT OR REPLACE INTO minutes VALUES ({marks})", rows)
                self._base.executemany("INSERT OR REPLACE INTO devices VALUES (?, ?, ?, ?)", known)
                self._base.executemany("INSERT INTO log (at, device, kind, text) VALUES (?, ?, ?, ?)", said)
        self._noted.update(dict.fromkeys((row[0] for row in rows), at))
        return len(rows)

    def say(self, device: str, kind: str, text: str, now: float) -> None:
        """Write a line of the log."""
        self.note([], now, [Line(now, device, kind, text)])

    def log(self, device: str, most: int = 50) -> list[dict[str, Any]]:
        """The last lines of a device, the newest first."""
        found = self._base.execute(
            "SELECT at, kind, text FROM log WHERE device = ? ORDER BY number DESC LIMIT ?", (device, most)
        )
        rows = (dict(zip(("at", "kind", "text"), row)) for row in found)
        return [row for row in rows if _is_number(row["at"]) and isinstance(row["kind"], str) and isinstance(row["text"], str)]

    def series(self, device: str, since: float, most: int = 500) -> list[dict[str, Any]]:
        """Its rows from then on, oldest first; of more than `most`, every second, third ..."""
        found = self._base.execute(
            f"SELECT at, {', '.join(COLUMNS)} FROM minutes WHERE device = ? AND at >= ? ORDER BY at", (device, since)
        ).fetchall()
        found = [row for row in found if all(map(_is_number, row[: -len(COSTS)])) and all(map(_is_cost, row[-len(COSTS) :]))]
        step = -(-len(found) // most) or 1
        return [dict(zip(("at", *COLUMNS), row)) for row in found[::-1][::step][::-1]]

    def forget(self, device: str) -> None:
        """Everything of a device."""
        with self._transaction():
            for table in ("devices", "minutes", "log"):
                self._base.execute(f"DELETE FROM {table} WHERE device = ?", (device,))

    def prune(self, now: float) -> None:
        """Delete what is too old, and the oldest of what is too much."""
        oldest = now - self._bounds.days * 86400
        with self._transaction():
            self._base.execute("DELETE FROM minutes WHERE at < ?", (oldest,))
            self._base.execute("DELETE FROM log WHERE at < ?", (oldest,))
        most = self._bounds.megabytes * 1e6
        while self._size() > most:
            with self._transaction():
                gone = self._oldest("minutes") + self._oldest("log")
            if not gone:
                return

    def _oldest(self, table: str) -> int:
        """Delete the oldest tenth of a table: how many rows."""
        count = self._base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if not count:
            return 0
        limit = self._base.execute(f"SELECT at FROM {table} ORDER BY at LIMIT 1 OFFSET ?", (count // 10,)).fetchone()[0]
        return self._base.execute(f"DELETE FROM {table} WHERE at <= ?", (limit,)).rowcount

    def _size(self) -> float:
        pages, size = (self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return float(pages * size)

    def _transaction(self) -> Any:
        if self._base.in_transaction:  # one that could not even be taken back
            self._base.rollback()
        self._base.execute("BEGIN IMMEDIATE")
        return self._base


def _is_number(value: Any) -> bool:
    """Whether a value that was read is a finite number that no arithmetic of ours leaves the range of."""
    return isinstance(value, (int, float)) and abs(value) < LARGEST


def _is_cost(value: Any) -> bool:
    return value is None or _is_number(value)


def _histogram(text: Any) -> list[int] | None:
    """The counts of scores in a JSON text; None where it holds none."""
    try:
        counts = parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
    good = isinstance(counts, list) and 0 < len(counts) <= PLACES and all(type(n) is int and 0 <= n < LARGEST for n in counts)
    return counts if good else None

"""What a fleet has done so far, in one SQLite file: a row a device and a minute, and a log. Bounded by age and by size."""

import json
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from h2t2.node.asking import PLACES

from ...common import places
from ...common.durations import Clock
from ...common.untrusted import parse_json
from ..ages import Ages
from ..database import Schema, open_file, savepoint, transaction, used_bytes
from .fleet_report import minute
from .history_bounds import Bounds
from .intervals import LISTS
from .watched_device import Device

LARGEST = 2.0**53
BEYOND = 1 << 45  # seconds
STEP_S = 60  # a row a device each
FRESH_S = 6 * 3600  # for so long every row is kept, then that of each tenth minute
SPARSE = 10
COSTS = ("own", "always", "never")
COLUMNS = ("boot", "samples", "offloads", "replies", "fallbacks", "unasked", "saturated", *COSTS)
LONGEST = 1000  # characters of a line of the log
NEXT_BOOT = (
    "SELECT boot FROM minutes AS later WHERE later.device = minutes.device AND later.at > minutes.at ORDER BY later.at LIMIT 1"
)
SCHEMA = Schema(
    content="history",
    table="minutes",
    migrations=(places.text("fleet/monitoring/history.sql"), "ALTER TABLE minutes ADD COLUMN account TEXT"),
    remedy="move it away, or name another file",
    busy_s=0.25,  # a second later the caller writes the same rows
    shrinks=True,
)


@dataclass(frozen=True)
class Line:
    """Of the log. at: Unix seconds. kind: command, answer, alarm, restart or update."""

    at: float
    device: str
    kind: str
    text: str


class History:
    """For one thread at a time. A write() is one transaction: a kill loses what came after the last.

    Every method but close() may raise sqlite3.Error: the disk is full, another process holds the file, or it is damaged.
    Reading a damaged file leaves out values that are no numbers or texts of ours.
    """

    def __init__(self, path: Path, bounds: Bounds = Bounds(), lived: Clock = time.monotonic) -> None:  # noqa: B008
        """UserError for a file that is no history. lived: seconds that never step."""
        self._bounds = bounds
        self._base = open_file(path, SCHEMA)
        self._ages = Ages("the history", self._newest, self._shift, lived)
        self._written: dict[str, int] = {}  # device -> minute of its last row

    def close(self) -> None:
        self._base.close()

    def recall(self, device: Device) -> None:
        """Restore what was known of a device that appears for the first time: its usual scores, and since when it runs."""
        row = self._base.execute("SELECT boot, since, usual FROM devices WHERE device = ?", (device.name,)).fetchone()
        if row is None:
            return
        if device.usual is None:
            device.usual = _histogram(row[2])
        if row[0] == device.boot and _is_number(row[1]) and row[1] < device.since:
            device.since = row[1]

    def write(
        self, devices: list[dict[str, Any]], now: float, lines: Iterable[Line] = (), ended: Iterable[dict[str, Any]] = ()
    ) -> int:
        """Write a row for every device that has published something in a minute without a row.

        After a step of the clock all rows move by it, so that each keeps its age. Where it raises, nothing is written, and it
        can be called again with the same arguments.

        Args:
            devices: as report.of_device describes them.
            now: Unix seconds.
            lines: of the log.
            ended: devices as their last start left them; each gets a row at the second of its last message.

        Returns:
            The number of rows.
        """
        self._ages.follow(now)
        at = int(now // STEP_S) * STEP_S
        rows, described = [_row(device, int(device["heard"])) for device in ended], []
        log = [(line.at, line.device, line.kind, line.text[:LONGEST]) for line in lines]
        for device in devices:
            name, heard = device["device"], device["heard"]
            if device["state"] is None or not heard or self._written.get(name) == at or now - heard > 2 * STEP_S:
                continue
            usual = device["scores"]["usual"]
            rows.append(_row(device, at))
            described.append((name, device["state"]["boot"], device["since"], json.dumps(usual) if usual else None))
        if rows or log:
            with transaction(self._base):
                marks = ", ".join("?" * (3 + len(COLUMNS)))
                self._base.executemany(f"INSERT OR REPLACE INTO minutes VALUES ({marks})", rows)
                self._base.executemany("INSERT OR REPLACE INTO devices VALUES (?, ?, ?, ?)", described)
                self._base.executemany("INSERT INTO log (at, device, kind, text) VALUES (?, ?, ?, ?)", log)
        self._written.update(dict.fromkeys((row[0] for row in described), at))
        return len(rows)

    def log(self, device: str, limit: int = 50) -> list[dict[str, Any]]:
        """The last lines of a device, the newest first."""
        query = "SELECT at, kind, text FROM log WHERE device = ? ORDER BY number DESC LIMIT ?"
        rows = (dict(zip(("at", "kind", "text"), row)) for row in self._base.execute(query, (device, limit)))
        return [row for row in rows if _is_number(row["at"]) and isinstance(row["kind"], str) and isinstance(row["text"], str)]

    def series(self, device: str, since: float, limit: int = 500, until: float = math.inf) -> list[dict[str, Any]]:
        """A device's rows from `since` on, before `until`, oldest first.

        Of more than `limit` rows it gives every second, third ..., and the last of each start.
        """
        query = f"SELECT account, at, {', '.join(COLUMNS)} FROM minutes WHERE device = ? AND at >= ? AND at < ? ORDER BY at"
        rows = self._base.execute(query, (device, since, until)).fetchall()
        rows = [row for row in rows if all(map(_is_number, row[1 : -len(COSTS)])) and all(map(_is_cost, row[-len(COSTS) :]))]
        step = -(-len(rows) // limit) or 1
        series = [{**dict(zip(("at", *COLUMNS), row[1:])), "account": _account(row[0])} for row in rows]
        ends = {n for n, (row, later) in enumerate(pairwise(series)) if row["boot"] != later["boot"]}
        return [row for n, row in enumerate(series) if (len(series) - 1 - n) % step == 0 or n in ends]

    def remembers(self, device: str) -> bool:
        """Whether it holds a row or a line of a device."""
        query = "SELECT EXISTS (SELECT 1 FROM minutes WHERE device = ?) OR EXISTS (SELECT 1 FROM log WHERE device = ?)"
        return bool(self._base.execute(query, (device, device)).fetchone()[0])

    def remove(self, device: str) -> None:
        """Delete everything of a device."""
        with transaction(self._base):
            for table in ("devices", "minutes", "log"):
                self._base.execute(f"DELETE FROM {table} WHERE device = ?", (device,))
        self._written.pop(device, None)

    def prune(self, now: float) -> None:
        """Delete rows and lines that are too old, most rows that are not fresh, and the oldest while the file is too large.

        The last row of each start stays with those that are not fresh: it alone has all that the device counted in that start.
        """
        self._ages.follow(now)
        oldest = now - self._bounds.days * 86400
        with transaction(self._base):
            for table in ("minutes", "log"):
                self._base.execute(f"DELETE FROM {table} WHERE at < ?", (oldest,))
            sparse = f"at < ? AND at / {STEP_S} % {SPARSE} AND boot IS ({NEXT_BOOT})"
            self._base.execute(f"DELETE FROM minutes WHERE {sparse}", (now - FRESH_S,))
        while used_bytes(self._base) > self._bounds.megabytes * 1e6:
            with transaction(self._base):
                deleted = self._delete_oldest("minutes") + self._delete_oldest("log")
            if not deleted:
                return

    def _newest(self) -> float:
        """The time of the newest row. A damaged file may hold texts there."""
        query = "SELECT max(at) FROM {} WHERE typeof(at) IN ('integer', 'real')"
        newest = (self._base.execute(query.format(table)).fetchone()[0] for table in ("minutes", "log"))
        return max(at or 0.0 for at in newest)

    def _shift(self, seconds: float) -> None:
        """Add whole minutes to all times. A row moves beyond all others first: its device may have one in that minute."""
        whole = math.floor(seconds / STEP_S) * STEP_S
        with savepoint(self._base):
            for step in (whole + BEYOND, -BEYOND):
                self._base.execute("UPDATE minutes SET at = at + ?", (step,))
            self._base.execute("UPDATE log SET at = at + ?", (whole,))
            self._base.execute("UPDATE devices SET since = since + ?", (whole,))
        self._written.clear()

    def _delete_oldest(self, table: str) -> int:
        """Delete the oldest tenth of a table; the number of rows."""
        count = self._base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if not count:
            return 0
        limit = self._base.execute(f"SELECT at FROM {table} ORDER BY at LIMIT 1 OFFSET ?", (count // 10,)).fetchone()[0]
        return self._base.execute(f"DELETE FROM {table} WHERE at <= ?", (limit,)).rowcount


def _row(device: dict[str, Any], at: int) -> tuple[Any, ...]:
    """Return a row of the table `minutes`. at: Unix seconds."""
    counters = minute(device)
    account = json.dumps(counters["account"], separators=(",", ":")) if counters["account"] else None
    return (device["device"], at, *(counters[column] for column in COLUMNS), account)


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number within the range that our arithmetic handles."""
    return isinstance(value, (int, float)) and abs(value) < LARGEST


def _is_cost(value: Any) -> bool:
    return value is None or _is_number(value)


def _json(text: Any) -> Any:
    """The content of a JSON text; None for anything else."""
    try:
        return parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _account(text: Any) -> dict[str, Any] | None:
    """The counters in a JSON text, as report.account() gives them; None where it holds none."""
    content = _json(text)
    if not isinstance(content, dict) or not all(_is_counts(content.get(name)) for name in LISTS):
        return None
    valid = _is_number(content.get("paid")) and len({len(content[name]) for name in LISTS}) == 1
    return content if valid else None


def _is_counts(counts: Any) -> bool:
    return isinstance(counts, list) and 0 < len(counts) <= PLACES and all(type(n) is int and 0 <= n < LARGEST for n in counts)


def _histogram(text: Any) -> list[int] | None:
    """The counts of scores in a JSON text; None where it holds none."""
    counts = _json(text)
    return counts if _is_counts(counts) else None

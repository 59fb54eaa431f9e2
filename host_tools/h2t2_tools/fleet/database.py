"""SQLite files of ours: opened, created, brought to the newest version, written in transactions."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..common.errors import UserError


@dataclass(frozen=True)
class Schema:
    """A kind of file.

    Args:
        content: what it holds, for messages.
        table: one of its tables, by which a file of this kind is recognised.
        migrations: SQL scripts; the first n of them make a file of version n.
        remedy: what a user can do about a file that cannot be used.
        busy_s: seconds for which another process may hold the file.
        shrinks: the file becomes smaller when rows are deleted.
    """

    content: str
    table: str
    migrations: tuple[str, ...]
    remedy: str
    busy_s: float
    shrinks: bool = False


def open_file(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open a file; create it where there is none, and migrate one of an older version.

    Raises:
        UserError: the file cannot be opened or written, is of another kind or of a newer version, or is damaged.
    """
    try:
        base = sqlite3.connect(path, timeout=schema.busy_s, isolation_level=None, check_same_thread=False)
        version, tables = _described(base)
        if (version or tables) and not (0 < version <= len(schema.migrations) and schema.table in tables):
            raise UserError(f"{path}: no {schema.content} of this version; {schema.remedy}")
        if schema.shrinks:
            base.execute("PRAGMA auto_vacuum = FULL")  # SQLite ignores it once there is a table
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        if version < len(schema.migrations):
            with transaction(base):
                _migrate(base, schema)
    except sqlite3.Error as error:
        text = "it cannot be written, or its folder" if _is_unwritable(path) else str(error)
        reason = "another process holds it" if "locked" in text else schema.remedy
        raise UserError(f"{path}: {text}; {reason}") from None
    except (ValueError, TypeError):  # text in it that is no UTF-8, or no row where there must be one
        raise UserError(f"{path}: it is damaged; {schema.remedy}") from None
    return base


def _described(base: sqlite3.Connection) -> tuple[int, set[str]]:
    """The version of a file and its tables, both of one moment: another process may be about to create them."""
    base.execute("BEGIN")
    try:
        version = _version(base)
        return version, {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        base.rollback()


def _is_unwritable(path: Path) -> bool:
    """Whether this process may not write the file, or beside it, where SQLite has two more: also on a read-only file system."""
    return path.parent.is_dir() and not all(os.access(place, os.W_OK) for place in (path.parent, path) if place.exists())


def _version(base: sqlite3.Connection) -> int:
    return int(base.execute("PRAGMA user_version").fetchone()[0])


def _migrate(base: sqlite3.Connection, schema: Schema) -> None:
    for script in schema.migrations[_version(base) :]:  # read again: another process may have migrated the file
        for statement in filter(str.strip, script.split(";")):
            base.execute(statement)
    base.execute(f"PRAGMA user_version = {len(schema.migrations)}")


@contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[None]:
    """Write all that the block does, or nothing where it raises."""
    if base.in_transaction:  # one whose rollback failed
        base.rollback()
    base.execute("BEGIN IMMEDIATE")
    with base:
        yield


@contextmanager
def savepoint(base: sqlite3.Connection) -> Iterator[None]:
    """As transaction(), also within one."""
    base.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if base.in_transaction:  # some errors roll all back
            base.execute("ROLLBACK TO part")
            base.execute("RELEASE part")
        raise
    base.execute("RELEASE part")


def used_bytes(base: sqlite3.Connection) -> int:
    """Bytes of the file that hold something."""
    pages, free, size = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    return int((pages - free) * size)

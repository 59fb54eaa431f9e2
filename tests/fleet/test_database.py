"""SQLite files of ours: old versions are migrated, others are refused."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from states import say

from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import database
from h2t2_tools.fleet.database import Schema, open_file, transaction
from h2t2_tools.fleet.monitoring import fleet_report, history
from h2t2_tools.fleet.samples import sample_store

NEXT = replace(history.SCHEMA, migrations=(*history.SCHEMA.migrations, "ALTER TABLE log ADD COLUMN who TEXT DEFAULT 'nobody'"))
# as release 0.1 made them: a change of the first migration would leave files of users behind
FIRST_HISTORY = """
CREATE TABLE devices (device TEXT PRIMARY KEY, boot INTEGER, since REAL, usual TEXT) WITHOUT ROWID;
CREATE TABLE minutes (device TEXT, at INTEGER, boot, samples, offloads, replies, fallbacks, unasked, saturated, own, always,
    never, PRIMARY KEY (device, at)) WITHOUT ROWID;
CREATE INDEX by_time ON minutes (at);
CREATE TABLE log (number INTEGER PRIMARY KEY, at REAL, device TEXT, kind TEXT, text TEXT);
CREATE INDEX by_device ON log (device, number);
INSERT INTO minutes VALUES ('kitchen', 60, 1, 2, 3, 4, 5, 6, 7, 0.1, 0.2, 0.3);
INSERT INTO log VALUES (1, 60.0, 'kitchen', 'alarm', 'clock: over');
PRAGMA user_version = 1;
"""
FIRST_SAMPLES = """
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, device TEXT NOT NULL, model INTEGER NOT NULL, boot INTEGER NOT NULL,
    sequence INTEGER NOT NULL, chance INTEGER NOT NULL, share REAL NOT NULL, bin INTEGER NOT NULL, dtype INTEGER NOT NULL,
    shape TEXT NOT NULL, media TEXT NOT NULL, data BLOB NOT NULL, label INTEGER NOT NULL, score INTEGER NOT NULL,
    UNIQUE (device, boot, sequence)
);
CREATE INDEX by_time ON samples (at);
INSERT INTO samples VALUES (1, 60.0, 'kitchen', 2, 7, 1, 32768, 1.0, 3, 0, '[2]', '', x'0102', 1, 30000);
PRAGMA user_version = 1;
"""


def write(path, script):
    with closing(sqlite3.connect(path)) as base:
        base.executescript(script)


def test_files_of_the_first_version_are_read_and_written(watched, clock, tmp_path):
    write(tmp_path / "h.db", FIRST_HISTORY)
    say(watched)
    with closing(history.History(tmp_path / "h.db")) as opened:
        assert opened.write(fleet_report.of_fleet(watched, clock.time)["devices"], clock.time) == 1
        assert opened.series("kitchen", 0)[0]["samples"] == 2 and len(opened.series("kitchen", 0)) == 2
        assert opened.log("kitchen") == [{"at": 60.0, "kind": "alarm", "text": "clock: over"}]
    write(tmp_path / sample_store.FILE, FIRST_SAMPLES)
    with sample_store.readable(tmp_path) as base:
        (sample,) = sample_store.read(base)
    assert (sample.device, sample.data, sample.label) == ("kitchen", b"\1\2", 1)


def test_an_old_file_is_migrated_once_and_a_newer_one_refused(tmp_path):
    path = tmp_path / "h.db"
    write(path, FIRST_HISTORY)
    for _ in range(2):
        with closing(open_file(path, NEXT)) as base:
            assert base.execute("SELECT text, who FROM log").fetchall() == [("clock: over", "nobody")]
            assert base.execute("PRAGMA user_version").fetchone() == (len(NEXT.migrations),)
    with pytest.raises(UserError, match="no history of this version"):
        open_file(path, history.SCHEMA)


def test_a_migration_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "h.db"
    write(path, FIRST_HISTORY)
    broken = replace(NEXT, migrations=(*NEXT.migrations, "DROP TABLE missing"))
    with pytest.raises(UserError, match="no such table: missing"):
        open_file(path, broken)
    with closing(open_file(path, history.SCHEMA)) as base:
        assert base.execute("SELECT count(*) FROM log").fetchone() == (1,)


def test_a_file_of_another_kind_is_refused(tmp_path):
    write(tmp_path / sample_store.FILE, FIRST_SAMPLES)
    with pytest.raises(UserError, match="no history of this version"):
        open_file(tmp_path / sample_store.FILE, history.SCHEMA)


def test_a_transaction_that_raises_writes_nothing(tmp_path):
    with closing(open_file(tmp_path / "h.db", history.SCHEMA)) as base:
        with pytest.raises(ZeroDivisionError), transaction(base):
            base.execute("INSERT INTO log (text) VALUES ('x')")
            1 / 0  # noqa: B018
        assert base.execute("SELECT count(*) FROM log").fetchone() == (0,)


IMPATIENT = Schema(
    content="samples", table="kept", migrations=("CREATE TABLE kept (id INTEGER)",), remedy="name another", busy_s=0.1
)


def test_a_file_that_another_process_creates_meanwhile_is_no_strangers(tmp_path, monkeypatch):
    """One of four workers that began at once ended: it had read the version before the others created the tables."""
    path, read_version, others = tmp_path / "file.db", database._version, []

    def slow_version(base):
        version = read_version(base)
        if not others:
            others.append(1)
            with suppress(UserError):  # it waits for our look at the file, or we for it
                open_file(path, IMPATIENT).close()
        return version

    monkeypatch.setattr(database, "_version", slow_version)
    base = open_file(path, IMPATIENT)
    base.execute("INSERT INTO kept VALUES (1)")
    assert read_version(base) == 1
    base.close()


OPEN = """
import sys
from pathlib import Path
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.lock import hold
from h2t2_tools.fleet.queue.queueing_node import SCHEMA
from h2t2_tools.fleet.database import open_file
folder = Path(sys.argv[1])
print(hold(folder, "h2t2 node", "move"))
for name in ("new.db", "old.db"):
    try:
        open_file(folder / name, SCHEMA)
        print("opened")
    except UserError as error:
        print(error)
"""
MOUNT = 'mount -t tmpfs tmpfs "$1" && cp "$2" "$1/old.db" && mount -o remount,ro "$1" && exec "$3" -c "$4" "$1"'


def test_a_start_on_a_read_only_file_system_names_that(tmp_path):
    """A real one, mounted in a name space of its own."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    (tmp_path / "whole").mkdir()
    first = subprocess.run([sys.executable, "-c", OPEN.replace("new.db", "old.db"), tmp_path / "whole"], capture_output=True)
    assert first.stdout.endswith(b"opened\nopened\n")
    folder = tmp_path / "state"
    folder.mkdir()
    words = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", folder, tmp_path / "whole/old.db", sys.executable, OPEN]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    remedy = "it cannot be written, or its folder; name another file in --queue"
    assert done.stdout.splitlines() == ["None", *(f"{folder}/{name}: {remedy}" for name in ("new.db", "old.db"))]

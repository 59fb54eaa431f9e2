"""Whom a queue asks about when: a sample that failed waits while others are asked, and is dropped after a while."""

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest
from disks import read_only
from gate_decisions import decision

from h2t2_tools.fleet.gate.detection import Detection, Payload
from h2t2_tools.fleet.gate.gate_backlog import Backlog
from h2t2_tools.fleet.queue import backlog as bounds
from h2t2_tools.fleet.queue.attempts import MAX_ATTEMPTS, Attempts
from h2t2_tools.fleet.queue.lesson import Lesson

LESSON = Lesson(bin=5, beta=6554, local=1, chance=1 << 20, probability=3000)


@pytest.fixture
def clock():
    return [1000.0]


def opened(folder, clock, count=0):
    queue = Backlog(folder / "q.db", 10**9, 60 * 86400, 100, clock=lambda: clock[0], lived=lambda: clock[0])
    queue.attempts = Attempts(lambda: clock[0])
    for n in range(count):
        queue.add(Detection("porch", 0.4, identity=str(n), payload=Payload(data=b"x")), LESSON)
    return queue


def identity(queue):
    sample = queue.next()
    return sample and sample.detection.identity


def test_a_sample_that_failed_is_passed_over_and_asked_about_again_after_longer_and_longer(clock, tmp_path):
    queue = opened(tmp_path, clock, 2)
    assert identity(queue) == "0"
    waits = []
    for _ in range(MAX_ATTEMPTS - 1):
        assert not queue.fail(1, own=True)
        began = clock[0]
        while not queue.next({2}):
            assert identity(queue) == "1"
            clock[0] += 1
        waits.append(clock[0] - began)
    assert waits == [5, 10, 20, 40, 80, 160, 320]
    assert queue.fail(1, own=True) and queue.length == 1
    queue.close()


def test_attempts_outlive_a_restart(clock, tmp_path):
    queue = opened(tmp_path, clock, 2)
    for _ in range(MAX_ATTEMPTS - 1):
        queue.fail(1, own=True)
    queue.close()
    queue = opened(tmp_path, clock)
    assert identity(queue) == "1", "the one that has failed least often"
    assert queue.fail(1, own=True) and queue.length == 1
    queue.close()


def test_a_question_that_a_kill_cuts_off_counts_as_an_attempt(clock, tmp_path):
    """The sample may be what kills the gate. Others come first, and it is dropped after a while."""
    queue = opened(tmp_path, clock)
    queue.add(Detection("porch", 0.4, identity="0", payload=Payload(data=b"x")), LESSON, asked=True)
    queue.add(Detection("porch", 0.4, identity="1", payload=Payload(data=b"x")), LESSON)
    for _ in range(MAX_ATTEMPTS - 1):
        queue.close()
        queue = opened(tmp_path, clock)
        assert identity(queue) == "1"
        assert queue.begin(1)
    queue.close()
    queue = opened(tmp_path, clock)
    assert not queue.begin(1) and (queue.length, queue.dropped) == (1, 1)
    assert not queue.begin(1) and queue.dropped == 1
    queue.close()


@pytest.mark.parametrize("end", ["withdraw", "fail"])
def test_a_question_that_comes_to_nothing_by_no_fault_of_the_sample_is_no_attempt(clock, tmp_path, end):
    queue = opened(tmp_path, clock, 1)
    for _ in range(MAX_ATTEMPTS + 1):
        assert queue.begin(1)
        queue.withdraw(1) if end == "withdraw" else queue.fail(1, own=False)
        queue.withdraw(1)  # of no effect
        queue.attempts.end_outage()
    assert queue.next() and queue.dropped == 0
    for failures in range(MAX_ATTEMPTS):
        assert queue.length == 1, failures
        assert queue.begin(1)
        queue.fail(1, own=True)
    assert queue.length == 0
    queue.close()


def test_a_sample_is_asked_about_only_where_that_can_be_noted(clock, tmp_path):
    queue = opened(tmp_path, clock, 1)
    read_only(queue)
    assert not queue.begin(1)
    queue.close()


def test_an_outage_is_no_samples_fault_and_its_end_makes_all_due(clock, tmp_path):
    queue = opened(tmp_path, clock, 1)
    for _ in range(10 * MAX_ATTEMPTS):
        assert not queue.fail(1, own=False)
    assert queue.length == 1 and identity(queue) is None
    queue.attempts.end_outage()
    assert identity(queue) == "0"
    queue.close()


def test_a_queue_that_nothing_is_added_to_grows_old_all_the_same(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "LOOK_S", -1.0)
    queue = opened(tmp_path, clock, 1)
    queue.decide(decision("0"), 1)
    clock[0] += 59 * 86400
    assert identity(queue) == "0"
    clock[0] += 2 * 86400
    assert identity(queue) is None and (queue.length, queue.dropped) == (0, 1)
    queue.close()


def test_a_file_of_an_older_version_is_taken(clock, tmp_path):
    queue = opened(tmp_path, clock, 1)
    queue.close()
    with sqlite3.connect(tmp_path / "q.db") as base:
        base.execute("DROP INDEX by_attempts")
        base.execute("ALTER TABLE waiting DROP COLUMN attempts")
        base.execute("ALTER TABLE waiting DROP COLUMN mark")
        base.execute("DROP TABLE outbox")
        base.execute("PRAGMA user_version = 1")
    queue = opened(tmp_path, clock)
    assert identity(queue) == "0"
    queue.close()


def test_a_file_that_fails_is_logged_once_a_minute(clock, tmp_path, monkeypatch, caplog):
    now = [1000.0]
    monkeypatch.setattr(bounds, "time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = opened(tmp_path, clock, 1)
    with closing(sqlite3.connect(tmp_path / "q.db")) as base:
        base.execute("DROP TABLE waiting")
    lines = []
    for now[0] in (2000.0, 2059.0, 2060.5):
        queue.next()
        lines.append(caplog.text.count("the queue: no such table"))
    assert lines == [1, 1, 2] and queue.failures == 3


def test_a_file_that_cannot_be_read_holds_no_sample(clock, tmp_path):
    opened(tmp_path, clock, 1).close()
    path = tmp_path / "q.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096].ljust(len(content), b"\0"))  # the first page names the tables; their own pages are lost
    queue = opened(tmp_path, clock)
    assert queue.failures and queue.length == 0 and queue.next() is None
    queue.close()

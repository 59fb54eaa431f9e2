"""Disks that fail, for tests."""

import pytest

from h2t2_tools.fleet.queue import backlog


@pytest.fixture
def at_once(monkeypatch):
    """A queue whose file could not be written tries again at once."""
    monkeypatch.setattr(backlog, "RETRY_S", 0.0)


def read_only(queue, on=True):
    """As a full disk or a read-only file system: reading works, writing fails."""
    queue._base.execute(f"PRAGMA query_only = {'ON' if on else 'OFF'}")

"""Fixtures of this folder."""

import pytest
from secured import fleet
from states import Clock

from h2t2_tools.fleet.monitoring.watched_fleet import Fleet

__all__ = ["fleet"]


@pytest.fixture
def clock():
    """A clock that the test sets."""
    return Clock()


@pytest.fixture
def watched(clock):
    """A fleet that hears what say() says, by that clock."""
    return Fleet(clock)

"""A plugin of pytest: coverage.py knows which test runs, and $H2T2_DURATIONS names a file of the seconds of tests that pass."""

import json
import os
from pathlib import Path

import coverage
import pytest

SECONDS: dict[str, float] = {}
UNUSABLE: set[str] = set()  # tests that failed or skipped


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Let the lines that run from now on belong to this test. Commands that it starts read PYTEST_CURRENT_TEST."""
    recorder = coverage.Coverage.current()
    if recorder:
        recorder.switch_context(item.nodeid)
    yield
    if recorder:
        recorder.switch_context("")


def pytest_runtest_logreport(report):
    """Add up set-up, call and tear-down of a test."""
    if not report.passed:
        UNUSABLE.add(report.nodeid)
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish(session):
    """Write the durations, where all of them are known: not in a worker of xdist."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["H2T2_DURATIONS"]).write_text(
            json.dumps({test: seconds for test, seconds in SECONDS.items() if test not in UNUSABLE})
        )

"""Logs of daemons: a line a record, with time, level and command, whatever is in it; exceptions with their tracebacks."""

import io
import json
import logging
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from h2t2_tools.cli import execute
from h2t2_tools.common import log
from h2t2_tools.common.errors import UserError

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (DEBUG|INFO|WARNING|ERROR|CRITICAL) h2t2 gateway: (.*)")
LOG = logging.getLogger("h2t2_tools.tests")


@pytest.fixture(params=log.FORMATS)
def logged(request):
    """The entries that are logged while it is used, as (level, text, traceback)."""
    root, ours, hook = logging.getLogger(), logging.getLogger(log.PACKAGE), threading.excepthook
    before = root.handlers[:], root.level, ours.level, logging.raiseExceptions
    stream = io.StringIO()
    log.start("gateway", request.param, stream=stream)

    def entries():
        made = []
        for line in stream.getvalue().splitlines():
            if request.param == "json":
                entry = json.loads(line)
                assert entry["command"] == "gateway" and re.fullmatch(r"[\d-]{10}T[\d:]{8}Z", entry["time"])
                made.append((entry["level"].upper(), entry["text"], entry.get("traceback", "")))
            else:
                assert line.isprintable()
                level, text = LINE.fullmatch(line).groups()
                made.append((level, *(text.split(" | ", 1) + [""])[:2]))
        return made

    yield entries
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    logging.raiseExceptions = before[3]
    threading.excepthook = hook


def test_a_record_is_a_line(logged):
    LOG.debug("a detail")
    LOG.info("hello from %s", "ki\x1b[2Jtchen\nERROR h2t2 gateway: forged")
    LOG.warning("100 % of it")
    first, second = logged()
    assert first[0] == "INFO" and "forged" in first[1] and second[:2] == ("WARNING", "100 % of it")


def test_an_exception_has_its_traceback(logged):
    try:
        {}["missing"]  # noqa: B018
    except KeyError:
        LOG.exception("a turn")
    ((level, text, traceback),) = logged()
    assert (level, text) == ("ERROR", "a turn") and "KeyError: 'missing'" in traceback and "test_log.py" in traceback


def test_a_thread_that_ends_by_an_exception_is_logged(logged):
    thread = threading.Thread(target=lambda: 1 / 0, name="watcher")
    thread.start()
    thread.join()
    ((level, text, traceback),) = logged()
    assert (level, text) == ("CRITICAL", "the thread watcher has ended") and "ZeroDivisionError" in traceback


def test_what_another_process_logged_is_logged_again(logged):
    other = io.StringIO()
    handler = logging.StreamHandler(other)
    handler.setFormatter(log.Formatter("rdl", "json"))
    record = LOG.makeRecord("x", logging.ERROR, "f", 1, "it failed", (), (ValueError, ValueError("no"), None))
    handler.handle(record)
    for line in (other.getvalue().strip(), "no record", '{"level": "info"}', '{"text": "odd", "level": 7}'):
        log.relay(LOG, log.parse_entry(line), line)
    levels, texts, tracebacks = zip(*logged())
    assert levels == ("ERROR", "WARNING", "WARNING", "WARNING") and texts[1:] == ("no record", '{"level": "info"}', "odd")
    assert "ValueError: no" in texts[0] + tracebacks[0]


@pytest.mark.parametrize(
    "error, status, words",
    [
        (UserError("--port: no"), 2, "h2t2: --port: no\n"),
        (OSError("gone\x1b[2J"), 1, "h2t2: gone\\x1b[2J\n"),
        (int, 70, "this is a defect of h2t2"),
        (KeyError("x"), 70, "this is a defect of h2t2"),
        (ValueError("nobody has foreseen it"), 70, "this is a defect of h2t2"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_a_command_ends_with_words_and_a_status(error, status, words, debug, monkeypatch, capsys):
    def run():
        if error is int:
            int("x")
        raise error

    monkeypatch.setattr(execute, "parsed", lambda words: SimpleNamespace(run=run))
    assert execute.execute(["--debug"] * debug) == status
    said = capsys.readouterr().err
    assert words in said and ("Traceback" in said) == (debug or status == 70)


@pytest.mark.parametrize("place", [0, 1, 99])
def test_debug_shows_where_wrong_use_was_found(place):
    arguments = ["samples", "nowhere"]
    arguments.insert(place, "--debug")
    run = subprocess.run([sys.executable, "-m", "h2t2_tools", *arguments], capture_output=True, text=True, timeout=120)
    assert run.returncode == 2 and "Traceback" in run.stderr and "h2t2: nowhere" in run.stderr


def test_a_node_logs_what_its_program_raised_with_the_place(caplog):
    from h2t2_tools.fleet.edge_node import _complain, _say

    caplog.set_level(logging.INFO, "h2t2_tools")
    _say("from now on: the broker is away")
    for error in (OSError("no bus"), KeyError("relay")):
        try:
            raise error
        except Exception:
            _complain("act: it raised")
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "ERROR"]
    assert "KeyError: 'relay'" in caplog.text and "OSError: no bus" not in caplog.text

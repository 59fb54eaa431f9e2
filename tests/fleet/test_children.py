"""Processes of a run's own: what they say is heard to its end."""

import signal
import subprocess
import sys
import threading

import pytest

from h2t2_lab.processes import remaining_output
from h2t2_tools.common.errors import Failure
from h2t2_tools.fleet import children


def started(program):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_lines_that_came_with_the_first_one_are_not_lost():
    process = started("import sys; print('a\\nb', flush=True); print('c'); print('d', file=sys.stderr)")
    assert process.stdout.readline() == "a\n"
    assert remaining_output(process, 60) == ("b\nc\n", "d\n") and process.returncode == 0


def test_one_that_does_not_end_is_killed_and_said():
    process = started("import time; print('a', flush=True); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        remaining_output(process, 0.5)
    assert process.wait(10) < 0


def test_a_pipe_that_is_not_there_says_nothing():
    process = subprocess.Popen([sys.executable, "-c", "print('a')"], stdout=subprocess.PIPE, text=True)
    assert remaining_output(process, 60) == ("a\n", "")


def test_one_that_is_never_ready_is_ended_and_the_message_says_so(monkeypatch):
    monkeypatch.setattr(children, "READY_S", 0.2)
    with (
        pytest.raises(Failure, match=r"a child process was not ready after 0\.2 s"),
        children.ready(["0"], "never", module="http.server"),
    ):
        pytest.fail("it was ready")


def test_what_ends_a_late_one_says_so_itself(monkeypatch):
    """Without a look at the clock: on a busy machine the process may be killed before the wait begins."""

    class AtOnce(threading.Timer):
        def start(self):
            self.function()

    monkeypatch.setattr(children.threading, "Timer", AtOnce)
    with pytest.raises(Failure, match="was not ready after"), children.ready(["0"], "never", module="http.server"):
        pytest.fail("it was ready")


def test_one_that_ends_before_it_is_ready_is_quoted():
    quoted = pytest.raises(Failure, match="(?s)a child process ended before it was ready: .*nonsense")
    with quoted, children.ready(["nonsense"], "never", module="http.server"):
        pytest.fail("it was ready")


def test_ctrl_c_while_a_process_starts_leaves_none(monkeypatch):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a server of a module's fixture may have set its own
    processes = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            processes.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(children.subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt), children.child(["0"], module="http.server", stderr=subprocess.DEVNULL):
        pytest.fail("it began")
    (process,) = processes
    try:
        assert process.poll() is not None
    finally:
        process.kill()
        process.wait()

"""A lock is held by one process, names it, and ends with it."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from h2t2_tools.common.errors import UserError
from h2t2_tools.common.lock import Held, Lock, hold

HOLD = """
import sys, time
from pathlib import Path
from h2t2_tools.common.lock import Lock
lock = Lock(Path(sys.argv[1]), "h2t2 gate")
print("held", flush=True)
time.sleep(600)
"""


def test_another_process_is_named_and_a_kill_frees_the_lock(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            with pytest.raises(Held, match=f"process {process.pid} h2t2 gate holds it"):
                Lock(path)
        finally:
            process.send_signal(signal.SIGKILL)
    lock = Lock(path, "h2t2 node")
    assert path.read_text() == f"{os.getpid()} h2t2 node"
    with pytest.raises(Held):
        Lock(path)
    lock.release()
    lock.release()
    Lock(path).release()


def test_what_cannot_be_locked_is_used_all_the_same(tmp_path, caplog):
    """On a read-only file system nobody writes; a lock that is there already can be held."""
    assert hold(tmp_path / "nowhere" / "state", "h2t2 node", "move") is None and "cannot be locked" in caplog.text
    (tmp_path / "lock").touch(mode=0o400)
    lock = hold(tmp_path, "h2t2 gate", "move")
    with pytest.raises(UserError, match="uses it; move"):
        hold(tmp_path, "h2t2 gate", "move")
    lock.release()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_what_cannot_be_locked_now_is_not_used(tmp_path, monkeypatch, number):
    """The disk may be freed while two processes run."""
    real = os.open

    def full(path, flags, *mode):
        if flags & os.O_CREAT and not os.path.exists(path):
            raise OSError(number, os.strerror(number))
        return real(path, flags, *mode)

    text = f"it cannot be locked: {os.strerror(number)}; it would be written by two processes"
    with monkeypatch.context() as patched, pytest.raises(UserError, match=text):
        patched.setattr(os, "open", full)
        hold(tmp_path, "h2t2 gate", "move")
    (tmp_path / "lock").touch()
    monkeypatch.setattr(os, "open", full)
    hold(tmp_path, "h2t2 gate", "move").release()

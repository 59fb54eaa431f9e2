"""`h2t2 run` that is told to end leaves nothing behind: no broker, no worker, no temporary folder."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import need

from h2t2_tools.boards import project
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common import pairs
from h2t2_tools.fleet import broker
from h2t2_tools.model import bundle

APP = """from time import sleep
ROW = {row}
def sense():
    sleep(.05)
    return ROW
def act(decision):
    pass
"""


def processes_of(folder):
    """The command lines of processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if str(folder) in line:
            found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not broker.mosquitto(), reason="Mosquitto is not installed")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_sigterm_ends_the_broker_and_the_worker_too(tmp_path):
    need(UNIX)
    pair, mine, temporary = pairs.load("breast_cancer"), tmp_path / "mine", tmp_path / "temporary"
    project.write(mine, pair, bundle=bundle.for_board(pair, "unix"), board="unix")
    (mine / "app.py").write_text(APP.format(row=pair.x[0].tolist()))
    temporary.mkdir()
    words = [sys.executable, "-m", "h2t2_tools", "run", str(mine), "--board", "unix"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as run:
        assert run.stdout.readline().startswith("{") and any(temporary.iterdir()) and processes_of(temporary)
        run.send_signal(signal.SIGTERM)
        run.stdout.read()
        assert run.wait(60) == 128 + signal.SIGTERM
    assert processes_of(temporary) == [] and list(temporary.iterdir()) == []

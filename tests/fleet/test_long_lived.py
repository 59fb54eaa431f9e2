"""Threads that live as long as their process: whatever they meet they log, and go on."""

import json
import os
import signal
import threading

import pytest
from support import until, worker

from h2t2.cpython.mqtt_session import Session, make_client
from h2t2.cpython.paho import PahoLink
from h2t2_tools.fleet.rdl import watchdog
from h2t2_tools.fleet.rdl.watchdog import HangWatch, Suspects

MODEL = "def scores(x):\n    return [0.5] * len(x)\n"


class Log:
    """The records that a worker's process logs, read from a thread."""

    def __init__(self, process):
        self.records = []
        self._process = process
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stderr:
            self.records.append(json.loads(line))

    def has(self, level, *words):
        return any(one["level"] == level and all(word in str(one) for word in words) for one in self.records)


@pytest.mark.slow
def test_a_workers_watcher_outlives_every_model_and_its_log_is_records(broker, tmp_path):
    """A model that cannot be imported any more, one that writes no text to standard error, and a good one again."""
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    with worker(broker.url, "digits", "--remote", f"{path}:scores", "--log", "json", "--verbose") as process:
        log = Log(process)

        def reloaded(text, level, *words):
            path.write_text(text)
            os.kill(process.pid, signal.SIGHUP)
            return until(lambda: log.has(level, *words), 30)

        assert reloaded("raise RuntimeError('no licence')\n", "error", "the model stays as it was", "no licence")
        noise = "import os\nos.write(2, b'\\xff\\xfe no text\\n')\n" + MODEL
        assert reloaded(noise, "info", "reloaded") and until(lambda: log.has("warning", "no text"), 10)
        assert reloaded("raise KeyError('x')\n", "error", "'x'")
        assert process.poll() is None
        link = PahoLink(broker.host, broker.port, "dev", 2, 5)
        link.open()
        assert until(link.workers, 10)
        link.close()


@pytest.mark.slow
def test_a_session_whose_callback_or_client_raises_says_so_and_connects_again(broker, caplog):
    made = []

    def make():
        made.append(1)
        if len(made) == 2:
            raise KeyError("no client today")
        return make_client("")

    def work():
        if len(made) == 1 and session.up.is_set():
            raise TypeError("a defect")
        return 50

    session = Session(broker.host, broker.port, make, ["x"], work=work)
    session.start()
    assert until(lambda: len(made) == 3 and session.up.is_set(), 60)
    session.close()
    assert "TypeError: a defect" in caplog.text and "KeyError: 'no client today'" in caplog.text


def test_a_request_that_hangs_and_cannot_be_kept_is_refused_all_the_same(tmp_path):
    (tmp_path / "kept").touch()  # no folder
    said, suspects = [], Suspects()
    watch = HangWatch(suspects, tmp_path / "kept", said.append)
    note = watch.note.numbers
    note[watchdog.DIGESTS], note[watchdog.COUNT], note[watchdog.UNTIL] = 7, 1, 0
    assert watch.is_hung() and suspects.read() == {7: watchdog.SUSPECT} and not said
    assert watch.is_hung() and suspects.read() == {7: watchdog.REFUSED} and "not kept" in said[0]
    watch.note.close()
    suspects.close()


def test_suspects_are_shared_cleared_and_bounded():
    """The newest take the places of the oldest."""
    suspects = Suspects()
    worker = Suspects(suspects.descriptor)  # as a worker opens what it inherits
    for number in range(1, watchdog.MAX_SUSPECTS + 3):
        suspects.mark(number, watchdog.SUSPECT)
    assert sorted(worker.read()) == list(range(3, watchdog.MAX_SUSPECTS + 3))
    worker.clear(5)
    assert 5 not in suspects.read() and len(suspects.read()) == watchdog.MAX_SUSPECTS - 1
    suspects.mark(6, watchdog.REFUSED)
    assert worker.read()[6] == watchdog.REFUSED
    suspects.close()

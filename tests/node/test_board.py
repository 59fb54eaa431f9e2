"""What the hardware under a node gives, with a faked `machine` module, on CPython and on MicroPython."""

import json
import sys
import types

import pytest
from support import ROOT, need

from h2t2.node import board, run
from h2t2_tools.boards import kinds
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.fleet import config as board_config
from h2t2_tools.model import bundle


@pytest.fixture
def machine(monkeypatch):
    """A board's `machine`, with a watchdog that counts how often it is fed."""
    made = types.ModuleType("machine")
    made.PWRON_RESET, made.WDT_RESET, made.SOFT_RESET = 1, 3, 5
    made.reset_cause = lambda: 3
    made.fed = []

    class WDT:
        def __init__(self, timeout):
            made.timeout = timeout

        def feed(self):
            made.fed.append(1)

    made.WDT = WDT
    monkeypatch.setitem(sys.modules, "machine", made)
    return made


def test_why_it_started_and_the_watchdog(machine):
    assert board.start_cause() == "wdt"
    machine.reset_cause = lambda: 99
    assert board.start_cause() == "code 99"
    machine.reset_cause = lambda: 0  # of an ESP32 that esptool has reset through its USB
    assert board.start_cause() == ""
    feed = board.watchdog(8000)
    feed()
    assert machine.timeout == 8000 and machine.fed == [1]
    board.watchdog(0)()
    assert machine.fed == [1]


def test_without_hardware_nothing_is_said_and_nothing_fed():
    assert board.start_cause() == "" and board.watchdog(8000)() is None


def test_the_log_is_bounded_and_outlives_a_start(tmp_path, capsys):
    path = tmp_path / "log"
    for life in range(40):
        log = board.Log(str(path), 1000)
        log(f"life {life} " + "x" * 900)

    def log_text():
        return "".join(one.read_text() for one in (tmp_path / "log.old", path) if one.exists())

    assert len(log_text()) < 4000 and "life 39" in log_text() and "life 38" in log_text()
    try:
        raise KeyError("what was it")
    except KeyError as error:
        log.exception(error)
    assert "what was it" in log_text() and "Traceback" in log_text()
    log = board.Log(str(tmp_path / "no/such/folder"))
    log("one")
    log("two")
    assert capsys.readouterr().out.count("the log is not kept") == 1


@pytest.mark.whole
def test_a_start_that_fails_is_tried_again_and_tells_why(tmp_path, monkeypatch, machine):
    """Twice an exception in main, then a run: waits of 1 and 2 s with the watchdog fed, the cause in what it says of itself."""
    (tmp_path / "config.json").write_text(json.dumps({"log_file": str(tmp_path / "log"), "watchdog_ms": 5000}))
    causes, now = [], [0]

    def fail_twice(config, feed, log, cause):
        causes.append(cause)
        if len(causes) < 3:
            raise MemoryError(f"number {len(causes)}")

    monkeypatch.setattr(run, "_run", fail_twice)
    monkeypatch.setattr("h2t2.clock.ticks_ms", lambda: now.__setitem__(0, now[0] + 50) or now[0])
    run.main(str(tmp_path / "config.json"))
    assert causes == ["wdt", "MemoryError: number 1", "MemoryError: number 2"]
    log = (tmp_path / "log").read_text()
    assert "starting again in 1 s" in log and "starting again in 2 s" in log and len(machine.fed) > 20

    def wrong(*_):
        raise ValueError("config.json: no entry policy")

    monkeypatch.setattr(run, "_run", wrong)
    with pytest.raises(ValueError, match="no entry policy"):
        run.main(str(tmp_path / "config.json"))


MACHINE = """WDT_RESET = 3
def reset_cause():
    return 3
class WDT:
    fed = 0
    def __init__(self, timeout):
        pass
    def feed(self):
        WDT.fed += 1
"""


@pytest.mark.slow
def test_a_board_tells_its_cause_feeds_its_watchdog_and_keeps_its_log(broker, rdl, tmp_path):
    """The unix port with that module beside it, a real broker and worker; what was left of a first start is there."""
    need(UNIX)
    model = tmp_path / "ldl.h2m"
    model.write_bytes(bundle.from_tflite(ROOT / "models/breast_cancer/ldl.tflite"))
    (tmp_path / "h2t2.toml").write_text(
        f'port = {broker.port}\nremote_shape = [30]\nmodel_id = 1\ndevice = "b"\nwatchdog = "8s"\n'
    )
    config = board_config.load(tmp_path / "h2t2.toml")
    records = tmp_path / "records"
    records.write_bytes(bytes(35) * 300)
    for path, content in kinds.payload(kinds.KINDS["unix"], kinds.Contents(model, config, records)).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    (tmp_path / "machine.py").write_text(MACHINE)
    own = (tmp_path / "main.py").read_text()
    (tmp_path / "main.py").write_text(
        f"import os\nos.chdir('{tmp_path}')\nimport machine\n{own}print('fed', machine.WDT.fed)\n"
    )
    out = UNIX.run(tmp_path / "main.py", [], tmp_path, 60)
    summary = json.loads(next(line for line in out.splitlines() if '"summary"' in line))["summary"]
    assert summary["start"] == "wdt" and summary["samples"] == 300 and summary["runtime"].count(".") == 2
    assert int(out.split("fed ")[1].split()[0]) > 300
    assert "ready, device b" in (tmp_path / "h2t2.log").read_text()

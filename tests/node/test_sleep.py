"""Sleep between samples: counters, energy, and a board that starts anew at every waking and decides as if it never slept."""

import json
import subprocess

import pytest
from replayed import SETTLED
from support import mosquitto, worker

import h2t2.node.sleep
from h2t2.node import board, store
from h2t2.node.sleep import Sleep
from h2t2_tools.boards import flash, kinds, project
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.common import pairs
from h2t2_tools.common.cost_table import CostTable
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle


@pytest.fixture
def clock(monkeypatch):
    now = [1000]
    monkeypatch.setattr(h2t2.node.sleep, "ticks_ms", lambda: now[0])
    return now


def test_what_sleep_saves_is_counted_over_every_start(clock, tmp_path):
    path = str(tmp_path / "kept")
    slept, fed = [], []
    for start in range(3):
        one = Sleep("deep", slept.append, path, (150_000, 1_000, 20_000))  # 150 mW, 1 mW, 20 mJ
        assert (one.wakes, one.offloads) == (start, 2 * start)
        clock[0] += 500
        one.nap(9500, 2, lambda: fed.append(1))
    assert slept == [9500] * 3 and len(fed) == 6
    made = Sleep("deep", None, path, (150_000, 1_000, 20_000)).report()
    energy = 3 * (0.5 * 150 + 9.5 * 1) + 6 * 20
    assert made == {"wakes": 3, "awake_s": 1, "asleep_s": 28, "duty": 50, "energy_mj": int(energy)}
    assert "energy_mj" not in Sleep("light", None).report()


@pytest.mark.parametrize("content", [b"", b"H2Z1\x01", b"x" * 36])
def test_a_file_cut_short_begins_anew(clock, tmp_path, content):
    (tmp_path / "kept").write_bytes(content)
    assert Sleep("deep", None, str(tmp_path / "kept")).wakes == 0
    unwritable = str(tmp_path)
    Sleep("deep", lambda ms: None, unwritable).nap(5000, 0, lambda: None)  # it sleeps all the same


def test_a_watchdog_is_fed_during_a_long_light_sleep(clock, tmp_path):
    done = []
    Sleep("light", done.append, at_once=4000).nap(9000, 0, lambda: done.append("fed"))
    assert done == ["fed", 4000, "fed", 4000, "fed", 1000, "fed"]
    Sleep("deep", done.append, str(tmp_path / "asleep"), at_once=4000).nap(9000, 0, lambda: None)
    assert done[-1] == 9000


def test_little_is_waited_and_a_machine_without_sleep_says_so():
    assert [Sleep("light", None).worth(ms) for ms in (49, 50)] == [False, True]
    assert not Sleep("deep", None, "/nowhere").worth(999)
    with pytest.raises(ValueError, match="this machine has no deepsleep"):
        board.sleeper("deep")


def test_its_configuration():
    power = CostTable(millijoules=500, wake_mj=20, send_mj_per_kb=10, awake_mw=150.5, asleep_mw=0.7)
    given = NodeConfig(remote_shape=[30], model_id=1, sleep="deep", every="10s", cost=power).content()
    kind, (awake, asleep, offload) = given["sleep"]
    assert (kind, awake, asleep) == ("deep", 150_500, 700) and 20_000 < offload < 21_000
    assert NodeConfig(remote_shape=[30], model_id=1, sleep="light", every="1s").content()["sleep"] == ["light", None]
    assert "sleep" not in NodeConfig(remote_shape=[30], model_id=1).content()
    with pytest.raises(UserError, match="also say when a sample is due"):
        NodeConfig(remote_shape=[30], model_id=1, sleep="deep").content()


MACHINE = """import sys
PWRON_RESET, HARD_RESET, WDT_RESET, DEEPSLEEP_RESET = 1, 2, 3, 4
def reset_cause():
    return DEEPSLEEP_RESET
def deepsleep(ms):
    assert 500 < ms <= 2100
    print("asleep")
    raise SystemExit
def lightsleep(ms):
    import time
    print("asleep")
    time.sleep_ms(ms)
"""
APP = """import os
patient = True
def setup(config):
    global samples, at
    samples = open("samples.csv").read().split()
    at = int(open("at").read()) if "at" in os.listdir() else 0
def sense():
    global at
    if not settled():
        return None
    if at == COUNT:
        raise StopIteration
    at += 1
    with open("at", "w") as file:
        file.write(str(at))
    return [float(x) for x in samples[at - 1].split(",")]
def act(decision):
    pass
"""
COUNT = 10


def play(tmp_path, name, broker, **config):
    """The decisions of the device, started again whenever it sleeps deeply; how often that was; its summary, its folder."""
    pair, emulator, device = pairs.load("breast_cancer"), catalogue.UNIX, tmp_path / name / "device"
    project.new(tmp_path / name, pair, "unix", bundle.from_tflite(pair.ldl))
    (tmp_path / name / "app.py").write_text(f"COUNT = {COUNT}\n{SETTLED}{APP}")
    (tmp_path / name / "machine.py").write_text(MACHINE)
    contents = project.load(tmp_path / name).contents
    given = contents.config.model_copy(update={"broker": broker.host, "port": broker.port, "beta": 0.1, **config})
    device.mkdir()
    own = kinds.Contents(contents.model, given, own=contents.own)
    flash.flash(kinds.KINDS["unix"], str(device), own, False, lambda *_: None)
    decided, starts = [], 0
    while True:
        command, env = emulator.node(device / "main.py"), emulator.environment(device)
        ran = subprocess.run(command, cwd=device, env=env, capture_output=True, text=True, timeout=280)
        assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr[-500:]
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        decided += [(line["bin"], line["decision"], line["source"]) for line in lines if "bin" in line]
        starts += 1
        if "summary" in lines[-1]:
            return decided, starts, lines[-1]["summary"], device


@pytest.mark.whole
def test_a_board_that_starts_anew_at_every_waking_decides_as_one_that_never_slept(tmp_path):
    if catalogue.UNIX.missing():
        pytest.skip(catalogue.UNIX.missing())
    with mosquitto(tmp_path) as broker, worker(broker.url, "breast_cancer"):
        awake, once, _, kept = play(tmp_path, "awake", broker)
        deep, starts, summary, slept = play(tmp_path, "deep", broker, sleep="deep", every="2100ms")
        light, no_other, told, dozed = play(tmp_path, "light", broker, sleep="light", every="1s")
    assert awake == deep == light and len(deep) == COUNT and {"local", "remote"} == {source for *_, source in deep}
    assert (once, no_other) == (1, 1) and starts == summary["wakes"] + 1 == COUNT + 1 and summary["start"] == "deepsleep"
    assert told["wakes"] >= COUNT - 1 and told["duty"] < 1000
    states = [store.file_store(str(folder / "h2t2.state")).load() for folder in (kept, slept, dozed)]
    assert states[0] == states[1] == states[2]  # bit for bit

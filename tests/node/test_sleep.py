"""Sleep between samples: counters, energy, and a board that starts anew at every waking and decides as if it never slept."""

import json
import subprocess
import types

import pytest
from ports import played
from ports.world import ESP32, LONG, RP2040, RP2350, LockedUp, Reset
from replayed import SETTLED
from support import need

from h2t2.clock import ticks_diff
from h2t2.core.budget import Budget
from h2t2.node import board, causes, ports, sleep, store
from h2t2.node.asking import Asking
from h2t2.node.sleep import Sleep
from h2t2_tools.boards import flash, kinds, project, refusals, targets
from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.common import pairs
from h2t2_tools.common.cost_table import CostTable
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.model import bundle


class Idle:
    """What Sleep asks of a node: a link and the offloads so far."""

    def __init__(self, world, offloads=0, budget=None):
        self.link = types.SimpleNamespace(outlives_ms=LONG, lead_ms=0, closed=0, connections=1)
        self.link.close = lambda: setattr(self.link, "closed", self.link.closed + 1)
        self.offloads, self.credited_at, self.budget = offloads, world.ticks(), budget
        self.credit_budget = types.MethodType(Asking.credit_budget, self)


def asleep(world, tmp_path, kind="deep", budget=None, woken=False, **options):
    return Sleep(kind, world.machine, path=str(tmp_path / "memory"), budget=budget, woken=woken, **options)


def nap(one, ms, node):
    """Sleep deeply, which ends this start."""
    with pytest.raises(Reset):
        one.nap(ms, node, lambda: None)


@pytest.fixture(params=[RP2040, RP2350, ESP32])
def world(request, monkeypatch):
    return played.play(monkeypatch, request.param)


def test_what_sleep_saves_is_counted_over_every_start(world, tmp_path):
    power = (150_000, 1_000, 20_000)  # 150 mW, 1 mW, 20 mJ
    for start in range(3):
        one = asleep(world, tmp_path, power=power, woken=start > 0)
        assert (one.wakes, one.offloads) == (start, 2 * start)
        world.pass_ms(500)
        nap(one, 9500, Idle(world, 2))
        assert board.start_cause() == board.WOKEN
    made = asleep(world, tmp_path, power=power, woken=True).report()
    energy = 3 * (0.5 * 150 + 9.5 * 1) + 6 * 20
    assert made.pop("energy_mj") == pytest.approx(energy, abs=2)
    assert made == {"wakes": 3, "awake_s": 1, "asleep_s": 28, "duty": 50}
    assert "energy_mj" not in asleep(world, tmp_path, "light").report()


def test_the_time_asleep_is_time_since_the_last_sample(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = played.play(monkeypatch, ESP32, is_set=True)
    nap(Sleep("deep", world.machine), 9000, Idle(world))
    node = Idle(world)
    sleep.configured({"sleep": {"kind": "deep", "power": None}}, node, board.start_cause())
    assert ticks_diff(world.ticks(), node.decided_at) == pytest.approx(9000, abs=10)


def test_a_start_is_time_awake(world, tmp_path):
    """A chip that wakes loads its program for seconds before anything of ours runs."""
    nap(asleep(world, tmp_path), 9000, Idle(world))
    world.pass_ms(2500)
    one = asleep(world, tmp_path, woken=True)
    one.count(0)
    assert one.awake_ms == pytest.approx(2500, abs=5) and one.asleep_ms == pytest.approx(9000, abs=5)


def test_what_passed_is_counted_and_not_what_was_asked_for(world, tmp_path):
    """A light sleep that ends early goes on; the time awake meanwhile counts as that. A deep one that a pin ended is short."""
    world.early = 20
    one = asleep(world, tmp_path, "light")
    before = world.now
    one.nap(2000, Idle(world), lambda: None)
    assert 2000 <= world.now - before <= 2020
    assert 1750 <= world.slept <= 1800 and one.asleep_ms == pytest.approx(world.slept, abs=3)  # ticks that were looked at
    if world.chip != ESP32:
        return
    one = asleep(world, tmp_path)
    nap(one, 3000, Idle(world))
    assert asleep(world, tmp_path, woken=True).asleep_ms == 3000
    one = asleep(world, tmp_path, woken=True)
    one.machine = types.SimpleNamespace(deepsleep=lambda ms: world.machine.deepsleep(ms // 3))
    nap(one, 3000, Idle(world))
    assert asleep(world, tmp_path, woken=True).asleep_ms == pytest.approx(4000, abs=5)
    assert asleep(world, tmp_path, woken=False).asleep_ms == pytest.approx(3000, abs=5)  # when it lost power, nobody knows


@pytest.mark.parametrize("kind", ["light", "deep"])
def test_a_watchdog_does_not_end_a_long_sleep(world, tmp_path, kind):
    """It cannot be stopped, and counts on: an RP2040 whose watchdog ends in sleep hangs until it loses power."""
    dog = world.machine.WDT(timeout=8000)
    one = asleep(world, tmp_path, kind, watchdog_ms=8000)
    began = world.now
    try:
        one.nap(60_000, Idle(world), dog.feed)
    except Reset as reset:
        assert kind == "deep" and reset.args[0] in ("hard", "deepsleep")
    assert world.now - began == pytest.approx(60_000, abs=50) and "wdt" not in world.resets


def test_the_watchdog_of_this_emulation_does_end_what_does_not_feed_it(world):
    world.machine.WDT(timeout=8000)
    with pytest.raises((Reset, LockedUp)):
        world.machine.lightsleep(9000)
        world.pass_ms(9000)
    with pytest.raises(ValueError):
        world.machine.WDT(timeout=ports.this_port().watchdog_ms + 1 if world.chip != ESP32 else 0)


def test_a_start_says_whether_it_woke_was_updated_or_had_a_watchdog(world):
    assert board.start_cause() == "pwron"
    world.machine.WDT(timeout=1000)
    with pytest.raises(Reset):
        world.pass_ms(2000)
    assert board.start_cause() == "wdt"
    for cause in causes.MARKS:
        with pytest.raises(Reset):
            board.restart(cause)
        said = board.start_cause()
        assert said == (cause if world.chip != ESP32 else "hard")  # an ESP32's deep sleep is its own
    with pytest.raises(Reset):
        world.machine.reset()
    assert board.start_cause() == "hard"
    world.power_on()
    assert board.start_cause() == "pwron"


def test_a_risc_v_rp2350_has_the_registers_of_an_arm_one(monkeypatch):
    """MICROPY_HW_MCU_NAME differs, the addresses do not."""
    world = played.play(monkeypatch, RP2350)
    monkeypatch.setattr(board, "MACHINE", "Raspberry Pi Pico 2 with RP2350-RISCV")
    with pytest.raises(Reset):
        board.restart(board.WOKEN)
    assert board.start_cause() == board.WOKEN and ports.this_port() is ports.PORTS["rp2"]
    board.watchdog(8000)
    assert board.release_watchdog() and world.limit == 0


def bucket():
    return Budget(100, fixed=1, per_kb=0, amount=10, period=1000)  # ten a second


def test_a_budget_keeps_its_level_over_deep_sleep_and_is_credited_the_time(world, tmp_path):
    world.machine.RTC().datetime((2026, 11, 25, 3, 0, 0, 0, 0))
    budget = bucket()
    budget.level = 7
    world.pass_ms(500)
    node = Idle(world, budget=budget)
    world.pass_ms(1000)
    nap(asleep(world, tmp_path, budget=budget), 3000, node)
    budget = bucket()
    one = asleep(world, tmp_path, budget=budget, woken=True)
    assert budget.complete and 45 <= budget.level <= 47  # 7, 10 awake, 30 asleep
    assert 3000 <= one.passed <= 3010 if world.chip == ESP32 else not one.passed  # an RP2 dozed before its reset


def test_nothing_is_credited_for_a_time_that_nobody_measured(world, tmp_path):
    """An ESP32's clock that was never set; a start that ends no sleep."""
    budget = bucket()
    budget.level = 7
    nap(asleep(world, tmp_path, budget=budget), 3000, Idle(world, budget=budget))
    budget = bucket()
    one = asleep(world, tmp_path, budget=budget, woken=True)
    assert budget.complete and not one.passed
    assert budget.level == 7 if world.chip == ESP32 else 36 <= budget.level <= 37  # an RP2 has measured it before its reset
    budget = bucket()
    one = asleep(world, tmp_path, budget=budget, woken=False)
    assert not budget.complete and not one.passed


def test_a_token_that_was_half_earned_before_a_sleep_is_earned_after_it(world, tmp_path):
    budget = Budget(100, fixed=1, per_kb=0, amount=1, period=1 << 24)
    budget.credit(1 << 23, -1)
    budget.level = 7
    nap(asleep(world, tmp_path, budget=budget), 3000, Idle(world, budget=budget))
    budget = Budget(100, fixed=1, per_kb=0, amount=1, period=1 << 24)
    asleep(world, tmp_path, budget=budget, woken=True)
    budget.credit((1 << 23) - 10_000, -1)
    assert budget.level == 7
    budget.credit(20_000, -1)
    assert budget.level == 8


@pytest.mark.parametrize("content", [b"", b"H2Z3\x01", b"x" * 84])
def test_a_file_cut_short_begins_anew(world, tmp_path, content):
    (tmp_path / "memory").write_bytes(content)
    assert asleep(world, tmp_path).wakes == 0
    nap(Sleep("deep", world.machine, path=str(tmp_path)), 5000, Idle(world))  # it sleeps all the same


def test_little_is_waited_and_a_machine_without_sleep_says_so(world, tmp_path):
    link = Idle(world).link
    assert [asleep(world, tmp_path, "light").worth(ms, link) for ms in (49, 50)] == [False, True]
    assert not asleep(world, tmp_path).worth(999, link)
    with pytest.raises(ValueError, match="this machine has no deepsleep"):
        Sleep("deep", None)


def test_a_connection_that_sleep_ends_is_closed_and_made_again_in_time(world, tmp_path):
    """An ESP32's radio is off in light sleep; a broker hears of no other one either for longer than its keep-alive."""
    one, node = asleep(world, tmp_path, "light"), Idle(world)
    node.link.outlives_ms, node.link.lead_ms = 15_000, 4000
    began = world.now
    one.nap(10_000, node, lambda: None)
    if world.chip == ESP32:
        assert node.link.closed == 1 and world.now - began == pytest.approx(6000, abs=20)
        assert not one.worth(4040, node.link) and one.worth(4060, node.link)
    else:
        assert node.link.closed == 0 and world.now - began == pytest.approx(10_000, abs=20)
        one.nap(60_000, node, lambda: None)
        assert node.link.closed == 1 and world.now - began == pytest.approx(66_000, abs=40)


def test_its_configuration():
    power = CostTable(millijoules=500, wake_mj=20, send_mj_per_kb=10, awake_mw=150.5, asleep_mw=0.7)
    given = NodeConfig(remote_shape=[30], model_id=1, sleep="deep", every="10s", offload_cost=power).content()
    kind, (awake, asleep, offload) = given["sleep"]["kind"], given["sleep"]["power"]
    assert (kind, awake, asleep) == ("deep", 150_500, 700) and 20_000 < offload < 21_000
    assert NodeConfig(remote_shape=[30], model_id=1, sleep="light", every="1s").content()["sleep"] == {
        "kind": "light",
        "power": None,
    }
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
    project.write(tmp_path / name, pair, bundle=bundle.from_tflite(pair.ldl), board="unix")
    (tmp_path / name / "app.py").write_text(f"COUNT = {COUNT}\n{SETTLED}{APP}")
    contents = project.load(tmp_path / name).contents
    fixed = {
        "broker": broker.host,
        "port": broker.port,
        "beta": 0.1,
        "seed": 1,
        "ordered": False,
    }  # its past would ask for all ten
    given = contents.config.model_copy(update={**fixed, **config})
    device.mkdir()
    (device / "machine.py").write_text(MACHINE)
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
def test_a_board_that_starts_anew_at_every_waking_decides_as_one_that_never_slept(broker, rdl, tmp_path):
    need(catalogue.UNIX)
    awake, once, _, memory = play(tmp_path, "awake", broker)
    deep, starts, summary, slept = play(tmp_path, "deep", broker, sleep="deep", every=2.1)
    light, no_other, told, dozed = play(tmp_path, "light", broker, sleep="light", every=1)
    assert awake == deep == light and len(deep) == COUNT and {"local", "remote"} == {source for *_, source in deep}
    assert (once, no_other) == (1, 1) and starts == summary["wakes"] + 1 == COUNT + 1 and summary["start"] == "deepsleep"
    assert told["wakes"] >= COUNT - 1 and told["duty"] < 1000
    states = [store.file_store(str(folder / "h2t2.state")).load() for folder in (memory, slept, dozed)]
    assert states[0] == states[1] == states[2]  # bit for bit


def test_wakings_that_find_no_connection_try_ever_more_rarely(world, tmp_path):
    """After the 1st, 3rd, 7th, 15th, 31st in a row, and then every 32nd."""
    tried = []
    for waking in range(100):
        one = asleep(world, tmp_path, woken=waking > 0)
        if not one.leaves_radio_off():
            tried.append(waking)
        node = Idle(world)
        node.link.connections = int(waking == 95)
        nap(one, 5000, node)
    assert tried == [0, 1, 3, 7, 15, 31, 63, 95, 96, 97, 99]


@pytest.mark.parametrize("kind", ["light", "deep"])
def test_a_board_that_cannot_sleep_says_that_it_is_awake(world, tmp_path, kind):
    """A Pico W with MicroPython 1.25: it said a duty of 0, and 1 mW."""
    world.insomniac = True
    if kind == "deep" and world.chip == ESP32:
        return
    one = asleep(world, tmp_path, kind, power=(150_000, 1_000, 0), watchdog_ms=8000)
    try:
        one.nap(60_000, Idle(world), lambda: None)
    except Reset:
        one = asleep(world, tmp_path, kind, power=(150_000, 1_000, 0), woken=True)
    one.count(0)
    told = one.report()
    assert told["duty"] >= 999 and told["awake_s"] >= 59 and told["energy_mj"] == pytest.approx(9000, abs=100)


def test_a_light_sleeper_knows_the_time(world, tmp_path):
    """An RP2's clock stands still in light sleep: it fell 5.8 hours behind, and expired commands were accepted."""
    world.clock = world.utc
    one = asleep(world, tmp_path, "light", watchdog_ms=8000)
    for _ in range(144):
        one.nap(587_300, Idle(world), lambda: None)
        world.pass_ms(12_700)
        assert abs(world.unix_ms() - (world.utc + world.now)) < 1000
    unset = asleep(world, tmp_path, "light")
    world.clock = before = -world.now
    unset.nap(587_300, Idle(world), lambda: None)
    assert world.clock == before - (587_300 if world.chip != ESP32 else 0)  # a clock that is not set stays so


def test_a_board_whose_radio_ends_every_sleep_is_refused(tmp_path):
    config = NodeConfig(remote_shape=[4], model_id=1, sleep="light", every=60)
    contents = kinds.Contents(tmp_path / "ldl.h2m", config)
    for name, version, refused in (("pico_w", (1, 25), True), ("pico2_w", (1, 25), True), ("pico_w", (1, 26), False)):
        info = targets.BoardInfo("rp2", (*version, 0), 10**6, 10**6, 6 | 3 << 8 | 4 << 10)
        if refused:
            with pytest.raises(UserError, match=r"the radio of a pico2?_w ends every sleep at once .*16181 and 17204.*1\.26"):
                refusals.check(kinds.KINDS[name], info, "P", [], None, contents)
        else:
            refusals.check(kinds.KINDS[name], info, "P", [], None, contents)

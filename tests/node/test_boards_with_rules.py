"""Whole nodes on MicroPython's unix port with the rules of real boards (ports/world.py), in virtual time: `h2t2 flash`'s files,
a real broker and a real remote model. Such a board is started again after every reset, as often as it takes."""

import pytest
from ports.whole import run
from ports.world import ESP32, LONG, RP2040

from h2t2_tools.common import pairs

pytestmark = pytest.mark.slow
APP = """import json
COUNT = {count}
n = 0
def setup(config):
    global rows
    with open("samples.csv") as file:
        rows = [file.readline() for _ in range(40)]
def taken():
    try:
        with open("taken") as file:
            return int(file.read())
    except OSError:
        return 0
def sense():
    n = taken()
    if n == COUNT:
        raise StopIteration
    with open("taken", "w") as file:
        file.write(str(n + 1))
    return [float(x) for x in rows[n % 40].split(",")]
def act(decision):
    import time
    print(json.dumps({{"at": time.world.now, "source": decision.source, "late": decision.late}}))
"""


def play(tmp_path, broker, chip, count, options, more="", **config):
    """(decisions, starts, summary, world) of a node with an app, started again after every reset until it ends.

    more: further text of the app.
    """
    usual = {"policy": "h2t2", "exploration": "epsilon", "epsilon": 1.0, "deadline": 8, "telemetry": 1, "prior": None}
    program = APP.format(count=count) + more
    return run(tmp_path, broker, chip, program, pairs.load("breast_cancer"), options, **{**usual, **config})


@pytest.mark.whole
@pytest.mark.parametrize("chip", [RP2040, ESP32])
def test_a_node_decides_from_its_first_second_and_offloads_once_its_network_comes(broker, rdl, tmp_path, chip):
    """The access point comes after a minute, and is away for half a minute later; the watchdog never ends the program."""
    options = {"up": ((60_000, 110_000), (140_000, LONG))}
    lines, starts, summary, world = play(tmp_path, broker, chip, 100, options, every=2, watchdog=8)
    assert len(lines) == 100 and starts == 1 and not world["resets"] and not any(line["late"] for line in lines)
    assert lines[0]["at"] < 3500 and {line["source"] for line in lines[:25]} == {"fallback"}
    remote = [line["at"] for line in lines if line["source"] == "remote"]
    assert any(at < 100_000 for at in remote) and any(at > 180_000 for at in remote), remote
    assert len(remote) > 25 and summary["connections"] == 2 and summary["errors"] == 0
    assert summary["trouble"].startswith("Wi-Fi home: ")


@pytest.mark.parametrize("chip", [RP2040, pytest.param(ESP32, marks=pytest.mark.whole)])
def test_deep_sleep_with_a_budget_spends_it(broker, rdl, tmp_path, chip):
    """Two offloads an hour, a sample every ten minutes, a watchdog of eight seconds: five hours, from an empty bucket."""
    config = {"every": 600, "sleep": "deep", "budget": "2/hour", "watchdog": 8}
    lines, starts, summary, world = play(tmp_path, broker, chip, 30, {"is_set": chip == ESP32}, **config)
    assert len(lines) == 30 and starts == 31 and summary["wakes"] == 30 and summary["start"] == "deepsleep"
    remote = sum(line["source"] == "remote" for line in lines)
    assert 7 <= remote <= 10, lines
    assert summary["asleep_s"] == pytest.approx(30 * 600, rel=0.03) and summary["duty"] < 20
    assert set(world["resets"]) == {"hard" if chip == RP2040 else "deepsleep"}


@pytest.mark.parametrize("chip", [RP2040, ESP32])
def test_light_sleep_leaves_a_connection_for_every_sample(broker, rdl, tmp_path, chip):
    """A sample every minute: longer than half the keep-alive, and an ESP32's radio is off. It wakes in time to connect."""
    config = {"every": 60, "sleep": "light", "watchdog": 8}
    lines, starts, summary, world = play(tmp_path, broker, chip, 12, {}, **config)
    assert starts == 1 and not world["resets"] and len(lines) == 12
    assert [line["source"] for line in lines].count("remote") >= 11, (lines, summary)
    assert summary["connections"] >= 11
    assert summary["asleep_s"] == pytest.approx(world["slept"] / 1000, abs=2) and summary["asleep_s"] > 11 * 50


@pytest.mark.whole
def test_a_board_that_wakes_alone_tries_ever_more_rarely(broker, rdl, tmp_path):
    """Its network is away for six hours: 36 wakings, of which some ten try for it; then it is found within the next 32."""
    up = ((0, 3_600_000), (7 * 3_600_000, LONG))
    config = {"every": 600, "sleep": "deep", "watchdog": 8}
    lines, starts, summary, world = play(tmp_path, broker, ESP32, 80, {"up": up, "is_set": True}, **config)
    attempts = [at for at, call in world["asked"] if call == "connect"]
    alone = [at for at in attempts if 3_610_000 < at < 7 * 3_600_000]
    assert 3 <= len({at // 600_000 for at in alone}) <= 8
    assert any(line["source"] == "remote" and line["at"] > 7 * 3_600_000 for line in lines)
    assert [line["source"] for line in lines[-5:]].count("remote") >= 4


GIVES_BACK = """
sense_row = sense
def sense():
    from time import world
    if taken() == 30:
        world.heap.give(world.boot_block)
    return sense_row()
"""
GROWS = """
from time import world
blocks = [world.heap.take(50_000), world.heap.take(50_000)]
"""


@pytest.mark.whole
def test_an_esp32_without_memory_for_its_radio_decides_and_joins_once_it_has_some(broker, rdl, tmp_path):
    """The user's boot.py holds so much that the heap has grown into the radio's memory; the 30th sample gives it back."""
    lines, starts, summary, world = play(tmp_path, broker, ESP32, 60, {"boot_takes": 90_000}, GIVES_BACK, every=2, watchdog=8)
    assert len(lines) == 60 and starts == 1 and not world["resets"]
    assert {line["source"] for line in lines[:30]} == {"fallback"}
    assert [line["source"] for line in lines[-5:]] == ["remote"] * 5, summary
    assert summary["connections"] == 1 and summary["errors"] == 0


@pytest.mark.whole
def test_an_esp32s_radio_has_its_memory_before_the_heap_of_the_users_program_grows(broker, rdl, tmp_path):
    """100,000 bytes in two blocks fit beside the radio. Had they come first, the heap's new area would have left too little."""
    lines, starts, summary, world = play(tmp_path, broker, ESP32, 20, {}, GROWS, every=2, watchdog=8)
    assert len(lines) == 20 and starts == 1 and not world["resets"]
    assert [line["source"] for line in lines[-5:]] == ["remote"] * 5, summary

"""How a board's program ends: its watchdog resets nothing then, the log says why, and what may come right is tried again."""

import sys

import pytest
from board_folder import configured
from ports.played import play
from ports.world import ESP32, RP2040, RP2350

from h2t2.node import board, run

CHIPS = [RP2040, RP2350, ESP32]
APP = """from h2t2.node import board
starts = 0
rows = [[0] * 64] * 5

def setup(config):
    global starts
    starts += 1
    {setup}

def sense():
    {sense}
    if not rows:
        raise StopIteration
    return rows.pop()

def act(decision):
    pass
"""


@pytest.fixture(params=CHIPS)
def program(request, tmp_path, monkeypatch):
    """A function that runs an app on a chip with a watchdog of 8 s; it returns the world."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def runs(setup="pass", sense="pass", raises=None, watchdog="8s"):
        world = play(monkeypatch, request.param)
        monkeypatch.delitem(sys.modules, "app", raising=False)
        (tmp_path / "app.py").write_text(APP.format(setup=setup, sense=sense))
        configured(tmp_path, "digits", app="app.py", ldl="ldl.h2m", watchdog=watchdog)
        world.wait = world.pass_ms
        sys.modules["machine"].wait = world.pass_ms  # an app's own way to let time pass
        if raises:
            with pytest.raises(raises):
                run.main()
        else:
            run.main()
        return world

    yield runs
    sys.modules.pop("app", None)


def log(tmp_path):
    return (tmp_path / "h2t2.log").read_text()


def test_a_program_that_ends_is_not_reset_and_begun_again(program, tmp_path):
    world = program()
    world.pass_ms(600_000)
    assert not world.resets and "ended: no more samples; the watchdog is off" in log(tmp_path)


def test_ctrl_c_leaves_the_prompt_to_whoever_asked_for_it(program, tmp_path):
    """mpremote, mip and Thonny were cut off after 8 s."""
    world = program(sense="raise KeyboardInterrupt", raises=KeyboardInterrupt)
    world.pass_ms(600_000)
    assert not world.resets and "ended: Ctrl-C at its line; the watchdog is off" in log(tmp_path)


def test_a_program_without_a_watchdog_says_why_it_ended_too(program, tmp_path):
    program(sense="raise KeyboardInterrupt", raises=KeyboardInterrupt, watchdog="0s")
    assert log(tmp_path).rstrip().endswith("ended: Ctrl-C at its line")


def test_further_ctrl_c_do_not_leave_the_watchdog_on(program, monkeypatch):
    """Hosts send it a hundred times. What ignores them comes before everything else that a program's end does."""
    order = []
    monkeypatch.setattr(board, "ignore_ctrl_c", lambda on: order.append(on))
    release = board.release_watchdog
    monkeypatch.setattr(board, "release_watchdog", lambda: order.append("released") or release())
    program(sense="raise KeyboardInterrupt", raises=KeyboardInterrupt)
    assert order == [True, "released", True, "released", False]


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ValueError", "ImportError", "OSError"])
def test_a_setup_that_raises_is_logged_and_tried_again(program, tmp_path, error):
    """A sensor that is plugged in later. There was no line in the log, and a reset every 8 s."""
    world = program(setup=f"if starts < 5: raise {error}('no answer at 0x76')")
    assert not world.resets and sys.modules["app"].starts == 5
    lines = log(tmp_path)
    assert lines.count(f"{error}: no answer at 0x76") == 4
    assert [f"starting again in {wait} s" in lines for wait in (1, 2, 4, 8)] == [True] * 4


def test_a_setup_that_takes_long_feeds_the_watchdog(program):
    slow = "import machine\n    for _ in range(30):\n        machine.wait(1000)\n        board.feed()"
    assert not program(setup=slow).resets


def test_a_program_without_a_watchdog_leaves_it_alone(monkeypatch):
    play(monkeypatch, RP2040)
    board.watchdog(0)
    assert board.release_watchdog() is False

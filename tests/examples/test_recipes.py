"""The apps of firmware/examples for sensors that people have, each in a whole node on a board with the rules of its port
(ports/sensors.py), in virtual time: a real policy, broker and remote model. A sensor that fails costs samples, not the node."""

import numpy as np
import pytest
import scikit_models
from ports import sensors
from ports.whole import run
from ports.world import ESP32, RP2040
from support import ROOT, mosquitto, worker

from h2t2.node.picture import Picture
from h2t2.node.window import features
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BUSY = (5000, 5300, 300), (6000, 7500, 24)
EVERYWHERE = pytest.mark.parametrize("emulator", [UNIX, pytest.param(ARM32, marks=pytest.mark.whole)], ids=lambda e: e.name)
# a program's last lines: each decision becomes a line with its window, and the sensor ends when the world is as old as that
ENDS = """
import json
from time import world
_sense, _act, _held = sense, act, []
def sense():
    global _held
    if world.now > {end_ms}:
        raise StopIteration
    try:
        measured = _sense()
    except Exception:
        _held = []
        raise
    if measured == "gap":
        _held = []
    elif measured is not None:
        _held = _held[-{held}:] + list(measured)
    return measured
def act(decision):
    _act(decision)
    line = dict(at=world.now, source=decision.source, label=decision.label, window=_held[-{held}:])
    print(json.dumps(dict(line, lamp=(lamp if "lamp" in globals() else relay).value())))
    for start, end, ms in {busy!r}:
        if start <= world.now < end:
            world.pass_ms(ms)
"""


def make_pair(folder, x, y, options, numbers=None):
    """The pair of a poor local and a better remote model. x: samples as measured; numbers: what the models read of them."""
    numbers = x if numbers is None else np.array(numbers)
    local, remote = (scikit_models.logistic(numbers, y, C=penalty, max_iter=3000) for penalty in (0.001, 10))
    scikit_models.save(folder, x, y, local=local, remote=remote)
    words = ["pair", str(folder / "local.joblib"), str(folder / "remote.joblib"), "--test", str(folder / "test.npz")]
    assert main([*words, *options, "--out", str(folder / "pair")]) == 0
    return pairs.load(str(folder / "pair"))


def play(folder, chip, name, pair, *, held, end_ms, emulator=UNIX, faults=None, busy=(), **entries):
    """(decisions, summary, world) of an example's app, until the world is end_ms old.

    held: numbers of a window. busy: (from, to, ms): within that time of the world, acting takes so many milliseconds.
    """
    ends = ENDS.format(held=held, end_ms=end_ms, busy=busy)
    program = (ROOT / "firmware/examples" / name / "app.py").read_text() + ends
    with mosquitto(folder) as broker, worker(broker.url, str(pair.folder)):
        options = {"faults": faults or {}}
        decisions, starts, summary, world = run(folder, broker, chip, program, pair, options, emulator=emulator, **entries)
    assert all(line["lamp"] == line["label"] for line in decisions)
    return decisions, summary, world


def is_event(second):
    """Whether the signals of sensors.py are large in that second."""
    return second * 37 % 11 > 5


def places(decisions, signal):
    """Where in the signal the window of each decision begins. Every window must be a piece of it."""
    signal, starts = np.array(signal), []
    for line in decisions:
        window = np.array(line["window"])
        found = [n for n in np.flatnonzero(signal == window[0]) if np.array_equal(signal[n : n + len(window)], window)]
        assert len(found) == 1, (line["at"], found)
        starts.append(int(found[0]))
    return starts


def test_the_page_of_signals_names_the_recipe_of_i2s_and_no_other_way():
    sections = (ROOT / "docs/signals.md").read_text().split("\n\n")
    assert [text for text in sections if "I2S" in text and "app_i2s_microphone" in text]
    assert not [text for text in sections if "I2S" in text and "gap_ms" in text]


@EVERYWHERE
def test_an_i2s_microphone(tmp_path, emulator):
    """The node is late at once and by and by, so that the driver drops readings; it loses a callback; the plug is out."""

    numbers, starts = ["std", "fft"], range(0, 16000 * 22, 512)
    windows = np.array([[sensors.sound(i) for i in range(n, n + 256)] for n in starts])
    options = ["--window", "256", "--features", *numbers]
    labels = np.array([is_event(n // 16000) for n in starts]).astype(int)
    pair = make_pair(tmp_path, windows[..., None], labels, options, [features(row.tolist(), numbers) for row in windows])
    faults = {"i2s": ((3000, 3030),), "unplugged": ((4000, 4500),)}
    decisions, summary, _ = play(
        tmp_path, RP2040, "app_i2s_microphone", pair, held=256, end_ms=8000, emulator=emulator, faults=faults, busy=BUSY
    )
    assert len(decisions) > 200 and "remote" in {line["source"] for line in decisions}
    at_once = [line for line in decisions if line["source"] == "local"]  # others are decided windows later
    plugged = [line for line in at_once if line["window"].count(0) < 16]
    starts = places(plugged, [sensors.sound(n) for n in range(16000 * 9)])
    assert np.mean([line["label"] == is_event(n // 16000) for line, n in zip(plugged, starts)]) > 0.85
    assert len(plugged) > 100 and len(at_once) - len(plugged) <= 2  # the plug was pulled within a block
    assert 1 <= summary["sensor_errors"] < 8 and summary["errors"] == 0
    assert not any(4200 < line["at"] < 4500 for line in at_once)


@EVERYWHERE
def test_an_accelerometer_with_a_fifo(tmp_path, emulator):
    """Acting takes three seconds, and the FIFO overflows; then the sensor is without power for a second."""
    numbers, starts = ["std", "fft"], range(0, 100 * 700, 64)
    windows = np.array([[sensors.acceleration(i) for i in range(n, n + 64)] for n in starts])
    options = ["--window", "64", "--channels", "3", "--features", *numbers]
    read = [sum((features(window[:, c].tolist(), numbers) for c in range(3)), []) for window in windows]
    pair = make_pair(tmp_path, windows, np.array([is_event((n + 32) // 100) for n in starts]).astype(int), options, read)
    faults = {"imu": ((40000, 41000),)}
    decisions, summary, _ = play(
        tmp_path,
        RP2040,
        "app_imu",
        pair,
        held=192,
        end_ms=90000,
        emulator=emulator,
        faults=faults,
        busy=((25000, 27000, 3000),),
    )
    assert len(decisions) > 100 and "remote" in {line["source"] for line in decisions}
    at_once = [line for line in decisions if line["source"] == "local"]
    signal = np.array([sensors.acceleration(n) for n in range(9500)]).ravel()
    starts = places(at_once, signal)
    assert not any(n % 3 for n in starts) and len(starts) > 50
    assert np.mean([line["label"] == is_event((n + 96) // 300) for line, n in zip(at_once, starts)]) > 0.85
    assert 1 <= summary["sensor_errors"] < 8 and summary["errors"] == 0


@EVERYWHERE
def test_a_converter_with_dma(tmp_path, emulator):
    """Acting takes 300 ms once, and the ring is overtaken; then too long each time; later DMA has no turn."""
    numbers, starts = ["std", "fft"], range(0, 10000 * 22, 400)
    windows = np.array([[sensors.current(i) for i in range(n, n + 256)] for n in starts])
    read = [features(window.tolist(), numbers) for window in windows]
    options = ["--window", "256", "--features", *numbers]
    pair = make_pair(tmp_path, windows[..., None], np.array([is_event(n // 10000) for n in starts]).astype(int), options, read)
    busy = (5000, 5300, 300), (6000, 7500, 40)
    decisions, summary, _ = play(
        tmp_path,
        RP2040,
        "app_adc_dma",
        pair,
        held=256,
        end_ms=11000,
        emulator=emulator,
        faults={"adc": ((8000, 8003),)},
        busy=busy,
    )
    assert len(decisions) > 150 and "remote" in {line["source"] for line in decisions}
    at_once = [line for line in decisions if line["source"] == "local"]
    starts = places(at_once, [sensors.current(n) for n in range(10000 * 12)])
    assert len(starts) > 80 and summary["sensor_errors"] == summary["errors"] == 0
    assert np.mean([line["label"] == is_event(n // 10000) for line, n in zip(at_once, starts)]) > 0.85


@EVERYWHERE
def test_a_movement_wakes_a_board(tmp_path, emulator):
    """Each movement is one sample, also one that lasts longer than its measurement; its end and the timer are none."""

    def quarters(ms):
        """The sample of a movement of so many milliseconds."""
        return [min(25, max(0, (ms - 250 * n) // 10)) for n in range(16)]

    lasting = range(200, 4200, 8)
    x = np.array([quarters(ms) for ms in lasting], float)
    pair = make_pair(tmp_path, x, np.array([ms > 2000 for ms in lasting]).astype(int), [])
    moves = [
        (100_000 * n, 100_000 * n + ms) for n, ms in enumerate((900, 3500, 20_000, 700, 3200, 1200, 2900, 600, 800, 3900), 1)
    ]
    decisions, summary, world = play(
        tmp_path,
        ESP32,
        "app_pir",
        pair,
        held=16,
        end_ms=1_050_000,
        emulator=emulator,
        faults={"pir": [*moves, (1_100_000, 1_104_000)]},
        every=60,
        sleep="deep",
    )
    first, *decisions = decisions  # of the start with power
    assert first["window"] == [0] * 16 and summary["sensor_errors"] == 0 and set(world["resets"]) == {"deepsleep"}
    assert len(decisions) == len(moves)
    assert all(start < line["at"] < start + 40_000 for (start, _), line in zip(moves, decisions))
    right = [line["label"] == (end - start > 2000) for (start, end), line in zip(moves, decisions)]
    assert sum(right) >= 9, right
    assert len(world["resets"]) < 50  # a movement, its end, and perhaps the timer: none again and again


@EVERYWHERE
def test_a_camera(tmp_path, emulator):
    """For a while it gives no picture, and then is started again."""
    small = Picture(96, 96, 1, 16, 16, False, False)
    pictures = np.array([np.frombuffer(sensors.picture(n), np.uint8).reshape(96, 96, 1) for n in range(150)])
    labels = np.array([is_event(n) for n in range(150)]).astype(int)
    numbers = [small(picture.tobytes()) for picture in pictures]
    pair = make_pair(tmp_path, pictures, labels, ["--picture", "96x96x1", "--to", "16x16"], numbers)
    faults = {"camera": ((100_000, 130_000),)}
    decisions, summary, _ = play(
        tmp_path, ESP32, "app_camera", pair, held=9216, end_ms=250_000, emulator=emulator, faults=faults, every=4
    )
    assert 40 < len(decisions) < 62 and {"remote"} <= {line["source"] for line in decisions}
    assert 1 <= summary["sensor_errors"] <= 8 and not any(100_000 < line["at"] < 130_000 for line in decisions)
    taken = {sensors.picture(n): n for n in range(260)}
    assert np.mean([line["label"] == is_event(taken[bytes(line["window"])]) for line in decisions]) > 0.85

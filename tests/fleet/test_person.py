"""A person in the remote model's place: at a terminal, and at the dashboard in a real browser."""

import io
import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import started
from pages import browser, dashboard, no_sideways_scrolling, outside_pytest, shows, text
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from states import state
from support import hears_ctrl_c, until

from h2t2.cpython import worker_wire
from h2t2.cpython.paho import PahoLink
from h2t2.link import wire
from h2t2_tools.cli.terminal_person import bars, drawing
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.rdl import person
from h2t2_tools.fleet.rdl.desk import MAX_REQUESTS, Desk
from h2t2_tools.fleet.rdl.inbox import Item
from h2t2_tools.fleet.rdl.preview import preview_of
from h2t2_tools.fleet.samples import sample_store

__all__ = ["browser"]
DIGITS = 2  # the number of its remote model
# in the browser, because five seconds may pass before a test on a busy machine sees the button
UNDO_AT_ONCE = """const wait = setInterval(() => {
    const button = [...document.querySelectorAll('button:not([disabled])')].find(b => b.innerText.startsWith("u: undo '"));
    if (!button) return;
    clearInterval(wait);
    window.undone = button.innerText;
    button.click();
}, 20)"""


def laid(desk, sequence):
    payload = wire.encode_request(DIGITS, 5, sequence, (8, 8, 1), bytes(64))
    desk.add(Item("dev", "topic", worker_wire.decode_request(payload), float("inf")))


def test_a_desk():
    """First come, first shown; answered once; what is too much is given up as busy."""
    desk = Desk(2)
    for n in range(MAX_REQUESTS + 1):
        laid(desk, n)
    first = desk.first()
    assert desk.size == MAX_REQUESTS and first.request.sequence == 1
    assert desk.answer(first.number, 1) and not desk.answer(first.number, 1) and desk.first().request.sequence == 2
    assert desk.answer(desk.first().number, None)
    with pytest.raises(ValueError, match="want 0 to 1"):
        desk.answer(desk.first().number, 2)
    replies = [wire.decode_reply(answer.reply()) for answer in desk.take_answers()]
    assert [(reply[0], reply[2], reply[3]) for reply in replies] == [(wire.BUSY, 0, -1), (wire.OK, 1, 1), (wire.FAILED, 2, -1)]
    assert desk.label_count == 1 and not desk.take_answers()


def test_an_answer_is_taken_back():
    """For five seconds, or until the device would decide without it; a later one cannot be taken back."""
    clock = [100.0]
    desk = Desk(2, 5.0, lambda: clock[0])
    for sequence, remaining_ms in enumerate((0, 3000, 100)):
        payload = wire.encode_request(DIGITS, 5, sequence, (8, 8, 1), bytes(64), remaining_ms=remaining_ms)
        desk.add(Item("dev", "topic", worker_wire.decode_request(payload), float("inf"), clock[0]))
    assert desk.answer(0, 1) and desk.label_count == 1 and not desk.take_answers()
    assert desk.last()[1] == 5.0 and desk.undo() and desk.first().number == 0 and desk.label_count == 0
    assert not desk.undo()
    assert desk.answer(0, 0) and desk.answer(1, None)
    assert desk.last()[0].waiting.number == 1 and desk.last()[1] == 2.5  # half a second before its deadline
    clock[0] += 2.5
    assert [answer.waiting.number for answer in desk.take_answers()] == [1]
    clock[0] += 2.5
    assert desk.last() is None and not desk.undo() and [answer.label for answer in desk.take_answers()] == [0]
    assert desk.first().remaining_s(clock[0]) == pytest.approx(-4.9)
    assert desk.answer(2, 1) and desk.last()[1] == 5.0  # it is late anyway
    assert [answer.label for answer in desk.take_answers(at_once=True)] == [1]  # the worker ends


def test_what_is_shown():
    """Pictures of int8 and of JPEGs, curves, few numbers, words; bytes that are no picture are said to be none."""
    pair = pairs.load("digits")
    n = int(np.flatnonzero(pair.y)[0])
    payload = wire.encode_request(DIGITS, 1, 1, (8, 8, 1), pair.test_payload(n))
    pixels = preview_of(pair, worker_wire.decode_request(payload)).pixels
    assert pixels.shape == (8, 8) and np.abs(pixels / 255 - pair.x[n][..., 0]).max() < 0.01
    with io.BytesIO() as file:
        Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        photo = file.getvalue()

    def raw(data, media):
        request = wire.encode_request(DIGITS, 1, 1, (len(data),), data, dtype=wire.RAW, media=media)
        return preview_of(pair, worker_wire.decode_request(request))

    assert raw(photo, "image/jpeg").pixels.shape == (20, 40, 3)
    assert "cannot be read" in raw(photo[:50], "image/jpeg").words
    assert raw(b"a note", "text/plain").words == "a note" and raw(b"\x00" * 9, "audio/x").words == "9 bytes of audio/x"
    floats = np.linspace(-1, 1, 64).astype("<f4")
    curve = wire.encode_request(DIGITS, 1, 1, (64,), floats.tobytes(), dtype=wire.FLOAT32)
    few = wire.encode_request(DIGITS, 1, 1, (5,), floats[:5].tobytes(), dtype=wire.FLOAT32)
    assert np.allclose(preview_of(pair, worker_wire.decode_request(curve)).curve[:, 0], floats)
    assert np.allclose(preview_of(pair, worker_wire.decode_request(few)).numbers, floats[:5])
    assert drawing(raw(photo, "image/jpeg")).plain.count("▀") == 40 * 10
    assert bars(floats)[:64] == "".join(sorted(bars(floats)[:64])) and bars(floats).endswith("-1 to 1")
    assert "0: -1" in drawing(preview_of(pair, worker_wire.decode_request(few))).plain


def test_names_of_classes():
    pair = pairs.load("digits")
    assert person.classes(pair, None) == ["another digit", "the digit 8"]
    unnamed = replace(pair, info=pair.info.model_copy(update={"class_names": None}))
    assert person.classes(unnamed, None) == [f"not {pair.info.event}", pair.info.event]
    assert person.classes(pairs.load("ten_digits"), None) == list("0123456789")
    with pytest.raises(UserError, match="3 names; the pair has 2"):
        person.classes(pair, ["a", "b", "c"])


@pytest.mark.slow
def test_at_a_terminal(broker, tmp_path):
    """Letters of lines, as keys: an event, what nobody can tell, and the end; an answer is no less one for being late."""
    words = ["rdl", "--pair", "digits", "--remote", "human", "--classes", "other", "eight", "--broker", broker.url]
    words += ["--keep", tmp_path / "kept", "--json", tmp_path / "counts.json"]
    with started(*words, stdin=subprocess.PIPE) as person:
        assert "you are model 2" in person.stderr.readline() and "1: eight" in person.stderr.readline()
        link = PahoLink(broker.host, broker.port, "dev", DIGITS, 5)
        link.open()
        pair = pairs.load("digits")
        for n in range(3):
            link.send(
                wire.encode_request(DIGITS, 5, n, (8, 8, 1), pair.test_payload(n), remaining_ms=1)
            )  # of use for a millisecond
        got = []
        for key in "1", "s", "0":
            while "waiting" not in person.stderr.readline():
                pass
            person.stdin.write(key + "\n")
            person.stdin.flush()
            got.append(wire.decode_reply(link.receive(30000)))
        assert [(r[0], r[2], r[3]) for r in got] == [(wire.OK, 0, 1), (wire.FAILED, 1, -1), (wire.OK, 2, 0)]
        person.stdin.write("q")
        person.stdin.close()
        assert person.wait(60) == 0
    assert [one.label for one in sample_store.read(sample_store.open_folder(tmp_path / "kept"))] == [1, 0]
    assert '"ok": 2' in (tmp_path / "counts.json").read_text()


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_dashboard_that_is_stopped_ends_its_worker_in_order(number, status, broker, tmp_path):
    """What the worker keeps is written once a second, and at the end."""
    words = ["dashboard", "--broker", broker.url, "--port", free_port(), "--history", tmp_path / "history.db"]
    streams = {"stderr": None, "env": outside_pytest(), "preexec_fn": hears_ctrl_c}
    with started(*words, "--answer", "digits", **streams) as process:
        link = PahoLink(broker.host, broker.port, "dev", DIGITS, 5)
        link.open()
        assert until(lambda: link.workers(), 30)
        process.send_signal(number)
        assert process.wait(60) == status


LOST = """import os, signal, sys, time
from h2t2_tools.fleet.{module} import {name} as changed
usual = changed.{method}


class Ending:
    def __del__(self):
        os.kill(os.getpid(), signal.{signal})
        time.sleep(0.1)


def method(*values):
    Ending()  # nothing hears what is raised in here
    return usual(*values)


changed.{method} = method
from h2t2_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
ENDED = {
    "dashboard": {"module": "dashboard.pages", "name": "Pages", "method": "declare"},
    "metrics": {"module": "metrics_server", "name": "MetricsServer", "method": "__init__"},
    "home-assistant": {"module": "announcer", "name": "Announcer", "method": "look"},
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ENDED)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_comes_in_the_end_of_an_object_ends_the_command(name, command, broker, tmp_path):
    words = {
        "dashboard": ["--port", str(free_port()), "--history", str(tmp_path / "history.db")],
        "metrics": ["--listen", str(free_port())],
        "home-assistant": [],
    }
    program = LOST.format(**ENDED[command], signal=name)
    line = [sys.executable, "-c", program, command, *words[command], "--broker", broker.url]
    assert subprocess.run(line, env=outside_pytest(), preexec_fn=hears_ctrl_c, timeout=60).returncode == 0


@pytest.mark.whole
def test_at_the_dashboard(browser, broker, tmp_path):
    """By key and by button; the page asks for the token, and has the picture."""
    options = ["--answer", "digits", "--classes", "other", "eight", "--keep", str(tmp_path / "kept")]
    with dashboard(broker.url, tmp_path, *options) as address:
        assert "token=" in address
        browser.get(address)
        browser.get(address.partition("?")[0] + "answer")
        shows(browser, "Nothing to answer", "1: eight")
        assert until(lambda: not clickable(browser), 20), clickable(browser)
        link = PahoLink(broker.host, broker.port, "dev", DIGITS, 5)
        link.open()
        assert until(lambda: link.workers(), 30)
        pair = pairs.load("digits")
        for n in range(2):
            link.send(wire.encode_request(DIGITS, 5, n, (8, 8, 1), pair.test_payload(n), k=6, remaining_ms=1))
        link.report(json.dumps(state(bits=4)))
        shows(browser, "2 waiting, this one from dev", "Your answer still teaches it")
        shows(browser, "The local model thinks: other. Its score for eight is about 0.41.")
        assert clickable(browser) == ["0: other", "1: eight", "s: nobody can tell"]
        assert browser.find_elements("css selector", "img[src^='data:image/png']") and no_sideways_scrolling(browser)
        browser.execute_script(UNDO_AT_ONCE)
        ActionChains(browser).send_keys("0").perform()
        assert until(lambda: browser.execute_script("return window.undone"), 30)
        assert browser.execute_script("return window.undone").startswith("u: undo 'other' (")
        shows(browser, "2 waiting", "0 answered")
        ActionChains(browser).send_keys("1").perform()
        assert wire.decode_reply(link.receive(30000))[2:4] == (0, 1)
        shows(browser, "1 waiting")
        browser.find_element("xpath", "//button[contains(., '0: other')]").click()
        assert wire.decode_reply(link.receive(30000))[2:4] == (1, 0)
        shows(browser, "0 waiting; 2 answered")
        assert "eight" in text(browser)
        assert until(lambda: not clickable(browser), 20), clickable(browser)
    assert [sample.label for sample in sample_store.read(sample_store.open_folder(tmp_path / "kept"))] == [1, 0]


def clickable(browser):
    """The texts of the buttons of answers that can be pressed."""
    script = "return [...document.querySelectorAll('main button:not([disabled])')].map(b => b.innerText.trim())"
    return browser.execute_script(script)

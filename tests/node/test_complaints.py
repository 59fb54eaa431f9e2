"""The log names the lines of the user's program that raise, once for each kind and type, and no other trouble's."""

import json

import pytest
from support import ROOT, need

from h2t2.node.node import MAX_LOCATED, Complaints
from h2t2_tools.boards.emulators import catalogue

DRIVER = """
def read(n):
    if n == 3:
        raise ValueError("bus")
    return 1 // (n % 2)
"""
APP = """import driver
calls = 0

def sense():
    global calls
    calls += 1
    return driver.read(calls - 1)

def act(decision):
    raise KeyError(decision)
"""
# the runtime's own Sensing and Complaints around them
SCRIPT = """
import json, sys
import app
from h2t2.node.node import Complaints
from h2t2.node.sensing import Sensing
logged = []
complain = Complaints(logged.append)
complain.locates = LOCATES
sensing = Sensing(app.sense, complain=complain)
for n in range(5):
    sensing.take()
    sensing.retry_ms = 0
for n in range(4):
    try:
        app.act(n)
    except Exception as error:
        complain("act", error)
print(json.dumps(logged))
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "driver.py").write_text(DRIVER)
    return tmp_path


def run(emulator, folder, locates=True):
    script = folder / "script.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(folder)!r})\n{SCRIPT.replace('LOCATES', repr(locates))}")
    return json.loads(emulator.run(script, [], ROOT / "firmware"))


def check(logged):
    lines = [line.partition(" at ")[2] for line in logged]
    assert [line.rpartition(" <module>, ")[2] for line in lines] == [
        "app.py:7 sense, driver.py:5 read",
        "",  # the second ZeroDivisionError
        "app.py:7 sense, driver.py:4 read (3 times so far)",
        "",
        "app.py:10 act",
        "",
        "",
    ]
    assert [line.split(":")[:2] for line in logged[:3:2]] == [["sensor", " ZeroDivisionError"], ["sensor", " ValueError"]]


@pytest.mark.parametrize("emulator", [catalogue.UNIX, catalogue.ARM32], ids=lambda emulator: emulator.name)
def test_micropython_names_the_lines_of_a_program(program, emulator):
    need(emulator)
    check(run(emulator, program))
    assert not any(" at " in line for line in run(emulator, program, locates=False))


def test_cpython_names_the_lines_of_a_program(program, monkeypatch, capsys):
    monkeypatch.syspath_prepend(program)
    exec(SCRIPT.replace("LOCATES", "True"), {})  # noqa: S102
    check(json.loads(capsys.readouterr().out))


def test_the_list_of_located_kinds_is_bounded():
    complain = Complaints(lambda line: None)
    complain.locates = True
    for n in range(20):
        complain("act", type(f"Error{n}", (Exception,), {})())
    assert len(complain.located) == MAX_LOCATED

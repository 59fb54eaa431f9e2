"""`h2t2 doctor` finds what is there, and names for each gap a command that exists."""

import json
import shlex

import pytest

from h2t2_tools.cli import doctor
from h2t2_tools.cli.commands import COMMANDS
from h2t2_tools.cli.main import main
from h2t2_tools.common import extras

NOBODY = "mqtt://127.0.0.1:9"


def findings(capsys, *words):
    assert main(["doctor", "--json", "-", *words]) == 0
    return {finding["subject"]: finding for finding in json.loads(capsys.readouterr().out)}


def test_a_broker_that_answers_and_one_that_does_not(capsys, broker):
    assert findings(capsys, "--broker", broker.url)["broker"] == {
        "subject": "broker",
        "about": f"{broker.url} answers",
        "mend": "",
    }
    absent = findings(capsys, "--broker", NOBODY)["broker"]
    assert "not reachable" in absent["about"] and "h2t2 doctor --broker" in absent["mend"]


def test_a_missing_extra_is_named_with_its_command(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name in ("httpx", "serial") else object())
    found = findings(capsys, "--broker", NOBODY)
    assert found["extra fleet"]["about"] == "missing: httpx"
    assert found["extra fleet"]["mend"] == extras.install_command("fleet")
    assert not any(subject.startswith(("emulator", "board")) for subject in found)  # what needs pyserial


@pytest.mark.parametrize("now, wrong", [(3600, True), (doctor.RELEASED + 1, False)])
def test_a_clock_that_was_never_set(monkeypatch, now, wrong):
    monkeypatch.setattr(doctor.time, "time", lambda: now)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    (finding,) = doctor._clock()
    assert bool(finding.mend) == wrong


def test_a_port_that_the_user_may_not_open(monkeypatch, tmp_path):
    from h2t2_tools.boards import flash

    port = {"port": str(tmp_path / "ttyACM0"), "about": "Pico", "usb": "2e8a:0005"}
    monkeypatch.setattr(flash, "ports", lambda: [port])
    (finding,) = doctor._ports()
    assert "may not open" in finding.about and "dialout" in finding.mend
    (tmp_path / "ttyACM0").touch()
    assert not next(doctor._ports()).mend


def test_what_it_prints_is_short_and_its_commands_exist(capsys):
    assert main(["doctor", "--broker", NOBODY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("+ Python") for line in lines) and any(line.startswith("- broker") for line in lines)
    for line in lines:
        words = shlex.split(line.strip(), comments=True) if line.startswith("  ") and line.strip().startswith("h2t2 ") else []
        assert not words or words[1] in COMMANDS

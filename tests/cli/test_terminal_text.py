"""Text of devices on an operator's terminal: shown as text, whatever it looks like."""

import io
import json
import os
import pty
import shlex
import subprocess
import sys
import threading

import pytest
from rich.console import Console
from states import state
from support import until

from h2t2.cpython.mqtt_session import make_client
from h2t2.link import wire
from h2t2_tools.cli.output import fitted, renderable, show, show_next, working
from h2t2_tools.common.report import Table
from h2t2_tools.fleet.monitoring import fleet_report as monitoring

H2T2 = [sys.executable, "-m", "h2t2_tools"]
NAME = "[red]kitchen"  # Mosquitto takes no topic with control characters
HOSTILE = {"policy": "[/x]\x1b[2J", "start": "\x1b]0;owned\x07", "runtime": "[bold]"}


def test_tables_and_lines_show_markup_and_escape_sequences(capsys):
    show([Table("[/x] \x1b[2J", {"[/y]": "left", "n": "right"}, [["[/z]\x1b[2J", "[red]1"]]), "a line [/x] \x1b]0;t\x07"])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out
    for text in ("[/x]", "[/y]", "[/z]\\x1b[2J", "[red]1", "\\x1b]0;t\\x07"):
        assert text in out


WIDE = Table(
    "devices",
    {"device": "left", "policy": "left", "cost": "right", "alarms": "left"},
    [["kitchen", "adaptive", "0.125", "clock, sensor"], ["hall", "h2t2", "0.25", "-"]],
    ("policy", "alarms"),
)


@pytest.mark.parametrize("width, hidden", [(80, []), (40, ["policy"]), (30, ["policy", "alarms"]), (10, ["policy", "alarms"])])
def test_a_table_loses_optional_columns_until_it_fits(width, hidden):
    table, names = fitted(WIDE, width)
    assert names == hidden and [*table.columns] == [name for name in WIDE.columns if name not in hidden]
    assert [len(row) for row in table.rows] == [len(table.columns)] * 2


@pytest.mark.parametrize("width", [80, 40, 30, 16])
def test_a_drawn_table_fits_and_says_what_it_does_not_show(width):
    drawn = drawn_at(width, lambda console: console.print(renderable(WIDE, width)))
    assert max(map(len, drawn.splitlines())) <= width
    hidden = fitted(WIDE, width)[1]
    assert all(name in drawn for name in hidden) and ("--json" in drawn) == bool(hidden)
    for text in ("kitchen", "0.125", "hall"):
        assert width == 16 or text in drawn


def test_optional_columns_exist():
    """A column that a table does not have would never go."""
    assert {*monitoring.OPTIONAL} < {*monitoring.COLUMNS} and {*monitoring.WORKER_OPTIONAL} < {*monitoring.WORKER_COLUMNS}


def test_a_fleet_s_table_fits_80_columns():
    cells = ["living-room", "budget spent, dearer", "34%", "0.123", "1,840 ± 310 (46 %)", "859 ± 82 (28 %)", "12%", "0.017",
             "for 12 min", "class 1, asked", "12345", "adaptive", "123.4 J"]  # fmt: skip
    table, _ = fitted(Table("fleet", monitoring.COLUMNS, [cells], monitoring.OPTIONAL), 80)
    assert list(table.columns)[:5] == ["device", "alarms", "asked", "cost", "against never"]
    assert max(map(len, drawn_at(80, lambda console: console.print(renderable(table, 80))).splitlines())) <= 80


def test_a_pipe_gets_plain_text_with_every_column(capsys):
    show([WIDE])
    assert capsys.readouterr().out == (
        "devices\n"
        "device   policy     cost  alarms\n"
        "kitchen  adaptive  0.125  clock, sensor\n"
        "hall     h2t2       0.25  -\n"
    )  # fmt: skip


def test_next_commands_are_lines_that_a_shell_reads(capsys):
    words = ["h2t2", "run", "my $HOME/it's"]
    show_next({"try it": words})
    title, command = capsys.readouterr().out.splitlines()
    assert shlex.split(command) == words and title == "next, try it:"


@pytest.mark.parametrize("width", [80, 40, 24, 12])
def test_a_progress_bar_keeps_its_numbers(width, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("a long description of what the command does now", 200) as task:
        task.update(completed=50)
        drawn = drawn_at(width, lambda console: console.print(task.bar.get_renderable()))
    assert " 25%" in drawn and max(map(len, drawn.splitlines())) <= width


def drawn_at(width, draw):
    """What a console of that width shows."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    draw(console)
    return console.file.getvalue()


def test_a_progress_bar_shows_markup(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("update") as task:
        task.describe("[/x]")
        assert "[/x]" in drawn_at(80, lambda console: console.print(task.bar.get_renderable()))


@pytest.mark.whole
def test_a_fleet_of_hostile_devices_is_listed(broker):
    """`h2t2 fleet` once, with details, and live in a terminal; then `h2t2 command`, whose answer is as hostile."""
    client = make_client("")

    def answer(_client, _data, message):
        told = {"id": json.loads(message.payload)["id"], "ok": False, "why": "[/x]\x1b[2J"}
        client.publish(wire.topic("refuser", "answer"), json.dumps(told))

    client.on_message = answer
    client.connect(broker.host, broker.port)
    client.subscribe(wire.topic("refuser", "command"))
    client.loop_start()
    client.publish(wire.topic("refuser", "status"), b"online 1", 1, True).wait_for_publish(10)
    client.publish(wire.topic(NAME, "status"), b"online 1", 1, True).wait_for_publish(10)
    client.publish(wire.topic(NAME, "state"), json.dumps(state(**HOSTILE)), 1, True).wait_for_publish(10)
    to = ["--broker", broker.url]
    for extra in ([], [NAME]):
        run = subprocess.run(
            [*H2T2, "fleet", *to, "--once", "--listen", "1", *extra], capture_output=True, text=True, timeout=60
        )
        assert run.returncode == 0, run.stderr
        assert "\x1b" not in run.stdout and "\x07" not in run.stdout
        assert NAME in run.stdout and "[/x]\\x1b[2J" in run.stdout
    run = subprocess.run([*H2T2, "command", "refuser", "--snapshot", *to], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and run.stderr == "h2t2: refuser refuses: [/x]\\x1b[2J\n"
    shown = live([*H2T2, "fleet", *to])
    assert b"[/x]\\x1b[2J" in shown and b"\x1b]0;owned" not in shown and b"]\x1b[2J" not in shown
    client.disconnect()
    client.loop_stop()


def live(command):
    """What a command writes to a terminal until it has written a device's name."""
    end, other = pty.openpty()
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env={**os.environ, "COLUMNS": "200"})
    os.close(other)
    said = bytearray()

    def read():
        try:
            while data := os.read(end, 4096):
                said.extend(data)
        except OSError:
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    until(lambda: b"[/x]" in said or process.poll() is not None, 30)
    running = process.poll() is None
    process.kill()
    process.wait()
    reader.join(10)
    os.close(end)
    assert running, bytes(said)[-2000:]
    return bytes(said)

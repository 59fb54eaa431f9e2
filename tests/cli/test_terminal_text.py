"""Text of devices on an operator's terminal: shown as text, whatever it looks like."""

import json
import os
import pty
import subprocess
import sys
import threading

import pytest
from states import state
from support import mosquitto, until

from h2t2.cpython.mqtt_session import make_client
from h2t2.link import wire
from h2t2_tools.cli.output import progress, show
from h2t2_tools.common.report import Table

H2T2 = [sys.executable, "-m", "h2t2_tools"]
NAME = "[red]kitchen"  # Mosquitto takes no topic with control characters
HOSTILE = {"policy": "[/x]\x1b[2J", "start": "\x1b]0;owned\x07", "runtime": "[bold]"}


def test_tables_and_lines_show_markup_and_escape_sequences(capsys):
    show([Table("[/x] \x1b[2J", {"[/y]": "left", "n": "right"}, [["[/z]\x1b[2J", "[red]1"]]), "a line [/x] \x1b]0;t\x07"])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out
    for text in ("[/x]", "[/y]", "[/z]\\x1b[2J", "[red]1", "\\x1b]0;t\\x07"):
        assert text in out


def test_a_progress_bar_shows_markup(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress() as bar:
        task = bar.add_task("update", total=None)
        bar.update(task, description="[/x]")
        if hasattr(bar, "get_renderable"):
            from rich.console import Console

            with open(os.devnull, "w") as nowhere:
                Console(file=nowhere).print(bar.get_renderable())


@pytest.mark.slow
def test_a_fleet_of_hostile_devices_is_listed(tmp_path):
    """`h2t2 fleet` once, with details, and live in a terminal; then `h2t2 command`, whose answer is as hostile."""
    with mosquitto(tmp_path) as broker:
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

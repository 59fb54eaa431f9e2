"""A whole node on MicroPython's unix port as a board of world.py: what `h2t2 flash` copies, started again after every reset."""

import json
import subprocess
from dataclasses import replace

from ports.world import ESP32, RP2040
from support import ROOT, need

from h2t2_lab.boards import drive
from h2t2_tools.boards import kinds, project
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.model import bundle

KIND = {RP2040: "pico_w", ESP32: "esp32"}
MAIN = """from ports import pretend
world = pretend.be({chip!r}, **{options!r})
__import__("time").world = world
exec(open("own.py").read())
world.save()
"""


def run(tmp_path, broker, chip, program, pair, options, *, emulator=UNIX, **config):
    """(JSON lines of the program, starts, summary, world) of a node that ends by itself.

    program: text of its app.py. options: of pretend.be(). config: entries of the project.
    """
    need(emulator)
    folder, device = tmp_path / "project", tmp_path / "device"
    project.write(folder, pair, bundle=bundle.from_tflite(pair.ldl), board=KIND[chip])
    (folder / "app.py").write_text(program)
    contents = project.load(folder).contents
    usual = {"broker": broker.host, "port": broker.port, "wifi_name": "home", "wifi_password": "secret", "ntp": ""}
    own = kinds.Contents(contents.model, contents.config.model_copy(update={**usual, **config}), own=contents.own)
    kind = replace(kinds.KINDS[KIND[chip]], arch=drive.PROCESSORS[emulator.name])  # its machine code runs here
    for path, content in kinds.payload(kind, own).items():
        (device / path).parent.mkdir(parents=True, exist_ok=True)
        (device / path).write_bytes(content)
    (device / "main.py").rename(device / "own.py")
    (device / "run.py").write_text(MAIN.format(chip=chip, options=options))
    command, env = emulator.command(device / "run.py", []), emulator.environment(device, ROOT / "tests")
    lines, starts = [], 0
    while True:
        ran = subprocess.run(command, cwd=device, env=env, capture_output=True, text=True, timeout=600)
        starts += 1
        assert ran.returncode in (0, -9) and "LOCKED UP" not in ran.stdout, ran.stdout[-2000:] + ran.stderr[-800:]
        said = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        lines += [line for line in said if "source" in line and "at" in line]
        if ran.returncode == 0:
            return lines, starts, said[-1]["summary"], json.loads((device / "world.json").read_text())

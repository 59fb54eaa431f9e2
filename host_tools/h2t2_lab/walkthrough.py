"""Writes docs/five-commands.md: the way from two trained models to a device that acts, with the real output of each command.

`python -m h2t2_lab.walkthrough > docs/five-commands.md` needs scikit-learn, MicroPython's unix port and a broker.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from h2t2.cpython.interpreter import python
from h2t2_tools.common import trust

from . import material

TRAIN = material.text("programs/train.py.txt")
LAMP = '''

def act(decision):
    """The actuator: a lamp is a file here."""
    with open("lamp.txt", "a") as lamp:
        lamp.write("on\\n" if decision.label else "off\\n")
'''
MAX_LINES = 12  # of an output: its first and its last lines


def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(TRAIN)
        subprocess.run([sys.executable, "train.py"], cwd=folder, check=True)
        pair = "h2t2 pair small.joblib big.joblib --test test.npz --calibration train.npz --ldl-columns 0 1 4 --out mypair"
        parts = [
            "# From two trained models to a device, in five commands",
            "`make walkthrough` writes this page with the real output of each command. Dots mark omitted lines.",
            "You need the extras `convert` and `boards`, which `make demo` does not install, and MicroPython: "
            "`pip install 'h2t2-edge[demo,convert,boards]'` (in a clone `pip install -e '.[demo,convert,boards]'`), then "
            "`h2t2 emulators unix --install`.",
            "Train two scikit-learn Pipelines with their scalers. The small one reads three of the thirty numbers:",
            f"```python\n{TRAIN}```",
            "## 1. A pair",
            "`h2t2` asks whether you trust the two files, because a `.joblib` runs whatever program is in it. Answer `y`.",
            _transcript(pair, folder, 10),
            "The pair contains the scalers, so the int8 models read measured samples and are as good as the trained ones.",
            "## 2. A project",
            _transcript("h2t2 new porch --from mypair", folder),
            "`porch/app.py` reads samples from a file. Put your sensor into `sense()` and your actuator into `act()`:",
        ]
        app = (folder / "porch/app.py").read_text()
        (folder / "porch/app.py").write_text(app[: app.index("\n\ndef act(")] + LAMP)
        parts += [
            f"```python\n{LAMP.strip()}\n```",
            "## 3. Run it, without a board",
            _transcript("h2t2 run porch", folder),
            f"The lamp was switched {len((folder / 'porch/run-unix/lamp.txt').read_text().split())} times, once a sample.",
            "## 4. A board",
            _transcript("h2t2 new porch --board pico_w", folder),
            "`porch/h2t2.toml` now ends with a section of that board:",
        ]
        config = folder / "porch/h2t2.toml"
        config.write_text(config.read_text().replace('wifi_name = "network"', 'wifi_name = "home"'))
        section = config.read_text().partition("[boards.pico_w]\n")[2].splitlines()
        chosen = "\n".join(line.partition("  #")[0].rstrip() for line in section if not line.startswith("#"))
        parts += [
            f"```toml\n[boards.pico_w]\n{chosen}\n```",
            "Put the network's name into it. Then this is what the board needs:",
            _transcript("h2t2 flash porch --dry-run", folder),
            "## 5. Flash the board",
            "```sh\nh2t2 flash porch\n```",
            "Start the remote model on the broker's machine: `h2t2 rdl --pair porch/pair --broker mqtt://localhost`.",
            "Next: [Your project](your-project.md), [Your model](your-model.md), [Your sensor](your-sensor.md), "
            "[Your board](your-board.md).",
        ]
        return "\n\n".join(parts).replace(name, ".") + "\n"


def _transcript(command: str, folder: Path, head: int = MAX_LINES // 2) -> str:
    """Run a command. Return it with the first `head` lines of its output, dots, and the last lines."""
    trust.remember_models(folder)
    words = python("-m", "h2t2_tools", *command.split()[1:])
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment, check=True)
    lines = [line.rstrip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    if len(lines) > head + MAX_LINES // 2:
        lines = [*lines[:head], "...", *lines[-MAX_LINES // 2 :]]
    return "```console\n$ " + "\n".join([command, *lines]) + "\n```"


if __name__ == "__main__":
    print(page(), end="")

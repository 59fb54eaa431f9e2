"""Renews docs/case.md and docs/five-commands.md: runs the commands that a page names and writes their output below them.

`python -m h2t2_lab.case docs/case.md` needs scikit-learn, Mosquitto and MicroPython's unix port. A mark `run` holds a
command; one that ends with & serves until the last command has ended. A mark `picture` holds a file that a command has drawn,
and the words that describe it. A code block that begins with a file name as its comment is that file.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from h2t2_tools.common import trust
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.children import serving

from .pages import page_parts

MARK_PARTS = re.compile(r"^(<!-- (run|picture): (.+) -->)$", re.M)
SCRIPT = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.S)
EDGE_LINES = 12  # the first lines of an output that the page shows, and as many of the last ones
WIDTH = 240  # characters of a line that the page shows
IMAGES = "images"


def renew(page: Path, folder: Path) -> None:
    """Run the commands of a page in a folder and write their output into the page.

    Args:
        page: The page; pictures go into the folder `images` beside it.
        folder: An empty folder, the working directory of the commands.

    Raises:
        subprocess.CalledProcessError: A command failed.
    """
    text = page.read_text(encoding="utf-8")
    for name, script in SCRIPT.findall(text):
        (folder / name).write_text(script, encoding="utf-8")
    with ExitStack() as stack:
        environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment["H2T2_BROKER"] = stack.enter_context(broker.running("mosquitto"))

        def run(command: str) -> str:
            words = shlex.split(command)
            if words[-1] == "&":
                stack.enter_context(serving([*words[2:-1], "--broker", environment["H2T2_BROKER"]]))
                return f"```sh\n{command}\n```"
            trust.remember_models(folder)
            ran = subprocess.run(
                command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            if ran.returncode:
                raise subprocess.CalledProcessError(ran.returncode, command, ran.stdout)
            output = ran.stdout.replace(environment["H2T2_BROKER"], "mqtt://localhost")
            return "```console\n" + "\n".join([f"$ {command}", *_shortened(output)]) + "\n```"

        def picture(description: str) -> str:
            drawing, _, words = description.partition(" ")
            (page.parent / IMAGES).mkdir(exist_ok=True)
            target = page.parent / IMAGES / f"case-{Path(drawing).name.lower().replace('_', '-')}"
            shutil.copyfile(folder / drawing, target)
            return f"![{words}]({IMAGES}/{target.name})"

        writers: dict[str, Callable[[str], str]] = {"run": run, "picture": picture}
        for mark, kind, content in MARK_PARTS.findall(text):
            text = page_parts.between(text, mark, "\n" + writers[kind](content) + "\n")
    page.write_text(text, encoding="utf-8")


def _shortened(output: str) -> list[str]:
    """Return the first and the last lines of an output, each at most WIDTH characters long."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    if len(lines) > 2 * EDGE_LINES:
        lines = [*lines[:EDGE_LINES], "...", *lines[-EDGE_LINES:]]
    return [line if len(line) <= WIDTH else line[:WIDTH] + " ..." for line in lines]


def main() -> None:
    """Renew the page that the command line names."""
    page = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            renew(page, Path(name))
        except subprocess.CalledProcessError as error:
            sys.exit(f"{error.cmd}: exit status {error.returncode}\n{error.output}")


if __name__ == "__main__":
    main()

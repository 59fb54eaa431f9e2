"""The process of a board that QEMU emulates, with a pty as its serial line."""

import re
import subprocess

from ...common.errors import Failure
from ..repl import RawRepl


class OnQemu(RawRepl):
    """A board on QEMU. `port`: its serial line. Raises Failure with QEMU's output if QEMU does not start."""

    def __init__(self, name: str, command: list[str], pace: bool) -> None:
        """Start QEMU. command: QEMU and the options that choose the board; those of its serial line are added here."""
        command = [*command, "-display", "none", "-monitor", "none", "-serial", "pty"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        device = re.search(r"/dev/\S+", line)
        if not device:
            self.kill()
            raise Failure(f"{name}: QEMU did not start: {line.strip()}")
        super().__init__(device.group(0), pace)

    def __exit__(self, *_: object) -> None:
        self.close()
        self.kill()

    def kill(self) -> None:
        """Stop the board at once, like a power cut."""
        self._process.kill()
        self._process.communicate()

"""A board that QEMU emulates, its serial line a pty: the process, for as long as the board is wanted."""

from __future__ import annotations

import re
import subprocess

from ...common.errors import Failure
from ..repl import RawRepl


class OnQemu(RawRepl):
    """`port`: its line. Failure, with QEMU's words, where it does not start."""

    def __init__(self, name: str, command: list[str], pace: bool) -> None:
        """command: what makes it that board; how its line is reached is said here."""
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
        """As pulling the plug does."""
        self._process.kill()
        self._process.communicate()

"""A serial line without a board: the test plays the board."""

import os
import select
import tty

import pytest

from h2t2_tools.boards.emulators import terminals


def need():
    """Skip if this system has no pseudo-terminals."""
    if terminals.absent():
        pytest.skip(terminals.absent())


class Pty:
    def __init__(self):
        need()
        self.end, device = os.openpty()
        tty.setraw(device)
        os.set_blocking(self.end, False)
        self.port = os.ttyname(device)

    def read(self):
        try:
            return os.read(self.end, 4096)
        except BlockingIOError:
            return None

    def wait(self, ms):
        select.select([self.end], [], [], ms / 1000)

    def write(self, data):
        os.write(self.end, data)

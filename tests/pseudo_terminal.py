"""A serial line without a board: the test is the board."""

import os
import select
import tty

import pytest

from h2t2_tools.boards.emulators import terminals


def need():
    """Skip, with the reason, where the system has none."""
    if terminals.absent():
        pytest.skip(terminals.absent())


class Pty:
    def __init__(self):
        need()
        self.end, other = os.openpty()
        tty.setraw(other)
        os.set_blocking(self.end, False)
        self.port = os.ttyname(other)

    def read(self):
        try:
            return os.read(self.end, 4096)
        except BlockingIOError:
            return None

    def wait(self, ms):
        select.select([self.end], [], [], ms / 1000)

    def write(self, data):
        os.write(self.end, data)

"""`socket` for a board without a network: its USB line carries what it sends and receives, and line_relay.py connects.

It has what micropython-lib's requests uses.
"""

import sys
from binascii import a2b_base64, b2a_base64

AF_INET, SOCK_STREAM = 2, 1
PIECE = 1536  # bytes of an answer


def getaddrinfo(host, port, *_):
    return [(AF_INET, SOCK_STREAM, 0, "", (host, port))]


def _ask(verb, content=b""):
    """Send a line to the host, and return the bytes of its answer."""
    print("socket", verb, b2a_base64(content).decode().strip())
    return a2b_base64(sys.stdin.readline())


class socket:  # noqa: N801  MicroPython's name
    def __init__(self, *_):
        self._sent, self._received, self._at = [], b"", 0

    def connect(self, address):
        host, port = address
        _ask("connect", (host + " " + str(port)).encode())

    def write(self, data):
        self._sent.append(data.encode() if isinstance(data, str) else data)

    def _fill(self):
        """Receive when all that came has been read. Return whether bytes are there."""
        if self._sent:
            _ask("send", b"".join(self._sent))
            self._sent = []
        if self._at == len(self._received):
            self._received, self._at = _ask("receive", b"%d" % PIECE), 0
        return self._at < len(self._received)

    def _take(self, count):
        taken = self._received[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def readinto(self, buffer):
        filled = 0
        while filled < len(buffer) and self._fill():
            taken = self._take(len(buffer) - filled)
            buffer[filled : filled + len(taken)] = taken
            filled += len(taken)
        return filled

    def read(self):
        pieces = []
        while self._fill():
            pieces.append(self._take(PIECE))
        return b"".join(pieces)

    def readline(self):
        line = b""
        while not line.endswith(b"\n") and self._fill():
            end = self._received.find(b"\n", self._at)
            line += self._take(PIECE if end < 0 else end + 1 - self._at)
        return line

    def close(self):
        _ask("close")

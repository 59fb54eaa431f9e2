# The line that a board's REPL is on, such as the USB of a Pico, as a Stream of SerialLink. While it is open, Ctrl-C is a byte
# like any other, for a frame may contain it. mpremote and `h2t2 flash` stop the node as they ask for the prompt: with Return
# and Ctrl-C where a frame would begin; no frame begins like that.
import select
import sys

from micropython import kbd_intr

from ..clock import ticks_diff, ticks_ms

READ_SIZE = 64  # bytes that one read() takes
RETURN, CTRL_C = 13, 3
PAUSE_MS = 1000  # no frame has a longer pause: the next byte begins a block


class Stdio:
    """Standard input and output. read() raises KeyboardInterrupt where somebody asks for the prompt."""

    def __init__(self) -> None:
        self.poller = select.poll()
        self.poller.register(sys.stdin, select.POLLIN)
        self.byte = bytearray(1)
        self.buffer = bytearray(READ_SIZE)
        self.at = 0  # of the next byte within its block; -1: the block began with Return
        self.heard_at = ticks_ms()
        kbd_intr(-1)

    def read(self) -> bytes | None:
        """The bytes that have come. They are read one by one: after a request for the prompt they belong to the prompt."""
        n = 0
        while n < READ_SIZE and self.poller.poll(0):
            sys.stdin.buffer.readinto(self.byte)  # type: ignore[union-attr]
            byte = self.byte[0]
            now = ticks_ms()
            if not n and ticks_diff(now, self.heard_at) > PAUSE_MS:
                self.at = 0
            self.heard_at = now
            if byte == CTRL_C and self.at < 0:
                raise KeyboardInterrupt
            self.at = 0 if not byte else -1 if byte == RETURN and self.at <= 0 else 1
            self.buffer[n] = byte
            n += 1
        return bytes(memoryview(self.buffer)[:n]) if n else None

    def wait(self, ms: int) -> None:
        self.poller.poll(ms)

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)

    def close(self) -> None:
        """Let Ctrl-C interrupt again."""
        kbd_intr(CTRL_C)

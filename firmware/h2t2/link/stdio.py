# The line that a board's REPL is on, such as the USB of a Pico, as a stream for SerialLink. While it is open Ctrl-C is a byte
# like any other, for a frame may hold it. What stops the node instead is how mpremote and `h2t2 flash` ask for the prompt:
# Return and Ctrl-C where a frame would begin, which no frame does.
import select
import sys

from micropython import kbd_intr  # type: ignore[import-not-found]

from ..clock import ticks_diff, ticks_ms

ROOM = 64  # bytes taken at once
RETURN, CTRL_C = 13, 3
PAUSE_MS = 1000  # a frame has no longer pause in it: what comes then begins anew


class Stdio:
    """`read()` gives what has come, without waiting, and raises KeyboardInterrupt where somebody asks for the prompt."""

    def __init__(self):
        self.poller = select.poll()
        self.poller.register(sys.stdin, select.POLLIN)
        self.byte = bytearray(1)
        self.taken = bytearray(ROOM)
        self.at = 0  # of the next byte within its block; -1: the block began with Return
        self.heard = ticks_ms()
        kbd_intr(-1)

    def read(self):
        """bytes, or None. They are read one by one: what follows a request for the prompt is the prompt's."""
        n = 0
        while n < ROOM and self.poller.poll(0):
            sys.stdin.buffer.readinto(self.byte)  # type: ignore[union-attr]
            byte = self.byte[0]
            now = ticks_ms()
            if not n and ticks_diff(now, self.heard) > PAUSE_MS:
                self.at = 0
            self.heard = now
            if byte == CTRL_C and self.at < 0:
                raise KeyboardInterrupt
            self.at = 0 if not byte else -1 if byte == RETURN and self.at <= 0 else 1
            self.taken[n] = byte
            n += 1
        return bytes(memoryview(self.taken)[:n]) if n else None

    def wait(self, ms):
        self.poller.poll(ms)

    def write(self, data):
        sys.stdout.buffer.write(data)

    def close(self):
        """Ctrl-C interrupts again."""
        kbd_intr(CTRL_C)

# One TLS handshake on a Pico without a network: its bytes go over the USB line in hexadecimal, "W" and what it sends, "R" and
# how many bytes it would read, which the host then answers. Time and heap are the chip's own, without what the line takes.
# It finds CERT, whether it shows a certificate, and DAY, (year, month, day), which its clock is set to.
# ruff: noqa: F821, UP031
import gc
import io
import sys
from binascii import hexlify, unhexlify
from time import ticks_diff, ticks_us

import machine

from h2t2.link import tls


class Line(io.IOBase):
    """What TLS writes to and reads from. `us`: computed in this call of TLS; `peak`: heap in use, the most at any of these."""

    def __init__(self):
        self.us = self.peak = 0
        self.sent = False

    def begin(self):
        self.us = 0
        self.last = ticks_us()

    def enter(self):
        self.us += ticks_diff(ticks_us(), self.last)
        gc.collect()
        self.peak = max(self.peak, gc.mem_alloc())

    def leave(self, answer):
        self.last = ticks_us()
        return answer

    def write(self, data):
        self.enter()
        sys.stdout.write("W" + hexlify(data).decode() + "\n")
        self.sent = True
        return self.leave(len(data))

    def readinto(self, buffer):
        self.enter()
        if self.sent:  # the answer takes a while on its way, so that this call of TLS ends here
            self.sent = False
            return self.leave(None)
        sys.stdout.write("R%d\n" % len(buffer))
        data = unhexlify(sys.stdin.readline().strip())
        buffer[: len(data)] = data
        return self.leave(len(data) if data else None)

    def ioctl(self, request, argument):
        return 0


machine.RTC().datetime(DAY + (0, 3, 0, 0, 0))
gc.collect()
before = gc.mem_alloc()
context = tls.context("ca.der", "cert.der" if CERT else None, "key.der" if CERT else None)
line = Line()
line.begin()
secure = context.wrap_socket(line, server_hostname="broker", do_handshake_on_connect=False)
calls = []
written = None
while not written:
    line.begin()
    written = secure.write(b"hello")
    line.enter()
    calls.append(line.us)
gc.collect()
print("DONE", sum(calls), max(calls), line.peak - before, gc.mem_alloc() - before)

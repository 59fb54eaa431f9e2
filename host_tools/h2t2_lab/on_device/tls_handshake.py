# Makes one TLS handshake on a Pico without a network. Its bytes go over the USB line in hexadecimal: "W" and the sent bytes;
# "R" and the number of bytes to read, which the host answers. Time and heap are the chip's own, without those of the line. The
# host defines CERT, whether the Pico shows a certificate, and DAY, (year, month, day), for its clock.
# ruff: noqa: F821, UP031
import gc
import io
import sys
from binascii import hexlify, unhexlify
from time import ticks_diff, ticks_us

import machine

from h2t2.link import tls


class Line(io.IOBase):
    """The line under TLS. `us`: computing time in this call of TLS; `peak`: the most heap in use at any of these calls."""

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
        if self.sent:  # ends this call of TLS here, because the answer takes a while
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

# Sets a board's clock from a time server (SNTP, RFC 5905), and keeps asking until it is set: a certificate can be judged only
# then. Nothing here waits, but the look-up of a name on a port that tells of no name server.
import errno
import os
import socket
from struct import unpack

from ..clock import SET, remaining, ticks_add, ticks_ms, unix_now
from .backoff import Backoff

PORT = 123
FIRST_MS, LONGEST_MS = 30000, 900000  # bounds of the waits between two questions, of which each is at least half
ANSWER_MS = 3000
HOLD_S = 21600  # a clock that was set is right for so long
TO_1970 = 2208988800  # seconds from 1900, where NTP begins
KEPT = "h2t2.clock"  # file: Unix seconds when the clock was set last


class TimeServer:
    """host: of the server. seed: of the waits. woken: this start ends a deep sleep, in which a clock may have run on. feed: a
    watchdog's, called before a name is looked up. `trouble`: why the clock is not set, "" while it may be soon."""

    def __init__(self, host, seed, woken=False, feed=lambda: None, log=print):
        self.host = host
        self.feed = feed
        self.log = log
        self.backoff = Backoff(seed, FIRST_MS, LONGEST_MS)
        self.trouble = ""
        self.sock = self.lookup = None
        self.nonce = b""
        self.wait_ms = 0  # until the next question, or for an answer
        self.due = ticks_ms()
        self.is_set = unix_now() > 0
        if woken and self.is_set:
            self._hold(unix_now() - kept())

    def is_asking(self) -> bool:
        """Whether an answer may come soon."""
        return bool(self.sock or self.lookup) or not (self.is_set or self.trouble)

    def advance(self) -> bool:
        """Do what is due, while there is a network. Whether the clock is set."""
        try:
            if self.sock:
                self._answer(self.sock.recv(64))
            elif self.lookup:
                address = self.lookup.address(0)
                if address:
                    self._send(address)
            elif not remaining(self.due, self.wait_ms):
                self._ask()
        except OSError as error:
            if error.args[0] != errno.EAGAIN:
                self._fail(error)
        if (self.sock or self.lookup) and not remaining(self.due, self.wait_ms):
            self._fail("no answer")
        return self.is_set

    def _ask(self):
        """Ask for the server's address where it has a name, without waiting if the board has names.py; else for the time."""
        if self.host > ":":  # it does not begin with a digit
            try:
                from .names import Lookup

                self.lookup = Lookup(self.host)
                self._wait(ANSWER_MS)
                return
            except (ImportError, AttributeError):
                self.feed()
        self._send(self.host)

    def _send(self, host):
        self._close()
        address = socket.getaddrinfo(host, PORT, 0, socket.SOCK_DGRAM)[0]
        self.sock = socket.socket(address[0], socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.sock.connect(address[-1])
        self.nonce = os.urandom(8)
        self.sock.send(b"\x23" + bytes(39) + self.nonce)  # version 4, a client's; the server sends our time back
        self._wait(ANSWER_MS)

    def _wait(self, ms):
        self.wait_ms = ms
        self.due = ticks_add(ticks_ms(), ms)

    def _answer(self, data):
        """Set the clock by an answer. One that is another's, or of a server that is not right itself, counts as none."""
        if len(data) < 48 or data[24:32] != self.nonce:
            return
        seconds = unpack("!I", data[40:44])[0]
        seconds += (1 << 32 if seconds < 1 << 31 else 0) - TO_1970  # its 32 bits began anew in 2036
        if data[0] & 7 != 4 or data[0] >> 6 == 3 or not 0 < data[1] < 16 or seconds < SET:
            self._fail("it has no time to give")
            return
        set_clock(seconds)
        self._close()
        self.is_set = True
        self.trouble = ""
        self.backoff.reset()
        try:
            with open(KEPT, "w") as file:
                file.write(str(seconds))
        except OSError:  # a full flash: it is asked again after the next sleep
            pass
        self._hold(0)

    def _hold(self, age_s):
        """Ask again when the clock is no longer right."""
        if 0 <= age_s < HOLD_S:
            self._wait((HOLD_S - age_s) * 1000)

    def _fail(self, why):
        self._close()
        self._wait(self.backoff.draw())
        if not self.is_set:
            if not self.trouble:
                self.log("the clock is not set: %s: %s; asking again" % (self.host, why))
            self.trouble = "the clock is not set: %s: %s" % (self.host, why)

    def _close(self):
        for sock in (self.sock, self.lookup and self.lookup.sock):
            if sock:
                sock.close()
        self.sock = self.lookup = None


def kept() -> int:
    """Unix seconds when the clock was set last, as far as a file says; 0: never."""
    try:
        with open(KEPT) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def set_clock(seconds) -> None:
    """Set the machine's clock, Unix seconds."""
    from time import gmtime

    from machine import RTC  # type: ignore[import-not-found]

    year, month, day, hour, minute, second, weekday = gmtime(seconds - (946684800 if gmtime(0)[0] == 2000 else 0))[:7]
    RTC().datetime((year, month, day, weekday + 1, hour, minute, second, 0))

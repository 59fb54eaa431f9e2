# Sets a board's clock from a time server (SNTP, RFC 5905), and asks until it is set: TLS cannot check a certificate before.
# Nothing here waits, except the look-up of a name on a port that reveals no name server.
import errno
import os
import socket
from struct import unpack

from ..clock import SET, remaining, ticks_add, ticks_ms, unix_now
from ..modules import call_once
from .backoff import Backoff

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, Callable

PORT = 123
FIRST_MS, LONGEST_MS = 30000, 900000  # bounds of the waits between two queries; each wait is at least half of its bound
ANSWER_MS = 3000
HOLD_S = 21600  # a clock is right for so long after it was set
TO_1970 = 2208988800  # seconds from 1900, where NTP begins
LAST_SET = "h2t2.clock"  # file: Unix seconds when the clock was set last


class TimeServer:
    """A client of a time server.

    Attributes:
        trouble: why the clock is not set, "" while it may be set soon.
        hold_ms: how long the clock will be right; 0: it is not set.
    """

    def __init__(
        self, host: str, seed: int, after_sleep: bool = False, feed: "Callable[[], object]" = lambda: None,
        log: "Callable[[str], object]" = print
    ) -> None:  # fmt: skip
        """Begin to ask.

        Args:
            host: of the server.
            seed: of the waits between queries.
            after_sleep: whether this start ends a deep sleep, during which the clock may have kept the time.
            feed: feeds a watchdog; called before a look-up that blocks.
            log: takes each new reason why the clock is not set.
        """
        self.host = host
        self.feed = feed
        self.log = log
        self.backoff = Backoff(seed, FIRST_MS, LONGEST_MS)
        self.trouble = ""
        self.sock: "Any" = None
        self.lookup: "Any" = None
        self.nonce = b""
        self.wait_ms = 0  # until the next query, or for an answer
        self.failures = 0  # queries without an answer
        self.due = ticks_ms()
        self.hold_ms = 0
        self.is_set = unix_now() > 0
        if after_sleep and self.is_set:
            self._hold(unix_now() - last_set())

    def is_asking(self) -> bool:
        """Whether an answer may come soon."""
        return bool(self.sock or self.lookup) or not (self.is_set or self.trouble)

    def advance(self) -> bool:
        """Do what is due, while there is a network. Returns whether the clock is set."""
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

    def _ask(self) -> None:
        """Query the server's address where it has a name, without waiting if the board has names.py; else the time."""
        if self.host > ":":  # it does not begin with a digit
            try:
                from .names import Lookup

                self.lookup = Lookup(self.host)
                self._wait(ANSWER_MS)
                return
            except (ImportError, AttributeError):
                self.feed()
        self._send(self.host)

    def _send(self, host: str) -> None:
        self._close()
        address = socket.getaddrinfo(host, PORT, 0, socket.SOCK_DGRAM)[0]
        self.sock = socket.socket(address[0], socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.sock.connect(address[-1])
        self.nonce = os.urandom(8)
        self.sock.send(b"\x23" + bytes(39) + self.nonce)  # version 4, a client's; the server sends our time back
        self._wait(ANSWER_MS)

    def _wait(self, ms: int) -> None:
        self.wait_ms = ms
        self.due = ticks_add(ticks_ms(), ms)

    def _answer(self, data: bytes) -> None:
        """Set the clock from an answer, unless it belongs to another query or its server is not synchronised."""
        if len(data) < 48 or data[24:32] != self.nonce:
            return
        seconds = unpack("!I", data[40:44])[0]
        seconds += (1 << 32 if seconds < 1 << 31 else 0) - TO_1970  # the 32 bits overflow in 2036
        if data[0] & 7 != 4 or data[0] >> 6 == 3 or not 0 < data[1] < 16 or seconds < SET:
            self._fail("it has no time to give")
            return
        call_once("link.rtc.set_clock", seconds)
        self._close()
        self.is_set = True
        self.trouble = ""
        self.backoff.reset()
        try:
            with open(LAST_SET, "w") as file:
                file.write(str(seconds))
        except OSError:  # a full flash: the board asks again after the next sleep
            pass
        self._hold(0)

    def _hold(self, age_s: int) -> None:
        """Wait until the clock is no longer right; age_s: since it was set."""
        if 0 <= age_s < HOLD_S:
            self.hold_ms = (HOLD_S - age_s) * 1000
            self._wait(self.hold_ms)

    def _fail(self, reason: "str | OSError") -> None:
        self._close()
        self.failures += 1
        self._wait(self.backoff.draw())
        if not self.is_set:
            if not self.trouble:
                self.log("the clock is not set: %s: %s; asking again" % (self.host, reason))
            self.trouble = "the clock is not set: %s: %s" % (self.host, reason)

    def _close(self) -> None:
        for sock in (self.sock, self.lookup and self.lookup.sock):
            if sock:
                sock.close()
        self.sock = self.lookup = None


def last_set() -> int:
    """Unix seconds when the clock was set last, from the file LAST_SET; 0: never."""
    try:
        with open(LAST_SET) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0

# A link to a broker with a name. It looks the name up in DNS without waiting for the answer where the port reveals its name
# server: getaddrinfo() of lwIP waits 7 s for each silent name server, and two of them take longer than a watchdog allows.
import errno
import os
import select
import socket

from ..clock import ticks_diff, ticks_ms
from . import mqtt

PORT = 53
AGAIN_MS = 1000  # between two queries


class Lookup:
    """Asks the network's name server for the IPv4 address of a host, until it answers."""

    def __init__(self, host: str) -> None:
        """Send the first query.

        Raises:
            ImportError, AttributeError: the port reveals no name server with an IPv4 address.
            OSError: nothing can be sent.
            ValueError: the host can be no name.
        """
        import network

        server = network.ipconfig("dns")
        if ":" in server:
            raise AttributeError("a name server with an IPv6 address")
        self.server = socket.getaddrinfo(server, PORT)[0][-1]
        labels = b"".join([bytes([len(label)]) + label.encode() for label in host.split(".")])
        self.query = os.urandom(2) + b"\x01\0\0\x01\0\0\0\0\0\0" + labels + b"\0\0\x01\0\x01"
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        self.poller = select.poll()
        self.poller.register(self.sock, select.POLLIN)
        self._ask()

    def _ask(self) -> None:
        self.asked_at = ticks_ms()
        self.sock.sendto(self.query, self.server)

    def address(self, wait_ms: int) -> str | None:
        """The host's address, or None when no answer has come after wait_ms. OSError where there is no such host."""
        self.poller.poll(wait_ms)
        try:
            return answer(self.sock.recv(512), self.query)
        except OSError as error:
            if error.args[0] != errno.EAGAIN:
                raise
        if not 0 <= ticks_diff(ticks_ms(), self.asked_at) < AGAIN_MS:
            self._ask()
        return None


def answer(data: bytes, query: bytes) -> str | None:
    """The first address in an answer, None for data that do not answer the query. OSError where there is no address."""
    end = len(query)
    if data[:2] != query[:2] or data[12:end] != query[12:] or not data[2] & 0x80:
        return None
    try:
        at = end
        for _ in range(data[6] << 8 | data[7]):
            while 0 < data[at] < 192:  # a name, or a pointer to one
                at += data[at] + 1
            at += 2 if data[at] else 1
            size = data[at + 8] << 8 | data[at + 9]
            if data[at + 1] == 1 and size == 4:
                return "%d.%d.%d.%d" % tuple(data[at + 10 : at + 14])
            at += size + 10
    except (IndexError, TypeError, ValueError):  # the answer ends too soon
        pass
    raise OSError("the name server knows no address of that name")


class MqttLink(mqtt.MqttLink):
    """The MqttLink that looks up its broker's name without blocking, where the port permits that.

    Without an answer it uses the last address again. getaddrinfo() looks up names that end in .local.
    """

    lookup: "Lookup | None" = None
    last_address: "tuple[object, ...] | None" = None

    def _start(self) -> None:
        if self.address or ":" in self.host or self.host[-6:] == ".local":
            mqtt.MqttLink._start(self)
            return
        self.since = ticks_ms()
        self.state = mqtt.CONNECTING
        try:
            self.lookup = Lookup(self.host)
            self.sock = self.lookup.sock
        except (ImportError, AttributeError):
            mqtt.MqttLink._start(self)
        except (OSError, ValueError) as error:
            self._drop(str(error))

    def _advance(self, wait_ms: int) -> None:
        if not self.lookup:
            mqtt.MqttLink._advance(self, wait_ms)
            return
        try:
            address = self.lookup.address(wait_ms)
            if address:
                self.lookup.sock.close()
                self.lookup = None
                self.last_address = self.address = socket.getaddrinfo(address, self.port, 0, socket.SOCK_STREAM)[0]
                mqtt.MqttLink._start(self)
            elif ticks_diff(ticks_ms(), self.since) > self.deadline_ms:
                raise OSError("no answer from the name server in %d ms" % self.deadline_ms)
        except OSError as error:
            self._drop(str(error))

    def _drop(self, reason: str) -> None:
        was_looking_up = self.lookup
        self.lookup = None
        mqtt.MqttLink._drop(self, reason)
        if was_looking_up:
            self.address = self.last_address

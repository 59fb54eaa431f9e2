# A link to a broker named by a name, which is looked up in DNS without waiting for the answer where the port tells of its
# name server: getaddrinfo() of lwIP waits 7 s for each name server that is silent, two of them longer than a watchdog allows.
import errno
import os
import select
import socket

from ..clock import ticks_diff, ticks_ms
from . import mqtt

PORT = 53
AGAIN_MS = 1000  # between two questions


class Lookup:
    """Asks the network's name server for the IPv4 address of a host, until it answers.

    ImportError or AttributeError where the port tells of no name server that has an IPv4 address, OSError where nothing can be
    sent, ValueError for what can be no name.
    """

    def __init__(self, host):
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

    def _ask(self):
        self.asked = ticks_ms()
        self.sock.sendto(self.query, self.server)

    def address(self, wait_ms: int) -> str | None:
        """The host's address, None where no answer has come after wait_ms. OSError where there is no such host."""
        self.poller.poll(wait_ms)
        try:
            return answer(self.sock.recv(512), self.query)
        except OSError as error:
            if error.args[0] != errno.EAGAIN:
                raise
        if not 0 <= ticks_diff(ticks_ms(), self.asked) < AGAIN_MS:
            self._ask()
        return None


def answer(data: bytes, query: bytes) -> str | None:
    """The first address that an answer holds, None for what is no answer to the query. OSError where it holds none."""
    end = len(query)
    if data[:2] != query[:2] or data[12:end] != query[12:] or not data[2] & 0x80:
        return None
    try:
        at = end
        for _ in range(data[6] << 8 | data[7]):
            while 0 < data[at] < 192:  # a name, or where it stands
                at += data[at] + 1
            at += 2 if data[at] else 1
            size = data[at + 8] << 8 | data[at + 9]
            if data[at + 1] == 1 and size == 4:
                return "%d.%d.%d.%d" % tuple(data[at + 10 : at + 14])
            at += size + 10
    except (IndexError, TypeError, ValueError):  # it ends too soon
        pass
    raise OSError("the name server knows no address of that name")


class MqttLink(mqtt.MqttLink):
    """The MqttLink that looks up its broker's name without blocking, where the port lets it. Without an answer it goes on with
    the address that it had. Names that end in .local are left to getaddrinfo()."""

    lookup = None
    known = None  # the address that was found last

    def _start(self):
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

    def _advance(self, wait_ms):
        if not self.lookup:
            mqtt.MqttLink._advance(self, wait_ms)
            return
        try:
            address = self.lookup.address(wait_ms)
            if address:
                self.lookup.sock.close()
                self.lookup = None
                self.known = self.address = socket.getaddrinfo(address, self.port, 0, socket.SOCK_STREAM)[0]
                mqtt.MqttLink._start(self)
            elif ticks_diff(ticks_ms(), self.since) > self.deadline_ms:
                raise OSError("no answer from the name server in %d ms" % self.deadline_ms)
        except OSError as error:
            self._drop(str(error))

    def _drop(self, why):
        failed = self.lookup
        self.lookup = None
        mqtt.MqttLink._drop(self, why)
        if failed:
            self.address = self.known

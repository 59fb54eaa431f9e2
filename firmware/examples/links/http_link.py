# Each request is a POST to `h2t2 gate --http`, for a board that cannot hold MQTT. No state and no commands.
import errno
import select
import socket
from struct import unpack_from

from h2t2.clock import remaining, ticks_add, ticks_ms
from h2t2.link import wire
from h2t2.link.link import Link

HEAD = "POST /v1/ask HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\n"
LENGTH = "Content-Length: %d\r\n\r\n"
LONGEST = 1024  # bytes of an answer


class HttpLink(Link):
    """One request at a time, a connection each. Nothing blocks but the look-up of a host's name, once."""

    def __init__(self, host, port, token, boot):
        Link.__init__(self, boot)
        self.address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0][-1]
        self.head = HEAD % (host, token)
        self.poller = select.poll()
        self.socket = None

    def send(self, payload):
        """Begin a request. False while another one may still be answered in time."""
        if self.socket and remaining(self.end, self.useful_ms):
            self.refused += 1
            return False
        self.close()
        self.useful_ms = unpack_from("<I", payload, 12)[0]
        self.end = ticks_add(ticks_ms(), self.useful_ms)
        self.nobody = payload[:1] + bytes([wire.NOBODY]) + payload[4:12] + b"\xff\xff\0\0"  # the reply without an answer
        self.unsent = memoryview((self.head + LENGTH % len(payload)).encode() + payload)
        self.received = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.poller.register(self.socket, select.POLLIN | select.POLLOUT)
        try:
            self.socket.connect(self.address)
        except OSError as error:
            if error.args[0] not in (errno.EINPROGRESS, errno.EAGAIN):
                self.close()
                return False
        return True

    def receive(self, wait_ms):
        end = ticks_add(ticks_ms(), wait_ms)
        while True:
            left_ms = remaining(end, wait_ms)
            if self.poller.poll(left_ms):
                reply = self.advance()
                if reply:
                    return reply
            if not left_ms:
                return None

    def advance(self):
        """Send and receive what is possible now. Return the reply once the gate has closed the connection."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            self.poller.modify(self.socket, select.POLLIN)
            data = self.socket.recv(LONGEST + 1 - len(self.received))
            self.received += data
            if data and len(self.received) <= LONGEST:
                return None
        except OSError as error:
            if error.args[0] == errno.EAGAIN:
                return None
        self.close()
        head, _, reply = self.received.partition(b"\r\n\r\n")
        if b" 200 " in head[:14] and len(self.received) <= LONGEST:
            return reply
        self.trouble = "the gate answers %s" % head[:40]
        return self.nobody

    def close(self):
        if self.socket:
            self.poller.unregister(self.socket)
            self.socket.close()
            self.socket = None

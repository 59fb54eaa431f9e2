"""The boards' MQTT link, packet by packet, with a broker that the test plays: bytes, pieces, ids, times."""

import errno
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest
from support import until

from h2t2.link import presence, wire
from h2t2.link.mqtt import DOWN, UP, MqttLink

CONNACK = b"\x20\x02\x00\x00"
BUFFER = 64


class Broker:
    """The other end of a link's connection, read and written by the test."""

    def __init__(self, link, server):
        self.link, self.server, self.sock, self.data = link, server, None, b""
        self.replies = []

    def poll(self, wait_ms=0):
        """Let the link work, and keep its reply."""
        reply = self.link.receive(wait_ms)
        if reply is not None:
            self.replies.append(reply)
        return reply

    def accept(self):
        """Take the link's next connection, and read what it sends first."""
        self.server.settimeout(20)
        self.poll()
        self.sock, _ = self.server.accept()
        self.sock.setblocking(False)
        self.data = b""
        return self.packet()

    def packet(self):
        """The next packet of the link: (first byte, body)."""

        def whole():
            self.poll()
            with suppress(BlockingIOError):
                self.data += self.sock.recv(4096)
            return len(self.data) > 1 and len(self.data) >= 2 + self.data[1]

        assert until(whole, 20) and self.data[1] < 128
        end = 2 + self.data[1]
        kind, body, self.data = self.data[0], self.data[2:end], self.data[end:]
        return kind, body

    def say(self, data):
        """Send bytes, and let the link read them."""
        self.sock.sendall(data)
        for _ in range(3):
            self.poll(1)

    def greet(self):
        """Bring the link up; its subscription and its status are read."""
        self.accept()
        self.say(CONNACK)
        subscription = self.packet()
        self.say(b"\x90\x06" + subscription[1][:2] + b"\x01" * 4)
        return subscription, self.packet()


@contextmanager
def played(**options):
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = {"device": "cam", "model": 5, "boot": 77, "keep_alive": 300, "buffer": BUFFER, **options}
        link = MqttLink("127.0.0.1", server.getsockname()[1], **arguments)
        broker = Broker(link, server)
        try:
            yield link, broker
        finally:
            link.close()
            if broker.sock:
                broker.sock.close()


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return len(data).to_bytes(2, "big") + data


def published(topic, payload, kind=0x30, number=b""):
    body = text(topic) + number + payload
    size = bytes([len(body)]) if len(body) < 128 else bytes([len(body) & 127 | 128, len(body) >> 7])
    return bytes([kind]) + size + body


@pytest.mark.parametrize("login, flags", [({}, 0x26), ({"user": "u"}, 0xA6), ({"user": "u", "password": "p"}, 0xE6)])
def test_the_first_packets_are_as_the_protocol_has_them(login, flags):
    with played(**login) as (link, broker):
        kind, body = broker.accept()
        will = text(wire.topic("cam", "status")) + text(presence.status("offline", 77))
        end = b"".join(text(value) for value in login.values())
        assert (kind, body) == (0x10, text("MQTT") + bytes([4, flags, 1, 44]) + text("h2t2-cam") + will + end)
        broker.say(CONNACK)
        kind, body = broker.packet()
        topics = [wire.topic("cam", leaf) for leaf in ("reply", "command", "status")] + [presence.worker_topic(5, "+")]
        assert (kind, body) == (0x82, b"\x00\x01" + b"".join(text(topic) + b"\x01" for topic in topics))
        assert not link.is_connected() and link.is_connecting()
        broker.say(b"\x90\x06\x00\x01\x01\x01\x01\x01")
        assert link.is_connected() and not link.is_connecting() and link.connections == 1
        assert broker.packet() == (0x31, text(wire.topic("cam", "status")) + presence.status("online", 77))


def test_what_a_link_publishes():
    """The state is retained, an answer is not, a request is acknowledged. Ids count on, and begin again after 65,535."""
    request = wire.encode_request(5, 77, 1, (2,), b"xy")
    with played() as (link, broker):
        broker.greet()
        link.report("{}")
        link.answer("{}")
        link.packet_id = 65534
        leaf = wire.topic("cam", presence.request_leaf(5))
        for _ in range(2):
            assert link.send(request)
        assert broker.packet() == (0x31, text(wire.topic("cam", "state")) + b"{}")
        assert broker.packet() == (0x30, text(wire.topic("cam", "answer")) + b"{}")
        assert broker.packet() == (0x32, text(leaf) + b"\xff\xff" + request)
        assert broker.packet() == (0x32, text(leaf) + b"\x00\x01" + request)
        assert link.unacknowledged == 2
        broker.say(b"\x40\x02\xff\xff" + b"\x40\x02\x00\x01" + b"\x40\x02\x00\x01")
        assert link.unacknowledged == 0
        link.close()
        assert broker.packet() == (0x31, text(wire.topic("cam", "status")) + presence.status("offline", 77))
        assert broker.packet() == (0xE0, b"")


@pytest.mark.parametrize("refusal", [b"\x20\x02\x00\x05", b"\x20\x01\x00", b"\x90\x06\x00\x01\x01\x01\x01\x80"])
def test_a_broker_that_refuses(refusal):
    with played() as (link, broker):
        broker.accept()
        if refusal[0] == 0x90:
            broker.say(CONNACK)
        broker.say(refusal)
        assert link.state == DOWN and link.trouble and link.connections == 0


def test_packets_that_come_before_their_time():
    """A subscription is acknowledged after it was sent, and a connection greeted once."""
    with played() as (link, broker):
        broker.accept()
        broker.say(b"\x90\x06\x00\x01\x01\x01\x01\x01")
        assert link.is_connecting()
        broker.say(CONNACK)
        broker.say(CONNACK)
        assert link.state == DOWN and "unexpected greeting" in link.trouble


SPLITS = range(1, 20)


@pytest.mark.parametrize("piece", SPLITS)
def test_a_message_too_large_is_acknowledged_under_its_id_however_it_comes(piece):
    """Its id lies behind the topic; every way to cut the packet leads to the same acknowledgement, and to the next message."""
    topic = wire.topic("cam", "reply")
    large = published(topic, b"z" * 150, 0x32, b"\x12\x34")
    with played() as (link, broker):
        broker.greet()
        for n in range(0, len(large), piece):
            broker.say(large[n : n + piece])
        assert broker.packet() == (0x40, b"\x12\x34") and link.oversize == 1
        broker.say(published(topic, b"ok", 0x32, b"\x00\x07"))
        assert broker.packet() == (0x40, b"\x00\x07")
        assert broker.replies == [b"ok"] and link.oversize == 1 and link.connections == 1


def test_a_message_too_large_without_an_id_is_passed_over():
    topic = wire.topic("cam", "reply")
    with played() as (link, broker):
        broker.greet()
        broker.say(published(topic, b"z" * 150) + published(topic, b"ok"))
        broker.say(published(topic, b"end"))
        assert until(lambda: (broker.poll(), len(broker.replies))[1] == 2, 20) and link.oversize == 1
        assert broker.replies == [b"ok", b"end"] and broker.data == b""


@pytest.mark.parametrize("piece", SPLITS)
def test_messages_come_whole_from_any_pieces(piece):
    topic = wire.topic("cam", "reply")
    stream = b"".join(published(topic, bytes([n]) * n) for n in range(1, 9))
    with played() as (link, broker):
        broker.greet()
        for n in range(0, len(stream), piece):
            broker.sock.sendall(stream[n : n + piece])
            broker.poll(1)
        assert until(lambda: (broker.poll(), len(broker.replies))[1] == 8, 20)
        assert broker.replies == [bytes([n]) * n for n in range(1, 9)] and link.oversize == 0


class Hesitant:
    """A socket of TLS: each other call raises an error that means "not now"."""

    def __init__(self, sock, error):
        self.sock, self.error, self.calls = sock, error, {"recv": 0, "send": 0}
        self.fileno, self.close = sock.fileno, sock.close

    def hesitate(self, call):
        self.calls[call] += 1
        if self.calls[call] % 2:
            raise OSError(self.error, "not now")

    def recv_into(self, space):
        self.hesitate("recv")
        return self.sock.recv_into(space)

    def send(self, data):
        self.hesitate("send")
        return self.sock.send(data)


@pytest.mark.parametrize("error", [errno.EAGAIN, ssl.SSL_ERROR_WANT_READ, ssl.SSL_ERROR_WANT_WRITE])
def test_a_socket_that_hesitates_loses_nothing(error):
    tls = SimpleNamespace(wrap_socket=lambda sock, **_: Hesitant(sock, error))
    with played(tls=tls) as (link, broker):
        broker.greet()
        broker.say(published(wire.topic("cam", "reply"), b"ok"))
        assert until(lambda: broker.poll() or broker.replies, 20) and broker.replies == [b"ok"] and link.is_connected()


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(12, "ENOMEM"), "ENOMEM"),  # of MBEDTLS_ERR_SSL_ALLOC_FAILED
        (ValueError("The certificate is not correctly signed by the trusted CA\n"), "not correctly signed"),
        (OSError(-29312, "MBEDTLS_ERR_SSL_CONN_EOF"), "CONN_EOF"),
        (OSError(-30592), "-30592"),  # without memory for its name
        (MemoryError("memory allocation failed, allocating 400 bytes"), "memory allocation failed"),  # of wrap_socket() alone
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.parametrize("calls", ["wrap_socket", "send", "recv"])
def test_every_error_of_a_boards_tls_ends_the_attempt_and_is_told(calls, error, words):
    """The errors of extmod/modtls_mbedtls.c, MicroPython 1.24 to 1.28. The next attempt comes."""
    if isinstance(error, MemoryError):
        calls = "wrap_socket"

    def fail(*_, **__):
        raise error

    class Failing(Hesitant):
        def hesitate(self, call):
            if call == calls:
                raise error

    wrap = fail if calls == "wrap_socket" else lambda sock, **_: Failing(sock, 0)
    with played(tls=SimpleNamespace(wrap_socket=wrap)) as (link, broker):
        assert until(lambda: (link.receive(0), link.failures)[1] == 1, 20)
        assert words in link.trouble and link.state == DOWN
        assert until(lambda: (link.receive(0), link.failures)[1] == 2, 20)


def test_a_length_without_an_end_ends_the_connection():
    with played() as (link, broker):
        broker.greet()
        broker.say(b"\x30\xff\xff\xff\xff\x01")
        assert link.state == DOWN and "without an end" in link.trouble


def test_an_attempt_without_an_answer_ends(monkeypatch):
    clock = [0]
    monkeypatch.setattr("h2t2.link.mqtt.ticks_ms", lambda: clock[0])
    with played(deadline_ms=500) as (link, broker):
        broker.accept()
        clock[0] = 500
        link.receive(0)
        assert link.is_connecting()
        clock[0] = 501
        link.receive(0)
        assert link.state == DOWN and "no answer in 500 ms" in link.trouble and link.failures == 1


def test_pings_and_a_silent_broker(monkeypatch):
    clock = [0]
    monkeypatch.setattr("h2t2.link.mqtt.ticks_ms", lambda: clock[0])
    with played(keep_alive=10) as (link, broker):
        broker.greet()
        clock[0] = 5000
        link.receive(0)
        clock[0] = 5001
        assert broker.packet() == (0xC0, b"")
        clock[0] = 15000
        link.receive(0)
        assert link.state == UP
        clock[0] = 15001
        link.receive(0)
        assert link.state == DOWN and "nothing heard for 15001 ms" in link.trouble


def test_open_waits_for_the_subscription_and_tells_why_there_is_none():
    with played(deadline_ms=300) as (link, broker), pytest.raises(OSError, match="broker 127.0.0.1:.*no answer"):
        link.open()
    with played() as (link, broker):
        thread = threading.Thread(target=_serve, args=(broker,))
        thread.start()
        link.open(20000)
        thread.join(20)
        assert link.is_connected()


def _serve(broker):
    """Greet a link that polls by itself."""
    broker.server.settimeout(20)
    broker.sock, _ = broker.server.accept()
    broker.sock.settimeout(20)
    broker.sock.recv(4096)
    broker.sock.sendall(CONNACK)
    subscription = broker.sock.recv(4096)
    broker.sock.sendall(b"\x90\x06" + subscription[2:4] + b"\x01" * 4)

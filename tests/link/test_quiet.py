"""MqttLink on a network that a test plays, in the test's own time: keep-alive, options of the socket, what it is asleep to."""

import errno
import select
import socket
import types

import pytest
from ports.played import play
from ports.world import RP2040
from scripted import running, set_clock

from h2t2.link import mqtt
from h2t2.link.mqtt import MqttLink
from h2t2.link.serial import SerialLink
from h2t2.node.sleep import Sleep

CONNACK, PINGRESP = bytes([0x20, 2, 0, 0]), bytes([0xD0, 0])


class Broker:
    """One that greets, takes the subscription and answers pings; it tells nothing else."""

    def __init__(self, now):
        self.now, self.connections, self.pings, self.options, self.waiting, self.mute = now, 0, [], [], b"", False

    def socket(self, *_):
        self.connections += 1
        self.waiting = b""
        return self

    def connect(self, _):
        raise OSError(errno.EINPROGRESS)

    def setsockopt(self, *option):
        self.options.append(option)

    def setblocking(self, _):
        pass

    def close(self):
        pass

    def write(self, data):
        kind = data[0] & 0xF0
        if kind == 0x10:
            self.waiting += CONNACK
        elif kind == 0x80:
            topics = bytes(data).count(b"h2t2")
            self.waiting += bytes([0x90, 2 + topics, data[2], data[3]]) + bytes(topics)
        elif kind == 0xC0:
            self.pings.append(self.now[0])
            self.waiting += b"" if self.mute else PINGRESP
        return len(data)

    def readinto(self, space):
        n = min(len(space), len(self.waiting))
        if not n:
            raise OSError(errno.EAGAIN)
        space[:n], self.waiting = self.waiting[:n], self.waiting[n:]
        return n

    def poll(self, wait_ms):
        if self.waiting or self.link.state == mqtt.CONNECTING:
            return [(self, select.POLLIN | select.POLLOUT)]
        self.now[0] += max(1, wait_ms)
        return []

    def register(self, *_):
        pass


pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def quiet(monkeypatch):
    """(link, broker, now): a link in virtual time."""
    now = [1000]
    broker = Broker(now)
    set_clock(monkeypatch, lambda: now[0] % 2**30)
    monkeypatch.setattr(mqtt, "ticks_ms", lambda: now[0] % 2**30)
    monkeypatch.setattr(mqtt, "sleep", lambda s: now.__setitem__(0, now[0] + round(1000 * s)))
    names = {name: getattr(select, name) for name in ("POLLIN", "POLLOUT", "POLLHUP", "POLLERR")}
    monkeypatch.setattr(mqtt, "select", types.SimpleNamespace(poll=lambda: broker, **names))
    fake = types.SimpleNamespace(socket=broker.socket, getaddrinfo=lambda *_: [(0, 0, 0, "", ("b", 1))], SOCK_STREAM=1)
    monkeypatch.setattr(mqtt, "socket", fake)
    link = broker.link = MqttLink("b", 1, "dev", 1, 9)
    return link, broker, now


def advance(link, now, seconds, each=lambda: None):
    end = now[0] + 1000 * seconds
    while now[0] < end:
        link.receive(1000)
        each()


def test_ten_minutes_without_an_offload_are_one_connection(quiet):
    """It tells its state every ten seconds, which nobody answers: what it sends proves nothing about what it could hear."""
    link, broker, now = quiet
    said = [0]

    def each():
        if now[0] - said[0] >= 10000:
            said[0] = now[0]
            link.report("{}")

    advance(link, now, 600, each)
    assert link.is_connected() and broker.connections == link.connections == 1
    gaps = [b - a for a, b in zip(broker.pings, broker.pings[1:])]
    assert len(broker.pings) > 30 and max(gaps) < 20000


def test_a_broker_that_answers_no_ping_is_given_up(quiet):
    link, broker, now = quiet
    advance(link, now, 5)
    assert link.is_connected()
    broker.mute = True
    advance(link, now, 60, lambda: link.report("{}"))
    assert broker.connections > 1


def test_nodelay_is_the_ports_own_number(quiet, monkeypatch):
    """lwIP's is 64: 1 sets nothing there, and prints a warning at each connection."""
    link, broker, now = quiet
    assert socket.TCP_NODELAY == mqtt.NODELAY
    monkeypatch.setattr(mqtt, "NODELAY", 64)
    advance(link, now, 5)
    assert broker.options == [(6, 64, 1)]


def test_a_node_does_not_sleep_while_it_connects(monkeypatch):
    """Between two samples there is time to sleep, but an attempt is under way: asleep it would never end."""
    world = play(monkeypatch, RP2040)
    service, node, decisions, _ = running(bins=(5,) * 3)
    service.sleep = Sleep("light", world.machine)
    node.samples = 1
    node.link.is_connecting = lambda: True
    assert not service._slept(60000) and not world.slept
    node.link.is_connecting = lambda: False
    assert service._slept(60000) and world.slept == 60000


def test_a_link_says_when_an_attempt_is_under_way(quiet):
    link, broker, now = quiet
    assert not link.is_connecting()
    link.receive(0)
    assert link.is_connecting()
    advance(link, now, 5)
    assert link.is_connected() and not link.is_connecting()


def test_every_link_has_every_member_of_the_interface():
    """A node may ask any of them for anything that Link declares."""

    class Line:
        def read(self):
            return b""

        def wait(self, _):
            pass

        def write(self, _):
            pass

        close = wait

    line = SerialLink(Line(), "tiny")
    assert line.retain("t", "{}") is False and line.also_heard() is None and not line.is_connecting()
    assert (line.workers(), line.is_connected(), line.trouble) == (1, True, "")

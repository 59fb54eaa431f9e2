"""MqttLink on a network that a test plays, in the test's own time: keep-alive, options of the socket, what it is asleep to."""

import socket

import pytest
from ports.played import Broker, play
from ports.world import RP2040
from scripted import running, set_clock

from h2t2.link import mqtt
from h2t2.link.mqtt import UP, MqttLink
from h2t2.link.serial import SerialLink
from h2t2.node.sleep import Sleep


class Time:
    """Milliseconds that pass when somebody waits."""

    def __init__(self):
        self.now = 1000

    def pass_ms(self, ms):
        self.now += ms

    def ticks(self):
        return self.now % 2**30


pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def quiet(monkeypatch):
    """(link, broker, time): a link in virtual time."""
    time = Time()
    broker = Broker(time).install(monkeypatch)
    set_clock(monkeypatch, time.ticks)
    monkeypatch.setattr(mqtt, "ticks_ms", time.ticks)
    monkeypatch.setattr(mqtt, "sleep", lambda s: time.pass_ms(round(1000 * s)))
    link = broker.link = MqttLink("b", 1, "dev", 1, 9)
    return link, broker, time


def advance(link, time, seconds, each=lambda: None):
    end = time.now + 1000 * seconds
    while time.now < end:
        link.receive(1000)
        each()


def test_ten_minutes_without_an_offload_are_one_connection(quiet):
    """It tells its state every ten seconds, which nobody answers: what it sends proves nothing about what it could hear."""
    link, broker, time = quiet
    said = [0]

    def each():
        if time.now - said[0] >= 10000:
            said[0] = time.now
            link.report("{}")

    advance(link, time, 600, each)
    assert link.is_connected() and len(broker.connections) == link.connections == 1
    gaps = [b - a for a, b in zip(broker.pings, broker.pings[1:])]
    assert len(broker.pings) > 30 and max(gaps) < 20000


def test_a_broker_that_answers_no_ping_is_given_up(quiet):
    link, broker, time = quiet
    advance(link, time, 5)
    assert link.is_connected()
    broker.mute = True
    advance(link, time, 60, lambda: link.report("{}"))
    assert len(broker.connections) > 1


def test_nodelay_is_the_ports_own_number(quiet, monkeypatch):
    """lwIP's is 64: 1 sets nothing there, and prints a warning at each connection."""
    link, broker, time = quiet
    assert socket.TCP_NODELAY == mqtt.NODELAY
    monkeypatch.setattr(mqtt, "NODELAY", 64)
    advance(link, time, 5)
    assert broker.options == [(6, 64, 1)]


def test_a_node_does_not_sleep_while_it_connects(monkeypatch):
    """Between two samples there is time to sleep, but an attempt is under way: asleep it would never end."""
    world = play(monkeypatch, RP2040)
    service, node, decisions, _ = running(bins=(5,) * 3)
    service.sleep = Sleep("light", world.machine)
    node.samples = 1
    node.link.is_connecting = lambda: True
    assert not service.sleep.take_turn(60000, service) and not world.slept
    node.link.is_connecting = lambda: False
    assert service.sleep.take_turn(60000, service) and world.slept == 60000


def test_a_link_says_when_an_attempt_is_under_way(quiet):
    link, broker, time = quiet
    assert not link.is_connecting()
    link.receive(0)
    assert link.is_connecting()
    advance(link, time, 5)
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
    assert not line.is_connecting()
    assert (line.workers(), line.is_connected(), line.trouble) == (1, True, "")


class BrokenSocket:
    """A socket whose connection has ended, which only a write notices."""

    def send(self, data):
        raise OSError("the connection was reset")

    def close(self):
        pass


@pytest.mark.parametrize("size", [10, 5000])
def test_a_connection_that_ends_while_a_message_is_written_raises_nothing(size):
    link = MqttLink("b", 1, "dev", 1, 9)
    link.state, link.sock = UP, BrokenSocket()
    link.report("x" * size)
    assert not link.is_connected() and not link.pending and link.trouble == "the connection was reset"

"""The look-up of a broker's name: one question after another, nothing waits; the answers that a name server may give."""

import socket
import sys
from types import SimpleNamespace

import pytest
from name_server import NameServer
from support import until

from h2t2.link import mqtt, names
from h2t2_tools.fleet.broker import free_port

QUERY = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x06broker\x04test\0\0\x01\0\x01"


@pytest.fixture
def server(monkeypatch):
    with NameServer("127.0.0.1") as server:
        monkeypatch.setattr(names, "PORT", server.port)
        monkeypatch.setitem(sys.modules, "network", SimpleNamespace(ipconfig=lambda what: "127.0.0.1"))
        yield server


def answer(records, flags=0x8180, count=1, query=QUERY):
    head = query[:2] + flags.to_bytes(2, "big") + b"\0\x01" + count.to_bytes(2, "big") + bytes(4)
    return head + query[12:] + records


ADDRESS = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\x02\x02"


def test_an_address_is_found_behind_aliases_and_other_records():
    alias = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x07\x04real\xc0\x13"
    text = b"\x04real\xc0\x13\0\x10\0\x01\0\0\0\x3c\0\x02\x01x"
    assert names.answer(answer(ADDRESS), QUERY) == "10.0.2.2"
    assert names.answer(answer(ADDRESS, flags=0x8500), QUERY) == "10.0.2.2"  # of the zone's own server
    assert names.answer(answer(alias + text + ADDRESS, count=3), QUERY) == "10.0.2.2"


def test_a_record_of_four_bytes_that_is_no_address_is_passed_over():
    other = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x02ab\0"
    assert names.answer(answer(other + ADDRESS, count=2), QUERY) == "10.0.2.2"


def test_a_name_server_is_asked_again_after_a_while_and_not_before(server, monkeypatch):
    clock, asked = [0], []
    monkeypatch.setattr(names, "ticks_ms", lambda: clock[0])
    monkeypatch.setattr(names.Lookup, "_ask", lambda self: (asked.append(clock[0]), setattr(self, "asked_at", clock[0])))
    lookup = names.Lookup("broker.test")
    for clock[0] in (1, 999, 1000, 1001, 2000, 1990):  # the last: the clock has begun anew
        assert lookup.address(0) is None
    assert asked == [0, 1000, 2000, 1990]


@pytest.mark.parametrize(
    "data",
    [answer(ADDRESS)[:7], b"", b"\x12\x35" + answer(ADDRESS)[2:], answer(ADDRESS, flags=0x0100), QUERY,
     answer(ADDRESS, query=QUERY.replace(b"broker", b"badger"))],
)  # fmt: skip
def test_what_is_no_answer_to_the_question_is_passed_over(data):
    assert names.answer(data, QUERY) is None


@pytest.mark.parametrize(
    "data",
    [answer(b"", count=0), answer(b"", 0x8183, 0), answer(b"", count=9), answer(b"\xff" * 90, count=4), answer(ADDRESS[:-1]),
     answer(ADDRESS[:6])],
)  # fmt: skip
def test_an_answer_without_an_address_ends_the_attempt(data):
    with pytest.raises(OSError, match="knows no address"):
        names.answer(data, QUERY)


def test_a_silent_name_server_blocks_nothing_and_is_asked_again(server, monkeypatch):
    """The link polls on, says why it waits, and connects once there is an answer."""
    monkeypatch.setattr(names, "AGAIN_MS", 5)
    server.silent = True
    link = names.MqttLink("broker.test", 1, "d", 1, 1, deadline_ms=50)
    with pytest.raises(OSError, match="no answer from the name server in 50 ms"):
        link.open(5000)
    assert server.questions > 1 and not link.is_connecting()
    link.close()


@pytest.mark.parametrize("host", ["::1", "printer.local"])
def test_a_broker_that_the_name_server_cannot_know_is_not_asked_for(server, host, monkeypatch):
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", free_port()))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
    link = names.MqttLink(host, 1, "d", 1, 1)
    with pytest.raises(OSError, match="refused"):
        link.open(1000)
    assert server.questions == 0


def test_the_last_address_serves_while_the_name_server_is_silent(server, broker):
    """Found once, lost its broker for long enough to look its name up again: that fails, and the old address is tried."""
    link = names.MqttLink("broker.test", broker.port, "d", 1, 1)
    link.backoff.draw = lambda: 1
    link.open(5000)
    link.deadline_ms = 100
    assert server.questions == 1 and link.last_address[-1] == ("127.0.0.1", broker.port)
    server.silent = True
    broker.stop(kill=True)
    assert until(lambda: link.receive(1) is None and server.questions > 1)
    broker.start()
    assert until(lambda: link.receive(1) is None and link.is_connected())
    link.close()


@pytest.mark.parametrize(
    "network", [None, SimpleNamespace(ipconfig=lambda what: "fd00::1")], ids=["the port tells of none", "it is one of IPv6"]
)
def test_a_name_server_that_cannot_be_asked_leaves_the_name_to_the_system(monkeypatch, broker, localhost, network):
    monkeypatch.setitem(sys.modules, "network", network)
    link = names.MqttLink("localhost", broker.port, "d", 1, 1)
    link.open(5000)
    assert link.is_connected() and link.address[0] in (socket.AF_INET, socket.AF_INET6) and link.last_address is None
    link.close()


def test_what_can_be_no_name_is_trouble_and_no_exception(server):
    link = names.MqttLink("a" * 300, 1, "d", 1, 1)
    assert link.receive(0) is None and link.trouble and not link.is_connecting()


def test_each_address_of_a_name_is_tried(monkeypatch, broker):
    """localhost is ::1 and 127.0.0.1 on Debian, and a broker may listen on the second alone."""
    refused, good = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in (free_port(), broker.port)]
    for addresses in ([refused, good], [good, refused], [(99, *refused[1:]), good]):
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)  # noqa: B023
        link = mqtt.MqttLink("two", 1, "d", 1, 1)
        link.open(5000)
        assert link.is_connected() and link.address == good
        link.close()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [refused, refused])
    link = mqtt.MqttLink("two", 1, "d", 1, 1)
    with pytest.raises(OSError, match="the connection is refused"):
        link.open(5000)

"""The two MQTT links, paho's and the boards' own: one interface, the same behaviour, through a real Mosquitto."""

import os
import signal
import threading
import time
from contextlib import closing

import pytest
from support import children, subscribed, until, worker

import h2t2.clock
import h2t2.link.mqtt
from h2t2.cpython.mqtt_session import make_client
from h2t2.cpython.paho import PahoLink
from h2t2.link import presence, wire
from h2t2.link.backoff import FIRST_MS, LONGEST_MS, STEADY_MS, Backoff
from h2t2.link.link import Link
from h2t2.link.mqtt import MqttLink
from h2t2_lab.proxy import Faults, Proxy
from h2t2_tools.common import pairs
from h2t2_tools.fleet.broker import free_port, parse

MODEL, BOOT = 2, 77


@pytest.fixture(params=[MqttLink, PahoLink])
def kind(request):
    return request.param


@pytest.fixture
def link(kind, broker):
    """A link of the device "dev" that is connected."""
    with closing(kind(broker.host, broker.port, "dev", MODEL, BOOT)) as link:
        link.open()
        yield link


@pytest.fixture
def publish(broker):
    """publish(topic, payload, qos=1, retain=False): what somebody else says to a device."""
    client = make_client("somebody")
    client.connect(broker.host, broker.port)
    client.loop_start()

    def say(topic, payload, qos=1, retain=False):
        assert until(client.is_connected)  # it comes back by itself after a broker's restart, like everybody else
        client.publish(topic, payload, qos, retain).wait_for_publish(5)

    yield say
    client.disconnect()
    client.loop_stop()


def connected(link, state=True, seconds=10):
    """Poll a link, as a node does, until it is up (or down)."""
    end = time.monotonic() + seconds
    while link.is_connected() != state and time.monotonic() < end:
        link.receive(20)
    return link.is_connected() == state


@pytest.mark.slow
def test_offloads(kind, broker_url):
    """Requests and replies through each kind of broker and a real worker."""
    host, port = parse(broker_url)
    assert pairs.load("digits").info.model_id == MODEL
    with worker(broker_url):
        link = kind(host, port, "dev", MODEL, BOOT)
        link.open()
        for n in range(1, 40):
            assert link.workers() == 1 and link.send(wire.encode_request(MODEL, 5, n, (8, 8, 1), bytes(64)))
            assert wire.decode_reply(link.receive(5000))[1:3] == (5, n)
        assert link.receive(0) is None and link.refused == link.dropped == 0
        link.close()
        assert not link.send(b"x") and link.refused == 1


@pytest.mark.whole
def test_it_comes_back_and_resubscribes(link, broker, publish):
    for n in range(3):
        broker.stop(kill=True)
        assert connected(link, False) and not link.send(b"x")
        broker.start()
        assert connected(link) and link.connections == n + 2
    publish(wire.topic("dev", "reply"), b"again")
    assert link.receive(5000) == b"again"
    link.renew()
    assert connected(link, False) and connected(link) and link.connections == 5


def test_it_says_why_it_cannot(kind, broker):
    link = kind("127.0.0.1", free_port(), "dev", MODEL, BOOT, deadline_ms=1500)
    with pytest.raises(OSError, match=r"broker 127.0.0.1:\d+: "):
        link.open()
    link.close()
    proxy = Proxy(broker.host, broker.port, Faults(stall=True))
    link = kind("127.0.0.1", proxy.port, "dev", MODEL, BOOT, deadline_ms=400)
    with pytest.raises(OSError, match="no answer"):
        link.open()
    assert not link.send(b"x") and link.receive(0) is None
    link.close()
    proxy.stop()


@pytest.mark.whole
def test_a_silent_broker_is_given_up(kind, broker):
    """Connected, then nothing passes: keep-alive notices, nothing blocks."""
    proxy = Proxy(broker.host, broker.port, Faults())
    link = kind("127.0.0.1", proxy.port, "dev", MODEL, BOOT, keep_alive=2)
    link.open()
    proxy.faults.stall = True
    # a wait would end only when the keep-alive notices the stall, so it would leave the link disconnected
    assert link.receive(0) is None and link.is_connected()
    assert connected(link, False)
    proxy.faults.stall = False
    assert connected(link)
    link.close()
    proxy.stop()


def test_what_is_not_acknowledged_is_bounded(kind, broker):
    proxy = Proxy(broker.host, broker.port, Faults())
    link = kind("127.0.0.1", proxy.port, "dev", MODEL, BOOT)
    link.open()
    link.receive(50)
    proxy.faults.stall = True
    sent = [link.send(b"request") for _ in range(3 * PahoLink.most_unacknowledged)]
    assert sum(sent) <= PahoLink.most_unacknowledged and link.refused == len(sent) - sum(sent) and not sent[-1]
    link.close()
    proxy.stop()


def test_replies_nobody_takes_drop_the_oldest(link, kind, publish):
    for n in range(Link.waiting_limit + 5):
        publish(wire.topic("dev", "reply"), b"%d" % n)
        if kind is MqttLink:
            link._advance(20)
    assert until(lambda: link.dropped == 5 or (kind is MqttLink and link._advance(20)))
    got = []
    while (payload := link.receive(100)) is not None:
        got.append(int(payload))
    assert got == list(range(5, Link.waiting_limit + 5))


@pytest.mark.parametrize("sizes, qos", [((500, 200_000), 0), (range(100, 160), 1)], ids=["huge", "many"])
def test_a_packet_too_large_is_refused_before_memory_is_taken(kind, broker, publish, sizes, qos):
    """It is counted, not delivered; of QoS 1, acknowledged: sixty are three times as many as a broker leaves without that."""
    with closing(kind(broker.host, broker.port, "dev", MODEL, BOOT, buffer=80)) as link:
        link.open()
        for n, size in enumerate(sizes):
            publish(wire.topic("dev", "reply"), bytes(size), qos)
            assert until(lambda n=n: link.receive(5) is None and link.oversize > n and link.is_connected())
        publish(wire.topic("dev", "reply"), b"small")
        assert link.receive(5000) == b"small" and link.connections == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, size", [("desk", 400), *(pytest.param("w" * 400, size, marks=pytest.mark.whole) for size in (40, 4000))]
)
def test_a_retained_message_too_large_takes_nobody_off_the_broker(kind, broker, publish, name, size):
    """On a topic that every device of the model listens to: its payload, its worker's name, or both are too long."""
    publish(presence.worker_topic(MODEL, name), bytes(size), retain=True)
    publish(presence.worker_topic(MODEL, "good"), b"{}", retain=True)
    with closing(kind(broker.host, broker.port, "dev", MODEL, BOOT)) as link:
        link.open()
        assert until(lambda: link.receive(20) is None and link.workers() == 1 and link.oversize == 1)
        assert not until(lambda: link.receive(20) is None and link.connections > 1, 3)
        publish(wire.topic("dev", "reply"), b"small")
        assert link.receive(5000) == b"small"


def test_a_connection_that_ends_within_seconds_does_not_end_the_waits():
    waits = Backoff(1)
    for _ in range(5):
        waits.draw()
        waits.after_connection(STEADY_MS - 1, False)
    assert waits.draw() >= 16 * FIRST_MS // 2
    waits.after_connection(STEADY_MS, False)
    assert waits.draw() <= FIRST_MS
    waits.after_connection(STEADY_MS, True)
    assert waits.draw() >= LONGEST_MS // 2


def test_commands_are_not_replies(link, publish):
    publish(wire.topic("dev", "command"), b"{}")
    publish(wire.topic("dev", "reply"), b"reply")
    assert link.receive(5000) == b"reply" and link.receive(50) is None
    assert link.command() == b"{}" and link.command() is None


def test_retained_commands_are_ignored(kind, broker, publish):
    """Left on the broker long ago, they would be carried out at every connection."""
    publish(wire.topic("dev", "command"), b'{"reset": true}', retain=True)
    with closing(kind(broker.host, broker.port, "dev", MODEL, BOOT)) as link:
        link.open()
        publish(wire.topic("dev", "reply"), b"after")
        assert link.receive(5000) == b"after" and link.command() is None
        publish(wire.topic("dev", "command"), b"now")
        assert until(lambda: link.receive(20) is None and link.command() == b"now")


@pytest.mark.whole
def test_workers_come_and_go(kind, broker):
    """A worker is there when its first request could be answered, and gone with its connection, however that ends."""
    link = kind(broker.host, broker.port, "dev", MODEL, BOOT)
    link.open()
    assert link.workers() == 0

    def count(n):
        return until(lambda: link.receive(20) is None and link.workers() == n)

    with worker(broker.url), worker(broker.url, "breast_cancer") as other:
        assert count(1)  # breast_cancer's is of another model
        with worker(broker.url) as second:
            assert count(2)
            for process in children(second.pid):
                os.kill(process, signal.SIGKILL)
            assert count(1) and count(2)  # its parent starts another
            announced = link.announcements
        assert count(1) and announced >= 3
        other.send_signal(signal.SIGTERM)
    assert count(0)
    fresh = kind(broker.host, broker.port, "later", MODEL, BOOT)
    fresh.open()
    assert fresh.workers() == 0  # nothing retained is left
    for one in (link, fresh):
        one.close()


@pytest.mark.whole
def test_two_devices_of_one_name_are_noticed_on_both_sides(kind, broker):
    """Each takes the other's connection away: both say so, and from then on wait long between two attempts."""
    links = [kind(broker.host, broker.port, "twin", MODEL, boot) for boot in (5, 6)]

    def both_know():
        for link in links:
            link.receive(5)
        return all(link.has_namesake() for link in links)

    assert until(both_know, 40)
    before = [link.connections for link in links]
    end = time.monotonic() + 5
    while time.monotonic() < end:
        for link in links:
            link.receive(5)
    assert sum(link.connections for link in links) - sum(before) <= 2
    for link in links:
        link.close()
    alone = kind(broker.host, broker.port, "twin", MODEL, 7)
    alone.open()
    for _ in range(20):
        alone.receive(10)
    assert not alone.has_namesake()  # what a former start has left is no namesake
    alone.close()


def test_packet_ids_wrap_at_65535(link, kind, publish):
    """Just below the wrap: requests go on, and every one is acknowledged."""
    if kind is MqttLink:
        link.packet_id = 65530
    else:
        link.client._last_mid = 65530
    for _ in range(12):
        assert link.send(b"x")
        link.receive(5)

    def unacknowledged():
        link.receive(10)
        return link.unacknowledged if kind is MqttLink else link.unacknowledged()

    assert until(lambda: unacknowledged() <= 0)
    last = link.packet_id if kind is MqttLink else link.client._last_mid
    assert 1 <= last < 20


def test_status_is_retained_with_a_last_will(kind, broker):
    seen, topics = [], [wire.topic("cellar", "status")]

    def take(message):
        seen.append((bytes(message.payload), message.retain))

    with subscribed(broker, topics, take):
        proxy = Proxy(broker.host, broker.port, Faults())
        with closing(kind("127.0.0.1", proxy.port, "cellar", MODEL, BOOT)) as link:
            link.open()
            assert until(lambda: (b"online 77", False) in seen)
            proxy.stop()  # the device vanishes without a word
            assert until(lambda: (b"offline 77", False) in seen)
        with subscribed(broker, topics, take):
            assert until(lambda: (b"offline 77", True) in seen)


@pytest.mark.whole
def test_signals_do_not_lengthen_a_wait(broker):
    """A signal each millisecond, some of them at the very end of a wait: every one of 200 waits of 20 ms ends."""
    link = PahoLink(broker.host, broker.port, "dev", MODEL, BOOT)
    link.open()
    before = signal.signal(signal.SIGPROF, lambda *_: None)
    alarms = threading.Event()

    def disturb():
        while not alarms.wait(0.001):
            os.kill(os.getpid(), signal.SIGPROF)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        assert all(link.receive(20) is None for _ in range(200))
    finally:
        alarms.set()
        thread.join()
        signal.signal(signal.SIGPROF, before)
        link.close()


@pytest.mark.parametrize("jump", [600000, -600000])
def test_a_clock_that_jumps_during_a_wait_ends_it(monkeypatch, broker, jump):
    """The board's link waits by its own clock: ten minutes back in the middle of 300 ms must not make ten minutes of them."""
    link = MqttLink(broker.host, broker.port, "dev", MODEL, BOOT)
    link.open()
    true, reads = h2t2.clock.ticks_ms, []

    def jumping():
        reads.append(0)
        return (true() + (jump if len(reads) > 3 else 0)) % 2**30

    for module in (h2t2.clock, h2t2.link.mqtt):
        monkeypatch.setattr(module, "ticks_ms", jumping)
    assert link.receive(300) is None
    assert 3 < len(reads) < 100, "the wait read the clock after its jump, and then ended"
    link.close()


def test_waits_double_with_jitter_and_end_at_the_longest():
    waits = [Backoff(seed) for seed in range(50)]
    wanted = FIRST_MS
    for _ in range(10):
        drawn = [one.draw() for one in waits]
        assert all(wanted // 2 <= wait <= wanted for wait in drawn) and len(set(drawn)) > 30
        wanted = min(2 * wanted, LONGEST_MS)
    waits[0].reset()
    assert waits[0].draw() <= FIRST_MS

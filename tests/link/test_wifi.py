"""The radio on a board with the ports' rules (ports/world.py), in virtual time: joining, losing, the clock, what is told."""

import errno
import struct
import sys
import types

import pytest
from ports.played import Broker, play
from ports.world import ESP32, LONG, RADIO, RP2040

import h2t2.link
from h2t2.clock import ticks_diff
from h2t2.link import names
from h2t2.link.mqtt import MqttLink
from h2t2.node import start
from h2t2_tools.fleet.config import NodeConfig

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=[RP2040, ESP32])
def chip(request):
    return request.param


def station(monkeypatch, chip, password="secret", **options):
    """(world, Station, lines of its log)."""
    world = play(monkeypatch, chip, **options)
    from h2t2.link.wifi import Station

    said = []
    return world, Station("home", password, 1, world.network.WLAN.PM_NONE, said.append), said


def advance(world, station, seconds, each=lambda: None):
    """Let time pass; no call of the station's may take any of it."""
    end = world.now + 1000 * seconds
    while world.now < end:
        before = world.now
        station.advance()
        assert world.now - before <= 2  # ticks that were looked at
        each()
        world.pass_ms(20)


def test_a_board_that_boots_before_its_access_point_joins_when_it_comes(monkeypatch, chip):
    """cyw43 gives up for good; an ESP32 goes on and raises where somebody else tries too."""
    world, radio, said = station(monkeypatch, chip, up=((90_000, LONG),))
    advance(world, radio, 80)
    assert not radio.advance() and radio.trouble == "Wi-Fi home: no such network" and said == [radio.trouble]
    attempts = [call for _, call in world.asked if call == "connect"]
    assert 3 <= len(attempts) <= 12  # it backs off
    advance(world, radio, 60)
    assert radio.advance() and radio.trouble == ""


def test_it_disconnects_before_each_attempt(monkeypatch, chip):
    world, radio, _ = station(monkeypatch, chip, up=())
    advance(world, radio, 120)
    calls = [call for _, call in world.asked]
    for n, call in enumerate(calls):
        assert call != "connect" or calls[n - 1] == "disconnect"


def test_a_connection_that_is_lost_is_joined_again(monkeypatch, chip):
    world, radio, said = station(monkeypatch, chip, up=((0, 100_000), (130_000, LONG)))
    advance(world, radio, 50)
    assert radio.advance()
    advance(world, radio, 60)
    assert not radio.advance() and said[0].startswith("Wi-Fi home: the connection is lost")
    advance(world, radio, 90)
    assert radio.advance()


def test_a_wrong_password_is_told(monkeypatch, chip):
    world, radio, said = station(monkeypatch, chip, password="wrong")
    advance(world, radio, 30)
    assert radio.trouble == "Wi-Fi home: wrong password" and said == [radio.trouble]


@pytest.mark.parametrize(
    "chip, status, reason",
    [
        (RP2040, -1, "status -1"),
        (RP2040, -2, "no such network"),
        (RP2040, -3, "wrong password"),
        (RP2040, 1, "no answer in 20 s"),  # it joins, and
        (RP2040, 2, "no answer in 20 s"),  # gets no address
        (ESP32, 2, "status 2"),
        (ESP32, 15, "wrong password"),
        (ESP32, 200, "status 200"),
        (ESP32, 201, "no such network"),
        (ESP32, 202, "wrong password"),
        (ESP32, 203, "status 203"),
        (ESP32, 204, "wrong password"),
        (ESP32, 210, "no network with a security that this board takes"),
        (ESP32, 211, "no network with a security that this board takes"),
        (ESP32, 212, "status 212"),
        (ESP32, 1000, "no answer in 20 s"),
        (ESP32, 1001, "no answer in 20 s"),
    ],
)
def test_every_status_of_the_ports_ends_an_attempt_with_its_reason(monkeypatch, chip, status, reason):
    """extmod/network_cyw43.c and ports/esp32/network_wlan.c, MicroPython 1.24 to 1.28."""
    world, radio, said = station(monkeypatch, chip)
    world.network.station.isconnected = lambda: False
    world.network.station.status = lambda: status
    advance(world, radio, 22)
    assert said[0] == "Wi-Fi home: " + reason


def test_a_status_of_the_attempt_before_does_not_end_this_one(monkeypatch):
    """An ESP32 says "no such network" of its last attempt while the next one is under way."""
    world, radio, _ = station(monkeypatch, ESP32, up=((6_000, LONG),))
    advance(world, radio, 12)
    assert radio.advance()


def test_the_radio_saves_no_power_unless_it_is_told_to(monkeypatch):
    world, radio, _ = station(monkeypatch, RP2040)
    advance(world, radio, 1)
    assert world.network.station.options == {"pm": world.network.WLAN.PM_NONE}
    world, radio, _ = station(monkeypatch, ESP32)
    radio.power = world.network.WLAN.PM_POWERSAVE
    advance(world, radio, 1)
    assert world.network.station.options == {"pm": world.network.WLAN.PM_POWERSAVE, "reconnects": 0}


def test_off_is_off_and_the_next_call_joins_again(monkeypatch, chip):
    world, radio, _ = station(monkeypatch, chip)
    advance(world, radio, 10)
    radio.off()
    assert not world.network.station.powered and not world.network.station.isconnected()
    advance(world, radio, 10)
    assert radio.advance()


class Server:
    """A time server at the other end of a UDP socket. `answers`: whether; change: what it does to a good answer."""

    def __init__(self, world):
        self.world, self.answers, self.change = world, True, lambda data: data
        self.asked, self.waiting, self.looked_up = [], [], 0

    def install(self, monkeypatch):
        from h2t2.link import ntp

        def look_up(*_):
            self.looked_up += 1
            return [(0, 0, 0, "", ("1.2.3.4", 123))]

        sockets = types.SimpleNamespace(getaddrinfo=look_up, socket=lambda *_: self, SOCK_DGRAM=2)
        monkeypatch.setattr(ntp, "socket", sockets)  # of this module alone: other threads have connections
        return self

    def setblocking(self, _):
        pass

    connect = setblocking

    def close(self):
        self.waiting = []

    def send(self, data):
        self.asked.append(self.world.now)
        assert len(data) == 48
        seconds = (self.world.utc + self.world.now) // 1000 + 2208988800
        answer = b"\x24\x02" + bytes(22) + data[40:] + bytes(8) + struct.pack("!II", seconds & 0xFFFFFFFF, 0)
        if self.answers:
            self.waiting.append(self.change(answer))

    def recv(self, _):
        if not self.waiting:
            raise OSError(errno.EAGAIN)
        return self.waiting.pop(0)


def time_server(monkeypatch, tmp_path, chip=RP2040, woken=False):
    world = play(monkeypatch, chip)
    monkeypatch.chdir(tmp_path)
    from h2t2.link.ntp import TimeServer

    server, said = Server(world).install(monkeypatch), []
    return world, server, lambda woken=woken: TimeServer("time.lan", 3, woken, log=said.append), said


def test_a_clock_is_set_once_a_server_answers_however_late(monkeypatch, tmp_path):
    """Asked after 15 to 30 s, then ever more rarely, at most every 7.5 to 15 minutes."""
    world, server, new, said = time_server(monkeypatch, tmp_path)
    server.answers = False
    clock = new()
    advance(world, clock, 7200)
    assert not clock.is_set and clock.trouble == "the clock is not set: time.lan: no answer" and len(said) == 1
    waits = [b - a for a, b in zip(server.asked, server.asked[1:])]
    assert min(waits) >= 15_000 and max(waits) <= 904_000 and len(waits) <= 16
    assert server.looked_up == len(server.asked)  # a pool gives another one each time
    server.answers = True
    advance(world, clock, 900)
    assert clock.is_set and clock.trouble == "" and abs(world.unix_ms() - world.utc - world.now) < 2000


def test_its_name_is_looked_up_without_waiting_where_the_board_can(monkeypatch, tmp_path):
    """A name server that is silent takes none of the time; one that knows no such name is told of."""
    world, server, new, _ = time_server(monkeypatch, tmp_path)
    looked_up = []

    class Lookup:
        found = None

        def __init__(self, host):
            looked_up.append(host)
            self.sock = server

        def address(self, wait_ms):
            assert wait_ms == 0
            if isinstance(self.found, OSError):
                raise self.found
            return self.found

    monkeypatch.setitem(sys.modules, "h2t2.link.names", types.SimpleNamespace(Lookup=Lookup))
    clock = new()
    advance(world, clock, 10)
    assert clock.trouble.endswith("time.lan: no answer") and not server.looked_up
    Lookup.found = OSError("no address")
    advance(world, clock, 40)
    assert clock.trouble.endswith("no address")
    Lookup.found = "1.2.3.4"
    advance(world, clock, 120)
    assert clock.is_set and server.looked_up == 1 and len(looked_up) >= 3
    clock = new()
    clock.host = "192.168.1.1"
    advance(world, clock, 2)
    assert clock.is_set and server.looked_up == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:40],
        lambda data: data[:24] + bytes(8) + data[32:],  # not to our question
        lambda data: b"\xe4" + data[1:],  # it is not set itself
        lambda data: data[:1] + b"\0" + data[2:],  # asks to be left alone
        lambda data: data[:1] + b"\x10" + data[2:],
        lambda data: b"\x23" + data[1:],  # a question
        lambda data: data[:40] + b"\xc0\0\0\0" + data[44:],  # 2002
    ],
)
def test_an_answer_that_is_none_sets_nothing(monkeypatch, tmp_path, change):
    world, server, new, _ = time_server(monkeypatch, tmp_path)
    server.change = change
    clock = new()
    advance(world, clock, 5)
    assert not clock.is_set and world.unix_ms() < 1735689600000


def test_the_era_after_2036_is_known(monkeypatch, tmp_path):
    world, server, new, _ = time_server(monkeypatch, tmp_path)
    world.utc = 2_100_000_000_000
    clock = new()
    advance(world, clock, 2)
    assert clock.is_set and world.unix_ms() // 1000 >= 2_100_000_000


def test_a_clock_that_ran_on_in_deep_sleep_is_not_asked_for_again(monkeypatch, tmp_path):
    world, server, new, _ = time_server(monkeypatch, tmp_path, ESP32)
    advance(world, new(), 2)
    assert len(server.asked) == 1
    advance(world, new(woken=True), 5000)
    assert len(server.asked) == 1
    advance(world, new(woken=False), 2)  # somebody has pressed the button: it is cheap to ask
    assert len(server.asked) == 2
    world.now += 6 * 3600 * 1000
    advance(world, new(woken=True), 2)  # its oscillator drifts
    assert len(server.asked) == 3


def radio(monkeypatch, tmp_path, chip=RP2040, tls=False, **options):
    """(world, broker, time server, Radio)."""
    world, server, new, _ = time_server(monkeypatch, tmp_path, chip)
    for name, value in options.items():
        setattr(world, name, value)
    from h2t2.link.wifi import Station, radio_class

    class Tls:
        def wrap_socket(self, sock, **_):
            return sock

    broker = Broker(world).install(monkeypatch)
    station = Station("home", "secret", 1, log=lambda _: None)
    link = broker.link = radio_class(MqttLink)(station, new, "b", 1883, "dev", 1, 9, tls=Tls() if tls else None)
    return world, broker, server, link


def poll(world, link, seconds):
    end = world.now + 1000 * seconds
    while world.now < end:
        link.receive(50)


def test_the_broker_is_reached_once_the_network_is(monkeypatch, tmp_path, chip):
    world, broker, server, link = radio(monkeypatch, tmp_path, chip, up=((40_000, 100_000), (160_000, LONG)))
    assert link.is_connecting()
    poll(world, link, 30)
    assert not broker.connections and link.trouble == "Wi-Fi home: no such network"
    poll(world, link, 60)
    assert link.is_connected() and len(broker.connections) == 1 and link.trouble == ""
    poll(world, link, 30)
    assert not link.is_connected() and "lost" in link.trouble or "no such" in link.trouble
    poll(world, link, 90)
    assert link.is_connected() and link.connections == 2
    assert len(server.asked) == 1


@pytest.mark.whole
def test_the_time_servers_module_is_in_memory_only_while_it_is_asked(monkeypatch, tmp_path):
    """It comes back after six hours; what looked its name up goes too, where the broker has none."""
    world, broker, server, link = radio(monkeypatch, tmp_path)
    link.host = "192.168.1.1"
    monkeypatch.setitem(sys.modules, "h2t2.link.names", types.SimpleNamespace())
    monkeypatch.setattr(h2t2.link, "names", 1, raising=False)
    assert "h2t2.link.ntp" in sys.modules
    poll(world, link, 10)
    assert link.is_connected() and not {"h2t2.link.ntp", "h2t2.link.names"} & {*sys.modules}
    assert not hasattr(h2t2.link, "ntp") and len(server.asked) == 1
    poll(world, link, 6 * 3600)
    assert len(server.asked) == 2 and link.time_server is None
    h2t2.link.names = 1  # for monkeypatch to remove


def test_tls_waits_for_the_clock_and_nothing_else_does(monkeypatch, tmp_path):
    world, broker, server, link = radio(monkeypatch, tmp_path, tls=True)
    server.answers = False
    poll(world, link, 60)
    assert not broker.connections and link.trouble.startswith("the clock is not set: time.lan") and not link.is_connecting()
    server.answers = True
    poll(world, link, 120)
    assert link.is_connected()
    world, broker, server, link = radio(monkeypatch, tmp_path)
    server.answers = False
    poll(world, link, 10)
    assert link.is_connected()


def test_open_says_why_there_is_no_connection(monkeypatch, tmp_path):
    world, broker, server, link = radio(monkeypatch, tmp_path, up=())
    with pytest.raises(OSError, match="no answer"):
        link.open(1000)
    assert link.is_connecting()
    with pytest.raises(OSError, match="no such network"):
        link.open(10_000)
    assert not link.is_connecting()


def test_closed_it_is_off_and_connects_again_when_it_is_polled(monkeypatch, tmp_path, chip):
    world, broker, server, link = radio(monkeypatch, tmp_path, chip)
    poll(world, link, 10)
    lead = link.lead_ms
    link.close()
    assert not world.network.station.powered
    world.pass_ms(60_000)
    began = world.now
    while not link.is_connected():
        link.receive(20)
    assert world.now - began < 3000 and link.lead_ms < lead  # measured


def test_a_radio_of_a_configuration(monkeypatch, tmp_path):
    world, *_ = time_server(monkeypatch, tmp_path)
    from h2t2.node import start

    config = {
        "broker": "b",
        "port": 1,
        "device": "d",
        "model_id": 1,
        "wifi_name": "home",
        "wifi_password": "",
        "ntp": "time.lan",
    }
    link = start.mqtt_link(config, cause="pwron")
    assert link.station.power == world.network.WLAN.PM_NONE and link.time_server.host == "time.lan"
    link = start.mqtt_link({**config, "wifi_power_save": "powersave", "ntp": ""})
    assert link.station.power == world.network.WLAN.PM_POWERSAVE and link.time_server is None
    link = start.mqtt_link({**config, "wifi_name": ""})
    assert type(link) is names.MqttLink  # which looks "b" up
    assert type(start.mqtt_link({**config, "wifi_name": "", "broker": "10.0.0.1"})) is MqttLink


def test_a_radio_off_after_a_failure_tries_again_no_sooner(monkeypatch):
    """A board that sleeps between samples must not spend its battery on a network that is not there."""
    world, radio, _ = station(monkeypatch, RP2040, up=())
    while not (radio.state == 1 and ticks_diff(radio.since, world.ticks()) > 5000):  # it rests for longer than that
        advance(world, radio, 1)
    attempts = len([call for _, call in world.asked if call == "connect"])
    radio.off()
    assert radio.trouble and not radio.is_joining()
    advance(world, radio, 3)
    assert len([call for _, call in world.asked if call == "connect"]) == attempts
    advance(world, radio, 40)
    assert len([call for _, call in world.asked if call == "connect"]) > attempts


def linked(monkeypatch, chip, deaf_until=None):
    """(world, broker, link, log) of a board that is connected; nothing passes from a hundred seconds on."""
    world = play(monkeypatch, chip)
    from h2t2.link.wifi import Station, radio_class

    broker = Broker(world).install(monkeypatch)
    said = []
    link = broker.link = radio_class(MqttLink)(
        Station("home", "secret", 1, log=said.append), lambda: None, "b", 1883, "d", 1, 9
    )
    receive(world, link, 90)
    assert link.is_connected()
    world.deaf_from, world.deaf_until = 100_000, deaf_until
    return world, broker, link, said


def receive(world, link, seconds):
    end = world.now + 1000 * seconds
    while world.now < end and not link.is_deaf():
        link.receive(200)


@pytest.mark.parametrize("until, minutes", [("disconnect", 8), ("off", 16)])
def test_a_radio_that_only_says_that_it_is_connected_is_begun_anew(monkeypatch, chip, until, minutes):
    """2,662 attempts at the broker in a day, and no call of the radio (micropython issue 9455)."""
    world, broker, link, said = linked(monkeypatch, chip, until)
    receive(world, link, 60 * minutes)
    assert link.is_connected() and link.silent < 15 and link.connections == 2
    assert any("nothing passes" in line for line in said)
    receive(world, link, 3600)
    assert link.connections == 2  # and it stays


def test_a_radio_that_nothing_helps_asks_for_a_reset_within_two_hours(monkeypatch, chip):
    world, broker, link, _ = linked(monkeypatch, chip, "reset")
    receive(world, link, 7200)
    assert link.is_deaf() and world.now > 50 * 60_000


def test_a_broker_that_is_away_on_a_host_that_answers_is_no_fault_of_the_radio(monkeypatch, chip):
    world, broker, link, _ = linked(monkeypatch, chip)
    calls = len(world.asked)
    broker.refuses = True
    receive(world, link, 2 * 3600)
    assert link.silent < 3 and len(world.asked) == calls


def waiting(monkeypatch, is_asking, advance):
    """(world, link, time server): a link with TLS, which waits for the clock."""
    world = play(monkeypatch, RP2040)
    from h2t2.link.wifi import Station, radio_class

    server = types.SimpleNamespace(failures=0, trouble="no answer", hold_ms=0, is_asking=lambda: is_asking)
    server.advance = lambda: advance(world, server)
    link = radio_class(MqttLink)(Station("home", "secret", 1), lambda: server, "b", 1883, "d", 1, 9, tls=object())
    return world, link, server


def test_a_deaf_radio_that_waits_for_the_time_is_begun_anew(monkeypatch):
    """TLS waits for the clock, so that no attempt at the broker tells."""
    world, link, _ = waiting(monkeypatch, False, lambda world, server: setattr(server, "failures", world.now // 60_000))
    receive(world, link, 3600)
    assert 1 < sum(call == "off" for _, call in world.asked) < 8


def opened(chip, **entries):
    """A link of a configuration, as a board opens it."""
    config = {
        "broker": "10.0.0.2", "port": 1883, "device": "d", "model_id": 1, "wifi_name": "home", "wifi_password": "secret",
        **entries,
    }  # fmt: skip
    return start.mqtt_link(config, log=lambda line: None)


@pytest.mark.parametrize("security, joins", [(None, False), ("wpa3", True), ("wpa2_wpa3", True), ("wpa_wpa2", False)])
def test_a_network_with_wpa3_alone_is_joined_if_the_board_knows(monkeypatch, security, joins):
    world = play(monkeypatch, RP2040)
    world.security = "wpa3"
    link = opened(RP2040, **({"wifi_security": security} if security else {}))
    receive(world, link, 20)
    assert link.joined == joins


def test_country_name_access_point_and_address_are_those_of_the_configuration(monkeypatch, chip):
    world = play(monkeypatch, chip)
    address = ["192.168.1.7", "255.255.255.0", "192.168.1.1", "192.168.1.1"]
    entries = {"wifi_country": "DE", "wifi_hostname": "porch", "wifi_bssid": "f0:9f:c2:00:00:01", "wifi_address": address}
    assert NodeConfig(remote_shape=[4], model_id=1, **entries).content().items() >= entries.items()
    link = opened(chip, **entries)
    receive(world, link, 20)
    radio = world.network.station
    assert link.joined and world.network.told == {"country": "DE", "hostname": "porch"}
    assert radio.joined_by["bssid"] == bytes.fromhex("f09fc2000001") and radio.address == tuple(address)


def test_a_board_without_room_for_the_radio_decides_and_joins_once_there_is_room(monkeypatch):
    """ESP32: WLAN() itself raises; the node did not start, and nothing was ever decided."""
    world = play(monkeypatch, ESP32)
    world.memory = 30_000
    link = opened(ESP32)
    receive(world, link, 60)
    assert not link.is_connected() and not link.joined and link.trouble == "Wi-Fi home: Wifi Unknown Error 0x0101"
    world.memory = 60_000
    receive(world, link, 60)
    assert link.joined and world.memory == 60_000 - RADIO and link.silent == 0  # nobody listens at that address


def test_an_attempt_that_never_ends_is_given_up(monkeypatch, chip):
    """A station may say for ever that it is joining."""
    world, radio, said = station(monkeypatch, chip)
    world.network.station.isconnected = lambda: False
    world.network.station.status = lambda: world.network.STAT_CONNECTING
    advance(world, radio, 19)
    assert radio.is_joining() and not said
    advance(world, radio, 3)
    assert said == ["Wi-Fi home: no answer in 20 s"]
    advance(world, radio, 60)
    assert sum(call == "connect" for _, call in world.asked) >= 3


def test_a_sleeping_board_wakes_as_early_as_joining_took_and_a_second_more(monkeypatch, tmp_path):
    world, _, _, link = radio(monkeypatch, tmp_path)
    assert link.lead_ms == 5000
    poll(world, link, 30)
    assert link.is_connected() and link.lead_ms == link.connect_ms + 1000


def test_waiting_for_a_time_server_that_has_not_failed_yet_is_no_silence(monkeypatch):
    world, link, server = waiting(monkeypatch, True, lambda world, server: False)
    receive(world, link, 60)
    assert link.joined and link.silent == 0
    server.failures = 1
    receive(world, link, 60)
    assert link.silent == 1


def test_a_clock_is_right_for_six_hours_from_when_it_was_set(monkeypatch, tmp_path):
    world, _, new, _ = time_server(monkeypatch, tmp_path, ESP32)
    clock = new()
    advance(world, clock, 2)
    assert clock.hold_ms == 6 * 3600 * 1000
    world.now += 3600 * 1000
    assert abs(new(woken=True).hold_ms - 5 * 3600 * 1000) <= 3000

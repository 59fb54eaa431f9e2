"""A board that knows no network opens an access point and is told one (node/provision.py), on boards with the rules of their
ports, in virtual time; on MicroPython with real sockets."""

import errno
import importlib
import json
import socket
import subprocess
import sys
import types
import urllib.error
import urllib.parse
import urllib.request

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ports import played
from ports.world import ESP32, RP2040, Reset
from support import ROOT, need, until

from h2t2.cpython.device_names import is_device
from h2t2_lab.emulators.lwip import LWIP
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.fleet.broker import free_port

CONFIG = {"device": "porch", "broker": "broker.lan", "provision": "correct horse", "ldl": "ldl.h2m"}
FORM = {"wifi_name": "home", "wifi_password": "secret + 100%", "broker": "", "device": ""}


class Server:
    """socket.socket() of a board whose clients come one after another. clients: lists of pieces, of which one arrives every
    100 ms; None: the client closes. heard: what each was answered."""

    def __init__(self, world, clients):
        self.world, self.clients, self.heard = world, list(clients), []
        self.setsockopt = self.bind = self.listen = self.setblocking = self.close = lambda *_: None

    def accept(self):
        self.air = self.world.network.WLAN(1).air
        assert self.air, "it listens while there is no access point"
        if not self.clients:
            raise OSError(errno.EAGAIN)
        return Client(self, self.clients.pop(0)), None


class Client:
    def __init__(self, server, pieces):
        self.server, self.pieces, self.next = server, list(pieces), server.world.now
        self.setblocking = self.settimeout = lambda *_: None
        server.heard.append(b"")

    def readinto(self, buffer):
        if not self.pieces or self.server.world.now < self.next:
            return None
        self.next += 100
        piece = self.pieces.pop(0)
        if piece is None:
            return 0
        if len(piece) > len(buffer):
            self.pieces.insert(0, piece[len(buffer) :])
        buffer[: len(piece)] = piece[: len(buffer)]
        return min(len(piece), len(buffer))

    def write(self, data):
        self.server.heard[-1] += bytes(data[:500])
        return min(500, len(data))

    def close(self):
        pass


@pytest.fixture
def provision(monkeypatch, tmp_path):
    """provision(chip, clients=(), **config) -> (world, server, log): of a start with power."""
    monkeypatch.chdir(tmp_path)

    def start(chip, clients=(), cause="pwron", stays_open=False, world=(), **config):
        board = played.play(monkeypatch, chip, **dict(world))
        monkeypatch.delitem(sys.modules, "h2t2.node.provision", raising=False)
        module = importlib.import_module("h2t2.node.provision")
        server, log = Server(board, clients), []
        board.network.WLAN.access_point.stays_open = stays_open
        monkeypatch.setattr(module, "network", sys.modules["network"])
        fake = types.SimpleNamespace(socket=lambda: server, SOL_SOCKET=1, SO_REUSEADDR=2)
        fake.getaddrinfo = lambda *address: [(address,)]
        monkeypatch.setattr(module, "socket", fake)
        watchdog = sys.modules["machine"].WDT(timeout=8000)
        try:
            module.provision({**CONFIG, **config}, cause, watchdog.feed, log.append)
        except Reset:
            server.reset = True
        return board, server, log

    return start


def post(fields=FORM, **more):
    body = urllib.parse.urlencode({**fields, **more}).encode()
    return b"POST / HTTP/1.1\r\nHost: 192.168.4.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def stored(tmp_path):
    """config.json of the next start, or None."""
    todo = tmp_path / "flash.todo"
    return json.loads((tmp_path / "config.json.new").read_text()) if todo.exists() else None


CHIPS = pytest.mark.parametrize("chip", [RP2040, ESP32])


@CHIPS
def test_the_access_point_has_the_configured_password_and_closes_after_ten_minutes(provision, chip, tmp_path):

    world, server, log = provision(chip, [[b"GET / HTTP/1.1\r\n\r\n"]])
    assert 600_000 <= world.now < 610_000 and not world.resets and stored(tmp_path) is None
    assert world.network.WLAN(1).air is None
    assert (server.air["ssid"], server.air["key"]) == ("h2t2-porch", "correct horse")
    assert server.air["security"] == {RP2040: 4194310, ESP32: 3}[chip]
    assert b"<form method=post" in server.heard[0] and b"wifi_password" in server.heard[0]
    assert log == ["no network: for 10 minutes h2t2-porch has a page at http://192.168.4.1"]


@CHIPS
def test_an_access_point_that_would_be_open_has_no_page(provision, chip):
    world, server, _ = provision(chip, [[post()]], stays_open=True)
    assert world.now < 2000 and server.clients and world.network.WLAN(1).air is None


@pytest.mark.parametrize("cause", ["deepsleep", "wdt", "radio", "ValueError: a defect"])
def test_only_a_start_of_somebody_opens_a_page(provision, cause):
    _, server, log = provision(RP2040, [[post()]], cause=cause)
    assert server.clients and not log


def test_a_board_with_a_network_opens_nothing(provision):
    world, server, log = provision(RP2040, [[post()]], wifi_name="home", world={"up": ()})
    assert server.clients and not log and world.now < 2000


@CHIPS
def test_what_the_page_is_told_is_stored_and_the_board_starts_again(provision, chip, tmp_path):
    _, server, _ = provision(chip, [[post()], [post()]])
    assert server.reset and len(server.clients) == 1 and b"Stored" in server.heard[0]
    told = {"wifi_name": "home", "wifi_password": "secret + 100%", "untried": 1}
    assert stored(tmp_path) == {**CONFIG, **told}
    assert b"secret" not in server.heard[0]


def test_broker_and_device_are_stored_where_they_are_told(provision, tmp_path):
    provision(RP2040, [[post(broker="10.0.0.7", device="kitchen \u00e4")]])
    assert stored(tmp_path)["broker"] == "10.0.0.7" and stored(tmp_path)["device"] == "kitchen \u00e4"


@CHIPS
def test_a_network_that_was_joined_once_is_never_asked_for_again(provision, chip, tmp_path):
    entries = {"wifi_name": "home", "wifi_password": "secret", **({"wifi_security": "wpa2_wpa3"} if chip == RP2040 else {})}
    world, server, _ = provision(chip, [[post()]], cause="update", untried=1, **entries)
    assert server.reset and len(server.clients) == 1 and world.now < 12_000
    assert stored(tmp_path) == {**CONFIG, **entries}


@CHIPS
@pytest.mark.parametrize("wrong", [{"wifi_name": "hom"}, {"wifi_password": "secrets?"}])
def test_a_network_that_cannot_be_joined_is_asked_for_again(provision, chip, wrong, tmp_path):
    entries = {"wifi_name": "home", "wifi_password": "secret", "untried": 1, **wrong}
    world, server, log = provision(chip, [[post(wifi_name="other")]], cause="update", **entries)
    assert server.reset and stored(tmp_path)["wifi_name"] == "other" and 30_000 < world.now < 50_000
    assert f"Wi-Fi {entries['wifi_name']}: not joined in 30 s" in log


HEAD = b"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n"
HOSTILE = {
    "nothing": [],
    "closed at once": [None],
    "no end": [b"G"] * 200,
    "no end of the body": [HEAD % b"100", *[b"x"] * 200],
    "longer than any": [b"GET /" + b"x" * 9000],
    "a header without end": [b"GET / HTTP/1.1\r\n", *[b"A: b\r\n"] * 20],
    "a body longer than any": [HEAD % b"99999999" + b"x" * 5000],
    "a negative length": [HEAD % b"-5" + b"wifi_name=a"],
    "a length of digits of another script": [HEAD % "\u0665".encode() + b"wifi_name=a"],
    "no length": [b"POST / HTTP/1.1\r\n\r\nwifi_name=a"],
    "binary": [bytes(range(256)) * 4, None],
    "binary form": [HEAD % b"256" + bytes(range(256))],
    "no fields": [post({})],
    "a name of 33 bytes": [post(wifi_name="\u00e4" * 17)],
    "a short password": [post(wifi_password="1234567")],
    "a long password": [post(wifi_password="1" * 64)],
    "a line break": [post(wifi_name="home\nx")],
    "a zero": [post(wifi_name="home\0")],
    "no UTF-8": [HEAD % b"16" + b"wifi_name=%ff%fe"],
    "half a character": [HEAD % b"13" + b"wifi_name=a%f"],
    "no digits": [HEAD % b"13" + b"wifi_name=%zz"],
    "a broker of markup": [post(broker="<script>")],
    "a long broker": [post(broker="a" * 65)],
    "a device for every topic": [post(device="+")],
    "a device of 65 bytes": [post(device="a" * 65)],
    "percent signs without end": [HEAD % b"3010" + b"wifi_name=" + b"%41" * 1000],
}


PIECES = [
    b"wifi_name=",
    b"wifi_password=",
    b"broker=",
    b"device=",
    b"&",
    b"%41",
    b"%c3%a4",
    b"%0a",
    b"%",
    b"+",
    b"a" * 9,
    b"=",
    b"/",
]


@pytest.mark.parametrize("pieces", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_request_stores_nothing_and_the_next_one_is_answered(provision, pieces, tmp_path):
    """Each is over within five seconds, and the watchdog is fed."""
    world, server, _ = provision(RP2040, [pieces, [b"GET / HTTP/1.1\r\n\r\n"]])
    assert not server.clients and not world.resets and stored(tmp_path) is None
    assert b"<form" in server.heard[1] and b"<script" not in b"".join(server.heard)


@given(st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)))
def test_any_form_gives_a_configuration_within_its_limits_or_an_error_in_words(body):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "network", types.ModuleType("network"))
        from h2t2.node import provision as module
    try:
        told = module.entries(body, CONFIG)
    except ValueError as error:
        assert str(error)
        return
    assert told.keys() == {*CONFIG, "wifi_name", "wifi_password", "untried"} and told["provision"] == CONFIG["provision"]
    assert 1 <= len(told["wifi_name"].encode()) <= 32 and len(told["wifi_password"].encode()) in (0, *range(8, 64))
    assert is_device(told["device"]) and len(told["broker"]) <= 64
    assert all(c.isprintable() or c > "\x7f" for name in ("wifi_name", "wifi_password", "device") for c in told[name])


@pytest.mark.parametrize("value", [b"%4", b"%41" * 200], ids=["half a character", "a long value"])
def test_a_value_that_is_no_text_is_named(value, provision):
    provision(RP2040)
    with pytest.raises(ValueError, match="wifi_name: no text"):
        sys.modules["h2t2.node.provision"].entries(b"wifi_name=" + value, CONFIG)


def test_a_client_that_vanishes_ends_nothing(provision, monkeypatch):
    monkeypatch.setattr(Client, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ECONNRESET)))
    world, server, _ = provision(RP2040, [[b"GET / HTTP/1.1\r\n\r\n"]] * 3)
    assert not server.clients and world.now >= 600_000 and not world.resets


PROGRAM = """
import sys
from ports.world import World
world = World("rp2040")
sys.modules["network"] = world.network
from h2t2.node import provision
provision.PORT = {port}
provision.OPEN_S = {open_s}
provision.provision({config!r}, "pwron", lambda: None, print)
"""


@pytest.mark.parametrize(
    "emulator", [UNIX, *(pytest.param(emulator, marks=pytest.mark.whole) for emulator in (ARM32, LWIP))], ids=lambda e: e.name
)
def test_a_browser_tells_a_network(emulator, tmp_path):
    """On MicroPython's own sockets, also a Pico W's; then `finish.py` puts the configuration in its place."""
    port = free_port()
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "program.py").write_text(PROGRAM.format(port=80 if emulator is LWIP else port, config=CONFIG, open_s=60))
    (tmp_path / "finish.py").write_bytes((ROOT / "firmware/boards/finish.py").read_bytes())
    command = need(emulator).command(tmp_path / "program.py", [])
    web, host = ({"web": port}, own_address()) if emulator is LWIP else ({}, "127.0.0.1")
    env = emulator.environment(tmp_path, ROOT / "firmware", ROOT / "tests", **web)
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        try:
            assert until(lambda: b"<form" in visit(host, port) or program.poll() is not None)
            assert b"8 to 63" in visit(host, port, {**FORM, "wifi_password": "short"})
            assert b"Stored" in visit(host, port, FORM)
            assert program.wait(20) == 0
        finally:
            program.kill()
    assert json.loads((tmp_path / "config.json").read_text()) == CONFIG
    subprocess.run(emulator.command(tmp_path / "finish.py", []), cwd=tmp_path, env=env, check=True)
    told = {"wifi_name": "home", "wifi_password": "secret + 100%", "untried": 1}
    assert json.loads((tmp_path / "config.json").read_text()) == {**CONFIG, **told}
    assert not (tmp_path / "flash.todo").exists()


def own_address():
    """This machine's address for others: slirp hands a client on as what it is, and lwIP lets no 127.0.0.1 in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet leaves
        except OSError:
            pytest.skip("this machine has no address but 127.0.0.1")
        return probe.getsockname()[0]


def visit(host, port, fields=None):
    """The page, or nothing while nobody listens yet."""
    data = urllib.parse.urlencode(fields).encode() if fields else None
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/", data, timeout=10) as answer:
            return answer.read()
    except (OSError, urllib.error.URLError):
        return b""

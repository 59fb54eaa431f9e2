"""TLS on every link: who is believed and who is not."""

import datetime
import socket
import ssl
import struct
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from secured import Client, links
from support import ROOT, need, need_mosquitto

from h2t2.cpython.paho import PahoLink
from h2t2.link import tls as secure
from h2t2.link import wire
from h2t2_tools.boards import folding, kinds
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.fleet import broker, certs
from h2t2_tools.fleet import config as board_config


def test_a_host_may_have_any_name_that_dns_has(tmp_path, capsys):
    """A long one, one outside ASCII as its A-label; no label has more than 63 characters."""
    long = ".".join(["a" * 30] * 4)
    assert main(["certs", "--out", str(tmp_path), "--host", long, "böse.lan", "10.0.0.9"]) == 0
    loaded = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [long, "xn--bse-sna.lan"]
    for host in ("a" * 70, "a..b", ""):
        assert main(["certs", "--out", str(tmp_path / "none"), "--host", host]) == 2
        assert "want a host name or an address" in capsys.readouterr().err


@pytest.mark.slow
@links
def test_a_broker_that_is_not_the_one_meant_is_refused(kind, tmp_path, localhost):
    """Its certificate is expired, not valid yet, of a foreign authority, of another name: no connection, and why."""
    need_mosquitto()
    now = datetime.datetime.now(datetime.timezone.utc)
    cases = {
        "expired": certs_of(tmp_path / "expired", ["localhost"], day=now - datetime.timedelta(days=9), days=2),
        "early": certs_of(tmp_path / "early", ["localhost"], day=now + datetime.timedelta(days=2), days=9),
        "other": certs_of(tmp_path / "other", ["elsewhere.example"]),
        "good": certs_of(tmp_path / "good", ["localhost"]),
    }
    foreign = certs_of(tmp_path / "foreign", ["localhost"])
    for name, folder in cases.items():
        port = broker.free_port()
        with serving(folder, port, tmp_path):
            for authority in (folder, foreign):
                link = kind("localhost", port, "dev", 1, 5, deadline_ms=3000, tls=secure.context(str(authority / "ca.crt")))
                if name == "good" and authority is folder:
                    link.open()
                    assert link.is_connected()
                else:
                    with pytest.raises(OSError, match="(?i)certificate"):
                        link.open()
                    assert link.connections == 0
                link.close()
            unverified = kind("localhost", port, "dev", 1, 5, deadline_ms=3000, tls=secure.context(verify=False))
            unverified.open()  # on request only
            unverified.close()


def certs_of(folder, hosts, day=None, days=30):
    certs.make(folder, hosts, ["dev"], days, day)
    return folder


class serving:
    """A Mosquitto with TLS only, by that folder's server certificate; require: clients show one of ours."""

    def __init__(self, folder, port, out, require=False):
        lines = [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            f"cafile {folder}/ca.crt",
            f"certfile {folder}/server.crt",
        ]
        lines += [f"keyfile {folder}/server.key", f"require_certificate {str(require).lower()}"]
        (out / "m.conf").write_text("\n".join(lines) + "\n")
        for part in (out, *out.parents[:3]):
            part.chmod(0o755)
        (folder / "server.key").chmod(0o644)  # Mosquitto gives root up before it reads it
        self.port, self.config, self.log = port, out / "m.conf", out / "m.log"

    def __enter__(self):
        log = self.log.open("w")
        self.process = subprocess.Popen([broker.mosquitto(), "-c", str(self.config)], stdout=log, stderr=log)
        assert broker.wait_for_broker("127.0.0.1", self.port, 10), self.log.read_text()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


def test_an_expired_or_foreign_client_certificate_is_refused(tmp_path, localhost):
    need_mosquitto()
    now = datetime.datetime.now(datetime.timezone.utc)
    good = certs_of(tmp_path / "good", ["localhost"])
    certs.make(good, ["localhost"], ["old"], 2, now - datetime.timedelta(days=9))
    certs.make(good, ["localhost"], [], 30)
    foreign = certs_of(tmp_path / "foreign", ["localhost"])
    with serving(good, port := broker.free_port(), tmp_path, require=True):
        for folder, name, passes in ((good, "dev", True), (good, "old", False), (foreign, "dev", False)):
            tls = secure.context(str(good / "ca.crt"), str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
            link = PahoLink("localhost", port, "dev", 1, 5, deadline_ms=3000, tls=tls)
            if passes:
                link.open()
            else:
                with pytest.raises(OSError):
                    link.open()
            assert link.is_connected() == passes
            link.close()


@links
def test_plain_text_on_the_tls_port_is_refused(fleet, kind):
    link = kind("localhost", fleet.devices, "dev-a", 1, 5, deadline_ms=2000, user="dev-a", password="x")
    with pytest.raises(OSError):
        link.open()
    assert link.connections == 0
    link.close()
    with socket.create_connection(("localhost", fleet.devices)) as raw:
        raw.settimeout(5)
        raw.sendall(b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02ab")
        try:
            answer = raw.recv(100)
        except ConnectionResetError:
            answer = b""
        assert not answer.startswith(b"\x20")  # no CONNACK
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("localhost", fleet.devices)) as raw, pytest.raises((ssl.SSLError, OSError)):
        old.wrap_socket(raw, server_hostname="localhost")


BOARD = """import json, os, sys
os.chdir(sys.argv[0].rsplit("/", 1)[0])
from h2t2.node import start
with open("config.json") as file:
    config = json.load(file)
link = start.mqtt_link(config)
try:
    link.open()
except OSError as error:
    print("refused", error)
    sys.exit()
from h2t2.link import wire
link.send(wire.encode_request(1, 5, 6, (1,), b"x"))
print("reply", link.receive(5000), link.connections)
link.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda emulator: emulator.name)
def test_a_board_speaks_tls(emulator, fleet, tmp_path):
    """MicroPython, x86-64 and emulated 32-bit ARM, with the files `h2t2 flash` puts on a board; a foreign broker is refused."""
    need(emulator)
    login = {"ca": str(fleet.folder / "certs/ca.crt")}
    if fleet.client_certs:
        login.update(cert=str(fleet.folder / "certs/dev-a.crt"), key=str(fleet.folder / "certs/dev-a.key"))
    else:
        login.update(user="dev-a", password=fleet.password("dev-a"))
    worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request/1")])
    worker.client.on_message = lambda client, _d, message: client.publish(wire.topic("dev-a", "reply"), b"label", qos=1)
    for name, authority, said in (("good", "certs", "reply b'label' 1"), ("bad", "foreign", "refused")):
        folder = tmp_path / name
        folder.mkdir()
        text = {**login, "ca": str(fleet.folder / authority / "ca.crt")}
        lines = [f'{key} = "{value}"' for key, value in {"device": "dev-a", "broker": "localhost", **text}.items()]
        (folder / "h2t2.toml").write_text("\n".join([f"port = {fleet.devices}", "remote_shape = [30]", "model_id = 1", *lines]))
        (folder / "h2t2.toml").chmod(0o600)
        config = board_config.load(folder / "h2t2.toml")
        material(folder, config)
        (folder / "main.py").write_text(BOARD)
        out = emulator.run(folder / "main.py", [], folder, 60)
        assert out.startswith(said), out
        assert fleet.client_certs or fleet.password("dev-a") not in out
    worker.close()


def test_a_board_refuses_a_broker_whose_certificate_is_expired_or_anothers(tmp_path, localhost):
    need(UNIX)
    need_mosquitto()
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=9)
    old = certs_of(tmp_path / "old", ["localhost"], day=past, days=2)
    for folder, why in ((old, "expired"), (certs_of(tmp_path / "other", ["elsewhere.example"]), "does not match")):
        board = tmp_path / f"board-{folder.name}"
        board.mkdir()
        with serving(folder, port := broker.free_port(), tmp_path):
            lines = [f"port = {port}", "remote_shape = [30]", "model_id = 1", f'ca = "{folder}/ca.crt"']
            (board / "h2t2.toml").write_text("\n".join(lines))
            material(board, board_config.load(board / "h2t2.toml"))
            (board / "main.py").write_text(BOARD)
            out = UNIX.run(board / "main.py", [], board, 30)
            assert out.startswith("refused") and why in out


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
NETWORK = """STA_IF = STAT_IDLE = 0
STAT_NO_AP_FOUND, STAT_WRONG_PASSWORD = -2, -3
class Station:
    def active(self, on):
        pass
    connect = disconnect = lambda self, *_: None
    def isconnected(self):
        return True
    def status(self):
        return 3
def WLAN(interface):
    return Station()
"""
RTC = """class RTC:
    def datetime(self, fields):
        with open("now", "w") as file:
            file.write("@%d-%02d-%02d %02d:%02d:%02d" % (fields[:3] + fields[4:7]))
"""


@contextmanager
def time_server():
    """The port of a time server on this machine, which is right."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve():
            with suppress(OSError):  # it is closed
                while True:
                    asked, address = server.recvfrom(100)
                    seconds = struct.pack("!II", int(time.time()) + 2208988800, 0)
                    server.sendto(b"\x24\x02" + bytes(22) + asked[40:48] + bytes(8) + seconds, address)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.whole
@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime; run: sudo apt-get install faketime")
def test_a_board_that_starts_in_2021_sets_its_clock_before_it_looks_at_a_certificate(tmp_path):
    """Under libfaketime: without a time server every certificate is one of the future; with one the board connects."""
    need(UNIX)
    need_mosquitto()
    good = certs_of(tmp_path / "good", ["localhost"])
    for ntp, said in (("", "refused"), ("127.0.0.1", "reply None 1")):
        board = tmp_path / f"board{ntp}"
        board.mkdir()
        with serving(good, port := broker.free_port(), tmp_path), time_server() as right:
            lines = [f"port = {port}", "remote_shape = [30]", "model_id = 1", f'ca = "{good}/ca.crt"', f'ntp = "{ntp}"']
            (board / "h2t2.toml").write_text("\n".join([*lines, 'wifi_name = "home"']))
            material(board, board_config.load(board / "h2t2.toml"))
            for module in ("wifi", "ntp"):
                path = f"h2t2/link/{module}.py"
                (board / path).write_bytes(folding.folded(path, (ROOT / "firmware" / path).read_bytes()))
            program = (
                f"from h2t2.link import ntp\nntp.PORT = {right}\n{BOARD}from h2t2.clock import unix_now\nprint(unix_now())\n"
            )
            (board / "main.py").write_text(program)
            (board / "network.py").write_text(NETWORK)
            (board / "machine.py").write_text(RTC)
            (board / "now").write_text("@2021-01-01 00:00:00")
            environment = {
                **UNIX.environment(board), "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(board / "now"),
                "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "UTC",
            }  # fmt: skip
            command = UNIX.node(board / "main.py")
            run = subprocess.run(command, capture_output=True, text=True, cwd=board, env=environment, timeout=280)
            assert run.stdout.startswith(said), run.stdout + run.stderr
            assert not ntp or int(run.stdout.split()[-1]) > datetime.datetime.now().timestamp() - 100


def material(folder, config):
    from h2t2_tools.model import bundle

    model = folder / "m.h2m"
    model.write_bytes(bundle.from_tflite(ROOT / "models/breast_cancer/ldl.tflite"))
    for path, content in kinds.payload(kinds.KINDS["unix"], kinds.Contents(model, config)).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)

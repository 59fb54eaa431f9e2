"""Who may say what to whom: a real Mosquitto with the files of `h2t2 broker-config` and `h2t2 certs`, and real strangers."""

import datetime
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT, until

from h2t2.link import tls as secure
from h2t2.link import wire
from h2t2.link.mqtt import MqttLink
from h2t2.link.paho import PahoLink, make_client
from h2t2_tools.boards import kinds
from h2t2_tools.boards.emulators import ARM32, UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker, broker_config, certs
from h2t2_tools.fleet import config as board_config
from h2t2_tools.fleet.endpoint import PASSWORD, secret

NAMES = ["dev-a", "dev-b", "rdl", "operator"]
links = pytest.mark.parametrize("kind", [PahoLink, MqttLink])


class Fleet:
    """A running Mosquitto of `h2t2 broker-config`, and what its clients need."""

    def __init__(self, folder, client_certs):
        self.folder = folder
        certs.make(folder / "certs", ["localhost", "127.0.0.1"], NAMES, 30)
        certs.make(folder / "foreign", ["localhost"], NAMES, 30)
        ports = broker.free_port(), broker.free_port()
        plan = broker_config.Plan(["dev-a", "dev-b"], ["rdl"], folder / "certs", client_certs, *ports, "127.0.0.1")
        self.report = broker_config.write(folder / "broker", plan)
        self.devices, self.workers = ports
        self.client_certs = client_certs
        self.process = None

    def start(self):
        for part in (self.folder, *self.folder.parents[:3]):
            part.chmod(0o755)
        log = (self.folder / "log").open("w")
        self.process = subprocess.Popen([broker.mosquitto(), "-c", self.report["config"]], stdout=log, stderr=log)
        assert broker.wait_for_port("127.0.0.1", self.devices, 10), (self.folder / "log").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    def password(self, name):
        return (self.folder / "broker/secrets" / name).read_text().strip()

    def tls(self, name=None, authority="certs", **options):
        """A context that trusts this fleet's authority; name: whose certificate is shown (of `authority`)."""
        own = (str(self.folder / authority / f"{name}.crt"), str(self.folder / authority / f"{name}.key")) if name else ()
        return secure.context(str(self.folder / "certs/ca.crt"), *own, **options)

    def login(self, name):
        """What a client of that name shows: a certificate or a password."""
        if self.client_certs:
            return {"tls": self.tls(name)}
        return {"tls": self.tls(), "user": name, "password": self.password(name)}


@pytest.fixture(scope="module", params=["password", "certificate"])
def fleet(request, tmp_path_factory):
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    one = Fleet(tmp_path_factory.mktemp(request.param), request.param == "certificate")
    one.start()
    yield one
    one.stop()


class Client:
    """A paho client of its own will: what it was allowed, what it heard."""

    def __init__(self, port, login, topics=(), client_id=""):
        self.heard, self.subscribed, self.refused = [], [], None
        self.client = client = make_client(client_id, **login)
        client.on_message = lambda _c, _d, message: self.heard.append((message.topic, bytes(message.payload)))
        client.on_subscribe = lambda _c, _d, _m, reasons, _p: self.subscribed.extend(reasons)
        self.up = False

        def connected(client, _data, _flags, reason, _properties):
            self.refused = reason.is_failure
            self.up = not reason.is_failure
            if topics:
                client.subscribe([(topic, 1) for topic in topics])

        client.on_connect = connected
        client.connect("localhost", port)
        client.loop_start()

    def publish(self, topic, payload=b"x"):
        self.client.publish(topic, payload, qos=1).wait_for_publish(5)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@links
def test_an_offload_through_the_secured_broker(fleet, kind):
    """Device, worker and operator, each with its own login: request, reply and command arrive."""
    host = "localhost"
    link = kind(host, fleet.devices, "dev-a", **fleet.login("dev-a"))
    link.open()
    worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request")])
    operator = Client(fleet.workers, fleet.login("operator"), [wire.topic("+", "state")])
    assert until(lambda: worker.subscribed and operator.subscribed)
    assert link.send(b"request")
    assert until(lambda: link.receive(10) is None and worker.heard) and worker.heard == [
        (wire.topic("dev-a", "request"), b"request")
    ]
    worker.publish(wire.topic("dev-a", "reply"), b"reply")
    assert link.receive(5000) == b"reply"
    operator.publish(wire.topic("dev-a", "command"), b"{}")
    assert until(lambda: link.receive(10) is None and link.command() == b"{}")
    link.report("{}")
    assert until(lambda: link.receive(10) is None and operator.heard)
    for one in (worker, operator, link):
        one.close()


def test_a_device_reaches_its_own_topics_only(fleet):
    """Device A reads and writes nothing of device B's; nor may it reply, command, or hear requests."""
    everything = ["h2t2/1/dev-b/#", "h2t2/1/+/request", "h2t2/1/+/reply", "#", "$SYS/#", "$share/rdl/h2t2/1/+/request"]
    a = Client(fleet.devices, fleet.login("dev-a"), everything)
    b = Client(fleet.devices, fleet.login("dev-b"), [wire.topic("dev-b", leaf) for leaf in ("reply", "command")])
    worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", leaf) for leaf in ("request", "status", "state")])
    assert until(lambda: a.subscribed and b.subscribed and worker.subscribed)
    for leaf in ("request", "reply", "command", "status", "state"):
        a.publish(wire.topic("dev-b", leaf), b"forged")
        a.publish(wire.topic("dev-a", leaf), b"own")
    b.publish(wire.topic("dev-b", "request"), b"private")
    worker.publish(wire.topic("dev-b", "reply"), b"label")
    assert until(lambda: b.heard and len(worker.heard) >= 2)
    time.sleep(0.3)
    assert b.heard == [(wire.topic("dev-b", "reply"), b"label")]
    assert worker.heard == [(wire.topic("dev-a", "request"), b"own"), (wire.topic("dev-b", "request"), b"private")]
    assert not [topic for topic, _ in a.heard if "dev-b" in topic or topic.endswith("request")]
    assert not [payload for _, payload in a.heard if payload in (b"own", b"private", b"label")]
    for one in (a, b, worker):
        one.close()


def test_a_device_cannot_be_a_worker_or_take_anothers_place(fleet):
    """On the workers' port a device is refused; with another's client id on its own port it does not push that one out."""
    login = fleet.login("dev-a")
    if fleet.client_certs:  # the certificate is genuine: the access list gives it nothing there
        worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request")])
        a = Client(fleet.workers, login, [wire.topic("+", "request")])
        b = Client(fleet.devices, fleet.login("dev-b"), [wire.topic("dev-b", "reply")])
        assert until(lambda: worker.subscribed and a.subscribed and b.subscribed)
        b.publish(wire.topic("dev-b", "request"), b"private")
        a.publish(wire.topic("dev-b", "reply"), b"forged")
        assert until(lambda: worker.heard)
        time.sleep(0.2)
        assert a.heard == b.heard == []
        for one in (worker, a, b):
            one.close()
    else:
        a = Client(fleet.workers, login)
        assert until(lambda: a.refused)
        a.close()
    link = PahoLink("localhost", fleet.devices, "dev-b", **fleet.login("dev-b"))
    link.open()
    thief = Client(fleet.devices, login, client_id="dev-b")
    assert until(lambda: thief.up)
    time.sleep(0.3)
    assert link.is_connected() and link.connections == 1
    for one in (thief, link):
        one.close()


@links
def test_without_the_right_login_nobody_connects(fleet, kind):
    """No login, a wrong password, a password of somebody else, an unknown user; no certificate, one of another authority."""
    logins = [{"tls": fleet.tls()}]
    if fleet.client_certs:
        logins += [{"tls": fleet.tls("dev-a", "foreign")}, {"tls": fleet.tls(), "user": "dev-a", "password": "x"}]
    else:
        logins += [
            {"tls": fleet.tls(), "user": "dev-a", "password": "wrong"},
            {"tls": fleet.tls(), "user": "dev-a", "password": fleet.password("dev-b")},
            {"tls": fleet.tls(), "user": "stranger", "password": fleet.password("dev-a")},
            {"tls": fleet.tls(), "user": "rdl", "password": fleet.password("rdl")},  # a worker, on the devices' port
        ]
    for login in logins:
        link = kind("localhost", fleet.devices, "dev-a", deadline_ms=3000, **login)
        with pytest.raises(OSError) as error:
            link.open()
        assert fleet.client_certs or login.get("password", "?") not in str(error.value)
        assert not link.is_connected() and link.connections == 0
        link.close()


def run(fleet, *words, password=None, timeout=40):
    environment = {**os.environ, **({PASSWORD: password} if password else {})}
    return subprocess.run(
        [sys.executable, "-m", "h2t2_tools", *map(str, words)], capture_output=True, text=True, timeout=timeout, env=environment
    )


def options(fleet, name, authority="certs"):
    words = ["--ca", fleet.folder / "certs/ca.crt"]
    if fleet.client_certs:
        return [*words, "--cert", fleet.folder / authority / f"{name}.crt", "--key", fleet.folder / authority / f"{name}.key"]
    return [*words, "--user", name, "--password-file", fleet.folder / "broker/secrets" / name]


def test_a_worker_without_certificate_or_password_cannot_connect(fleet):
    """`h2t2 rdl` itself: status 1 and a reason, no traceback, no password told."""
    url = f"mqtts://localhost:{fleet.workers}"
    attempts = [["--ca", fleet.folder / "certs/ca.crt"]]
    if fleet.client_certs:
        attempts.append(options(fleet, "rdl", "foreign"))
    else:
        attempts.append(["--ca", fleet.folder / "certs/ca.crt", "--user", "rdl"])
        attempts.append([*options(fleet, "dev-a")])
    for words in attempts:
        done = run(fleet, "rdl", "--broker", url, *words)
        assert done.returncode == 1 and "h2t2: broker localhost" in done.stderr and "Traceback" not in done.stderr
        assert not [name for name in NAMES if not fleet.client_certs and fleet.password(name) in done.stderr]


def test_node_worker_and_operator_with_their_commands(fleet):
    """The whole thing as a user runs it; secrets by file and by environment, none in what is printed."""
    command = [sys.executable, "-m", "h2t2_tools", "rdl", "--broker", f"mqtts://localhost:{fleet.workers}"]
    worker = subprocess.Popen([*command, *map(str, options(fleet, "rdl"))], stderr=subprocess.PIPE, text=True)
    try:
        assert "ready" in worker.stderr.readline()
        words = [
            "node",
            "--broker",
            f"mqtts://localhost:{fleet.devices}",
            "--device",
            "dev-a",
            "--samples",
            "60",
            "--beta",
            "0",
        ]
        if fleet.client_certs:
            done = run(fleet, *words, *options(fleet, "dev-a"))
        else:
            own = ["--ca", fleet.folder / "certs/ca.crt", "--user", "dev-a"]
            done = run(fleet, *words, *own, password=fleet.password("dev-a"))
        summary = json.loads(done.stdout.splitlines()[-1])["summary"]
        assert summary["replies"] > 20 and summary["fallbacks"] == 0, done.stderr
        told = run(
            fleet,
            "command",
            "dev-a",
            "--beta",
            "0.25",
            "--broker",
            f"mqtts://localhost:{fleet.workers}",
            *options(fleet, "operator"),
        )
        assert told.returncode == 0 and "8192" in told.stdout, told.stderr
    finally:
        worker.terminate()
        words = done.stdout + done.stderr + worker.communicate(timeout=10)[1]
    assert fleet.client_certs or not [name for name in NAMES if fleet.password(name) in words]


@links
def test_a_broker_that_is_not_the_one_meant_is_refused(kind, tmp_path):
    """Its certificate is expired, not valid yet, of a foreign authority, of another name: no connection, and why."""
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
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
                link = kind("localhost", port, "dev", deadline_ms=3000, tls=secure.context(str(authority / "ca.crt")))
                if name == "good" and authority is folder:
                    link.open()
                    assert link.is_connected()
                else:
                    with pytest.raises(OSError, match="(?i)certificate"):
                        link.open()
                    assert link.connections == 0
                link.close()
            unverified = kind("localhost", port, "dev", deadline_ms=3000, tls=secure.context(verify=False))
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
        assert broker.wait_for_port("127.0.0.1", self.port, 10), self.log.read_text()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


def test_an_expired_or_foreign_client_certificate_is_refused(tmp_path):
    if broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    now = datetime.datetime.now(datetime.timezone.utc)
    good = certs_of(tmp_path / "good", ["localhost"])
    certs.make(good, ["localhost"], ["old"], 2, now - datetime.timedelta(days=9))
    certs.make(good, ["localhost"], [], 30)
    foreign = certs_of(tmp_path / "foreign", ["localhost"])
    with serving(good, port := broker.free_port(), tmp_path, require=True):
        for folder, name, passes in ((good, "dev", True), (good, "old", False), (foreign, "dev", False)):
            tls = secure.context(str(good / "ca.crt"), str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
            link = PahoLink("localhost", port, "dev", deadline_ms=3000, tls=tls)
            if passes:
                link.open()
            else:
                with pytest.raises(OSError):
                    link.open()
            assert link.is_connected() == passes
            link.close()


@links
def test_plain_text_on_the_tls_port_is_refused(fleet, kind):
    link = kind("localhost", fleet.devices, "dev-a", deadline_ms=2000, user="dev-a", password="x")
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
link.send(b"request")
print("reply", link.receive(5000), link.connections)
link.close()
"""


@pytest.mark.parametrize("emulator", [UNIX, ARM32], ids=lambda emulator: emulator.name)
def test_a_board_speaks_tls(emulator, fleet, tmp_path):
    """MicroPython, x86-64 and emulated 32-bit ARM, with the files `h2t2 flash` puts on a board; a foreign broker is refused."""
    if emulator.missing():
        pytest.skip(emulator.missing())
    login = {"ca": str(fleet.folder / "certs/ca.crt")}
    if fleet.client_certs:
        login.update(cert=str(fleet.folder / "certs/dev-a.crt"), key=str(fleet.folder / "certs/dev-a.key"))
    else:
        login.update(user="dev-a", password=fleet.password("dev-a"))
    worker = Client(fleet.workers, fleet.login("rdl"), [wire.topic("+", "request")])
    worker.client.on_message = lambda client, _d, message: client.publish(wire.topic("dev-a", "reply"), b"label", qos=1)
    for name, authority, said in (("good", "certs", "reply b'label' 1"), ("bad", "foreign", "refused")):
        folder = tmp_path / name
        folder.mkdir()
        text = {**login, "ca": str(fleet.folder / authority / "ca.crt")}
        lines = [f'{key} = "{value}"' for key, value in {"device": "dev-a", "broker": "localhost", **text}.items()]
        (folder / "config.toml").write_text(
            "\n".join([f"port = {fleet.devices}", "remote_shape = [30]", "model_id = 1", *lines])
        )
        (folder / "config.toml").chmod(0o600)
        config = board_config.load(folder / "config.toml")
        material(folder, config)
        (folder / "main.py").write_text(BOARD)
        out = emulator.run(folder / "main.py", [], folder, 60)
        assert out.startswith(said), out
        assert fleet.client_certs or fleet.password("dev-a") not in out
    worker.close()


def test_a_board_refuses_a_broker_whose_certificate_is_expired_or_anothers(tmp_path):
    if UNIX.missing() or broker.mosquitto() is None:
        pytest.skip(UNIX.missing() or "no mosquitto; run: sudo apt-get install mosquitto")
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=9)
    old = certs_of(tmp_path / "old", ["localhost"], day=past, days=2)
    for folder, why in ((old, "expired"), (certs_of(tmp_path / "other", ["elsewhere.example"]), "does not match")):
        board = tmp_path / f"board-{folder.name}"
        board.mkdir()
        with serving(folder, port := broker.free_port(), tmp_path):
            lines = [f"port = {port}", "remote_shape = [30]", "model_id = 1", f'ca = "{folder}/ca.crt"']
            (board / "config.toml").write_text("\n".join(lines))
            material(board, board_config.load(board / "config.toml"))
            (board / "main.py").write_text(BOARD)
            out = UNIX.run(board / "main.py", [], board, 30)
            assert out.startswith("refused") and why in out


def material(folder, config):
    from h2t2_tools.model import bundle

    model = folder / "m.h2m"
    model.write_bytes(bundle.from_tflite(ROOT / "models/breast_cancer/ldl.tflite"))
    for path, content in kinds.payload(kinds.KINDS["unix"], model, config, None, False).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)


def test_secrets_are_absent_from_every_log_at_debug_level(fleet, tmp_path):
    """Root logger at DEBUG, paho's own log, Mosquitto's log, what node, worker and board configuration print and represent."""
    script = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import h2t2.link.paho as link_paho
make = link_paho.make_client
def logged(*arguments, **options):
    client = make(*arguments, **options)
    client.enable_logger(logging.getLogger("paho"))
    return client
link_paho.make_client = logged
from h2t2_tools.fleet import endpoint
resolve = endpoint.resolve
def shown(*arguments):
    made = resolve(*arguments)
    logging.debug("%r %s", made, made)
    return made
endpoint.resolve = shown
from h2t2_tools.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    words = [
        "node",
        "--broker",
        f"mqtts://localhost:{fleet.devices}",
        "--device",
        "dev-a",
        "--samples",
        "20",
        "--beta",
        "0",
        "--deadline",
        "200",
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, *words, *map(str, options(fleet, "dev-a"))], capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr + (fleet.folder / "log").read_text()
    assert done.returncode == 0 and "Sending CONNECT" in said and "DEBUG" in said
    for name in NAMES:
        key = (fleet.folder / f"certs/{name}.key").read_text().split("\n")[1]
        assert key not in said and (fleet.client_certs or fleet.password(name) not in said)
    path = tmp_path / "c.toml"
    for line in ('password = "hidden-word"\nbeta = 7', 'password = "hidden-word"\nwifi_password = "hidden-word"\nport = 99999'):
        path.write_text(f"remote_shape = [30]\nmodel_id = 1\n{line}\n")
        with pytest.raises(UserError) as error:
            board_config.load(path)
        assert "hidden-word" not in str(error.value)


def test_secrets_that_others_may_read_are_refused(tmp_path, capfd):
    path = tmp_path / "password"
    path.write_text("hidden-word\n")
    for mode in (0o644, 0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(UserError, match="chmod 600"):
            secret(path)
    assert main(["node", "--user", "a", "--password-file", str(path)]) == 2
    path.chmod(0o600)
    assert secret(path) == path and "hidden-word" not in capfd.readouterr().err


def test_a_board_configuration_with_a_secret_is_its_owners_alone(tmp_path, monkeypatch):
    path = tmp_path / "c.toml"
    path.write_text('remote_shape = [30]\nmodel_id = 1\npassword = "hidden-word"\n')
    path.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600 .* H2T2_PASSWORD") as error:
        board_config.load(path)
    assert "hidden-word" not in str(error.value)
    path.chmod(0o600)
    assert board_config.load(path).content()["password"] == "hidden-word"
    path.write_text("remote_shape = [30]\nmodel_id = 1\n")
    path.chmod(0o644)
    monkeypatch.setenv(PASSWORD, "from-outside")
    assert board_config.load(path).content()["password"] == "from-outside"


def test_what_broker_config_writes(tmp_path, capsys):
    """Passwords are kept when it runs again, secrets are their owner's alone, and no password is in the report."""
    out = tmp_path / "b"
    assert main(["broker-config", "--out", str(out), "--device", "a", "b", "--json", "-"]) == 0
    first = capsys.readouterr()
    assert main(["broker-config", "--out", str(out), "--device", "a", "b", "c"]) == 0
    again = capsys.readouterr()
    passwords = {path.name: path.read_text().strip() for path in (out / "secrets").iterdir()}
    assert set(passwords) == {"a", "b", "c", "rdl", "operator"} and len(set(passwords.values())) == 5
    assert not [word for word in passwords.values() if word in first.out + first.err + again.out + again.err]
    assert all(Path(path).stat().st_mode & 0o077 == 0 for path in json.loads(first.out)["secrets"])
    assert min(len(word) for word in passwords.values()) >= 32 and "certs" in again.err
    assert not [word for word in passwords.values() if word in (out / "devices.passwd").read_text()]
    for text in ("allow_anonymous false", "max_packet_size", "max_connections", "use_username_as_clientid true"):
        assert text in (out / "mosquitto.conf").read_text()


def test_certs_keep_their_authority(tmp_path, capsys):
    out = tmp_path / "c"
    assert main(["certs", "--out", str(out), "--host", "broker.lan", "192.168.1.9", "--name", "a"]) == 0
    authority = (out / "ca.crt").read_bytes()
    assert main(["certs", "--out", str(out), "--name", "b"]) == 0
    assert (out / "ca.crt").read_bytes() == authority
    assert all(path.stat().st_mode & 0o077 == 0 for path in out.glob("*.key"))
    done = subprocess.run(
        ["openssl", "verify", "-CAfile", out / "ca.crt", out / "a.crt", out / "b.crt", out / "server.crt"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or "not found" in done.stderr, done.stderr
    assert main(["certs", "--out", str(out), "--name", "x/y"]) == 2
    (out / "ca.key").write_text("nonsense")
    assert main(["certs", "--out", str(out), "--name", "z"]) == 2
    assert "Traceback" not in capsys.readouterr().err

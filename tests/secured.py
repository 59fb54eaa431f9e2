"""A secured fleet for tests: a Mosquitto with TLS and logins, and its clients."""

import subprocess

import pytest
from support import need_mosquitto, open_to_readers

from h2t2.cpython.mqtt_session import make_client
from h2t2.cpython.paho import PahoLink
from h2t2.link import tls as secure
from h2t2.link.mqtt import MqttLink
from h2t2_tools.fleet import broker, broker_config, certs

NAMES = ["dev-a", "dev-b", "gate", "detector", "rdl", "operator", "watcher"]


links = pytest.mark.parametrize("kind", [PahoLink, MqttLink])


class Fleet:
    """A running Mosquitto of `h2t2 broker-config`, with the credentials of its clients."""

    def __init__(self, folder, client_certs):
        self.folder = folder
        certs.make(folder / "certs", ["localhost", "127.0.0.1"], NAMES, 30)
        certs.make(folder / "foreign", ["localhost"], NAMES, 30)
        self.devices, self.workers = broker.free_port(), broker.free_port()
        self.client_certs = client_certs
        self.process = None
        self.write()

    def write(self):
        """Write the broker's files for the certificates that are issued and not revoked."""
        certs = self.folder / "certs"
        plan = broker_config.Plan(
            ["dev-a", "dev-b"],
            ["rdl"],
            certs,
            self.client_certs,
            self.devices,
            worker_port=self.workers,
            bind="127.0.0.1",
            operators=("operator", "watcher"),
            gates={"gate": ["scores/+"]},
            detectors={"detector": ["scores/#"]},
        )
        self.report = broker_config.write(self.folder / "broker", plan)

    def start(self):
        open_to_readers(self.folder)
        log = (self.folder / "log").open("w")
        self.process = subprocess.Popen([broker.mosquitto(), "-c", self.report["config"]], stdout=log, stderr=log)
        for port in (self.devices, self.workers):  # Mosquitto opens them one after the other
            assert broker.wait_for_broker("127.0.0.1", port, 10), (self.folder / "log").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    def password(self, name):
        return (self.folder / "broker/secrets" / name).read_text().strip()

    def tls(self, name=None, authority="certs", **options):
        """Return a context that trusts this fleet's authority. name: client whose certificate (of `authority`) it shows."""
        own = (str(self.folder / authority / f"{name}.crt"), str(self.folder / authority / f"{name}.key")) if name else ()
        return secure.context(str(self.folder / "certs/ca.crt"), *own, **options)

    def login(self, name):
        """Return the credentials of a client: its certificate or its password."""
        if self.client_certs:
            return {"tls": self.tls(name)}
        return {"tls": self.tls(), "user": name, "password": self.password(name)}


@pytest.fixture(scope="module", params=["password", "certificate"])
def fleet(request, tmp_path_factory, localhost):
    need_mosquitto()
    server = Fleet(tmp_path_factory.mktemp(request.param), request.param == "certificate")
    server.start()
    yield server
    server.stop()


class Client:
    """A paho client that records its messages, subscriptions and refusals."""

    def __init__(self, port, login, topics=(), client_id=""):
        self.messages, self.subscribed, self.refused = [], [], None
        self.client = client = make_client(client_id, **login)
        client.on_message = lambda _c, _d, message: self.messages.append((message.topic, bytes(message.payload)))
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


def options(fleet, name, authority="certs"):
    words = ["--ca", fleet.folder / "certs/ca.crt"]
    if fleet.client_certs:
        return [*words, "--cert", fleet.folder / authority / f"{name}.crt", "--key", fleet.folder / authority / f"{name}.key"]
    return [*words, "--user", name, "--password-file", fleet.folder / "broker/secrets" / name]

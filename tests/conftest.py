"""Shared fixtures: real brokers, real interpreters. If one is missing, a test skips and names the command to install it."""

import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from h2t2_tools.fleet import broker as brokers
from h2t2_tools.fleet import profile

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("no clock", deadline=None)  # a busy machine may be slow, and no test measures time
settings.load_profile("no clock")
os.environ["H2T2_TRUST"] = "1"  # tests make pairs without h2t2 pair; tests/common/test_trust.py asks


for variable in profile.VARIABLES.values():
    os.environ.pop(variable, None)
if profile.path().exists():  # a developer's broker is nothing to a test
    os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "h2t2-tests-without-a-profile")


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """What commands remember of a user is not the developer's."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


def pytest_addoption(parser):
    parser.addoption("--mutations", type=int, default=20, metavar="N", help="damaged .tflite files, of 2000 (20)")
    parser.addoption("--kills", type=int, default=16, metavar="N", help="kills of a gate under load, of 200 (16)")


LAB = Path(__file__).parent / "lab"  # its long tests are evidence: benchmarks, chaos, experiments
# fixtures that need a browser or another project's server; their tests run in the whole suite only
HEAVY = {"browser", "mlserver"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Run the emulated Pico's tests first, because each keeps a core busy for minutes; at the end the other would idle."""
    items.sort(key=lambda item: "pico" not in item.nodeid)
    for item in items:
        if HEAVY & set(item.fixturenames):
            item.add_marker("whole")
        if item.get_closest_marker("whole") and LAB in item.path.parents:
            item.add_marker("evidence")
        if item.get_closest_marker("evidence"):
            item.add_marker("whole")
        if item.get_closest_marker("whole"):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _restored_signals():
    """A command that a test runs in its own process sets handlers for good; the next test begins with the usual ones."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def localhost():
    """The name of this machine for itself. A system from debootstrap does not know it until `make test` writes it, as root."""
    try:
        socket.getaddrinfo("localhost", 1)
    except OSError:
        pytest.skip("this system does not know localhost; run: echo 127.0.0.1 localhost | sudo tee -a /etc/hosts")
    return "localhost"


@pytest.fixture
def broker(tmp_path):
    """A Mosquitto of its own, which the test may stop and start again. host, port, url: where it is."""
    from support import mosquitto

    with mosquitto(tmp_path) as server:
        yield server


@pytest.fixture
def rdl(broker):
    """The process of a worker of the pair breast_cancer on that broker."""
    from support import worker

    with worker(broker.url, "breast_cancer") as process:
        yield process


@pytest.fixture(scope="session")
def key(tmp_path_factory):
    """A key that signs updates. private, public: its files; modulus, id: what nodes know of it."""
    from node_updates import made_key

    return made_key(tmp_path_factory.mktemp("keys"))


@pytest.fixture(params=["amqtt", "mosquitto"])
def broker_url(request):
    """A running broker of each kind, as its URL."""
    if request.param == "mosquitto" and brokers.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    with brokers.running(request.param) as url:
        yield url

"""Shared fixtures: the real broker, the real interpreters. What a machine lacks skips with the command that mends it."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from h2t2_tools.fleet import broker

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("no clock", deadline=None)  # a busy machine may take any time: no test looks at the clock
settings.load_profile("no clock")


def pytest_addoption(parser):
    parser.addoption("--mutations", type=int, default=20, metavar="N", help="damaged .tflite files, of 2000 (20)")


# what needs a browser or somebody else's server is for the whole suite
HEAVY = {"browser", "mlserver"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The emulated Pico's tests first: each keeps a core busy for minutes, and the other would idle beside the last of them."""
    items.sort(key=lambda item: "pico" not in item.nodeid)
    for item in items:
        if HEAVY & set(item.fixturenames):
            item.add_marker("whole")
        if item.get_closest_marker("whole"):
            item.add_marker("slow")


@pytest.fixture(params=["amqtt", "mosquitto"])
def broker_url(request):
    """A running broker of each kind, as its URL."""
    if request.param == "mosquitto" and broker.mosquitto() is None:
        pytest.skip("no mosquitto; run: sudo apt-get install mosquitto")
    with broker.running(request.param) as url:
        yield url

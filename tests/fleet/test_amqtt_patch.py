"""The patch of amqtt's private dict: only versions that are known get it."""

from importlib import metadata

import pytest

from h2t2_tools.fleet import broker


class Played:
    def __init__(self, subscriptions=None):
        if subscriptions is not None:
            self._subscriptions = subscriptions


@pytest.mark.parametrize("version", ["0.11.3", "0.12.1"])
def test_a_known_version_gets_a_dict_that_may_change_while_it_is_read(version, caplog):
    played = Played({})
    broker._patch_subscriptions(played, version)
    played._subscriptions.update(a=1, b=2)
    for name in played._subscriptions:
        played._subscriptions[name + name] = 0
    for name, _ in played._subscriptions.items():
        del played._subscriptions[name]
    assert not caplog.text


@pytest.mark.parametrize(
    "version, subscriptions", [("0.13.0", {}), ("1.0", {}), ("0.120.1", {}), ("0.12.9", []), ("0.12.9", None)]
)
def test_another_version_is_left_alone_with_a_warning(version, subscriptions, caplog):
    played = Played(subscriptions)
    broker._patch_subscriptions(played, version)
    assert getattr(played, "_subscriptions", None) is subscriptions
    assert f"amqtt {version} is unknown" in caplog.text and "--broker mosquitto" in caplog.text


def test_the_installed_version_is_known():
    pytest.importorskip("amqtt")
    assert metadata.version("amqtt").startswith(broker.PATCHED)
    with broker.running("amqtt") as url:
        assert broker.wait_for_broker(*broker.parse(url), 10)

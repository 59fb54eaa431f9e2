"""Programs that follow a fleet wait for a broker that is not there yet."""

import signal

import pytest

from h2t2_tools.cli import watching
from h2t2_tools.cli.main import main
from h2t2_tools.fleet import announcer
from h2t2_tools.fleet.broker import free_port
from h2t2_tools.fleet.dashboard import serve
from h2t2_tools.fleet.monitoring.follower import Follower


@pytest.fixture(autouse=True)
def signals():
    """The handlers of signals, which the programs change."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def followers(monkeypatch):
    """End the sessions that the programs start."""
    started, start = [], Follower.start

    def noted(follower, **options):
        started.append(start(follower, **options))
        return follower

    monkeypatch.setattr(Follower, "start", noted)
    yield
    for follower in started:
        follower.close()


@pytest.mark.parametrize(
    ("words", "module", "name"),
    [
        (["home-assistant"], announcer.Announcer, "look"),
        (["dashboard", "--port", "{port}", "--history", "{folder}/history.db"], serve, "serve"),
        (["metrics", "--listen", "{port}"], watching, "_signals"),
    ],
    ids=["home-assistant", "dashboard", "metrics"],
)
def test_a_program_goes_on_without_its_broker(tmp_path, monkeypatch, capsys, words, module, name):
    """It begins its work, which the test ends. A program that does not wait reports a failure instead."""
    reached = []

    def end(*_, **__):
        reached.append(name)
        if name == "look":  # which is called until an exception ends the program
            raise KeyboardInterrupt
        return [signal.SIGTERM]

    monkeypatch.setattr(module, name, end)
    words = [word.format(port=free_port(), folder=tmp_path) for word in words]
    assert main([*words, "--broker", f"mqtt://127.0.0.1:{free_port()}"]) == 0
    assert reached == [name] and "waiting for it" in capsys.readouterr().err

"""Nodes in Home Assistant: what its own parser makes of their messages, and the whole life of a node there, on Mosquitto."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest
from command_line import h2t2
from pseudo_terminal import Pty
from states import state
from support import ROOT, mosquitto, retained, until, worker

from h2t2.cpython.paho import Session, make_client
from h2t2.link import frames, wire
from h2t2.node import assistant
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import home_assistant
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.seen.costs import of_counters

pytestmark = pytest.mark.whole
PYTHON = ROOT / ".venv-assistant/bin/python"
NAME = "Wohnküche 2"


def parsed(names, told, name=NAME, message=None):
    """What Home Assistant makes of a message, and of a state told later."""
    if sys.version_info < (3, 11):
        pytest.skip("Home Assistant on the package index wants Python 3.11")
    if not PYTHON.exists():
        pytest.skip("no Home Assistant here; run: make .venv-assistant/.done")
    given = {
        "topic": assistant.topic(name),
        "message": message or assistant.discovery(name, names, told),
        "state": json.dumps(told),
        "status": [wire.status("online", 7).decode(), wire.status("offline", 7).decode()],
        "commands": {"beta": 0.25, "delta_fp": 0.5, "delta_fn": 1},
    }
    command = [PYTHON, ROOT / "tests/assistant_parser.py"]
    run = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["components"]


@pytest.mark.slow
def test_its_parser_and_templates_show_what_the_state_says():
    told = state(last=[3, 1, 1], paused=False, link="nobody")
    made = parsed(["motion"], told)
    assert {name: one["platform"] for name, one in made.items()} == {
        "decision": "binary_sensor", "share": "sensor", "cost": "sensor", "link": "sensor", "beta": "number",
        "delta_fp": "number", "delta_fn": "number", "pause": "switch", "model": "update",
    }  # fmt: skip
    assert made["decision"]["value"] == "ON" and made["decision"]["device_class"] == "motion"
    assert float(made["share"]["value"]) == round(100 * told["offloads"] / told["samples"], 1)
    costs = of_counters(told["scores"], told["answered"], told["local_cost"], told["paid"], told["beta"])
    assert float(made["cost"]["value"]) == pytest.approx(costs.own, abs=1e-4)
    assert made["link"]["value"] == "nobody" and made["pause"]["value"] == "OFF"
    assert float(made["beta"]["value"]) == pytest.approx(told["beta"] / 32768, abs=1e-4)
    assert json.loads(made["model"]["value"])["installed_version"] == str(told["model"])
    for name, q15 in (("beta", 8192), ("delta_fp", 16384), ("delta_fn", 32768)):
        assert json.loads(made[name]["command"]) == {"set": {name: q15}}
        assert made[name]["command_topic"] == wire.topic(NAME, "command")
    assert list(map(json.loads, made["pause"]["command"])) == [{"pause": 86400}, {"pause": 0}]
    assert {one["topic"] for one in made.values()} == {wire.topic(NAME, "state")}
    assert {tuple(one["available"]) for one in made.values()} == {("online", "offline")}
    assert len({one["unique_id"] for one in made.values()}) == len(made)


@pytest.mark.slow
def test_its_parser_shows_classes_by_name_and_what_is_not_known_yet():
    made = parsed(["cat", "dog", "two birds"], state(last=[3, 2, 0], classes=3))
    assert made["decision"]["platform"] == "sensor" and made["decision"]["value"] == "two birds"
    fresh = {**state(), "samples": 0, "last": None, "answered": [0] * 16, "scores": [0] * 16, "local_cost": [0] * 16, "paid": 0}
    made = parsed(["none"], fresh)
    assert made["decision"]["value"] == made["cost"]["value"] == "None" and made["decision"]["device_class"] is None


@pytest.mark.slow
def test_a_node_that_takes_updates_shows_its_local_models_version():
    told = {**state(), "update": {"counter": 7, "tried": 8, "trial": 0, "said": "back: its scores drift"}}
    made = json.loads(parsed(["motion"], told)["model"]["value"])
    assert made == {"installed_version": "7", "latest_version": "7", "release_summary": "back: its scores drift"}


@contextmanager
def home(one):
    """Home Assistant's place on a broker: what is said on its topics, and what it says."""
    heard = []

    def client():
        made = make_client("")
        made.on_message = lambda _client, _data, message: heard.append(
            (message.topic, message.payload.decode(), message.retain)
        )
        return made

    topics = [assistant.PREFIX + "/#", wire.topic("+", "state")]
    session = Session(one.host, one.port, client, topics).start()
    session.open()
    try:
        yield session, heard
    finally:
        session.close()


def states(heard):
    return [json.loads(text) for topic, text, _ in heard if topic.endswith("/state") and text]


@pytest.mark.slow
def test_the_life_of_a_node(tmp_path):
    """Told of when it comes, again when Home Assistant does, steered by what its controls publish, and forgotten."""
    place = assistant.topic("hall")
    options = ["--samples", "100000", "--every", "20ms", "--device", "hall", "--home-assistant", "motion"]
    with mosquitto(tmp_path) as one, worker(one.url), home(one) as (session, heard):
        command = [sys.executable, "-m", "h2t2_tools", "node", "--pair", "digits", "--broker", one.url, *options]

        def told(entry):
            return states(heard)[-1].get(entry) if states(heard) else None

        def tellings():
            return sum(topic == place for topic, _, _ in heard)

        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as node:
            try:
                assert until(lambda: tellings() == 1 and told("last"))
                session.publish(assistant.BIRTH, b"online", 1)
                assert until(lambda: tellings() == 2)
                message = retained(one, place)
                assert json.loads(message) == json.loads(assistant.discovery("hall", ["motion"], states(heard)[-1]))
                session.publish(wire.topic("hall", "command"), b'{"set": {"beta": 8192}}', 1)
                session.publish(wire.topic("hall", "command"), b'{"pause": 86400}', 1)
                assert until(lambda: (told("beta"), told("paused")) == (8192, True))
                assert until(lambda: {one["last"][1] for one in states(heard) if one["last"]} == {0, 1})
                refused = h2t2("fleet", "hall", "--forget", "--broker", one.url, "--listen", 1)
                assert refused.returncode == 1 and "is online" in refused.stderr
            finally:
                node.terminate()
        gone = h2t2("fleet", "hall", "--forget", "--broker", one.url, "--listen", 1, "--json", "-")
        assert gone.returncode == 0 and json.loads(gone.stdout)["device"] == "hall", gone.stderr
        assert until(lambda: heard[-1][0] == place and not heard[-1][1])
        for topic in (place, wire.topic("hall", "state"), wire.topic("hall", "status")):
            assert not retained(one, topic, 1)
        assert "no such device" in h2t2("fleet", "hall", "--broker", one.url, "--listen", 1).stderr
    if PYTHON.exists():
        assert parsed(["motion"], state(), "hall", message)["decision"]["platform"] == "binary_sensor"


@pytest.mark.slow
def test_a_gateway_shows_a_board_that_tells_no_state(tmp_path):
    end = Pty()
    with mosquitto(tmp_path) as one, home(one) as (_, heard):
        command = [sys.executable, "-m", "h2t2_tools", "gateway", "--port", f"{end.port}=tiny", "--broker", one.url]
        with subprocess.Popen([*command, "--fast", "--home-assistant", "door"], stderr=subprocess.PIPE, text=True) as gateway:
            try:
                assert until(lambda: "ready" in gateway.stderr.readline())
                end.write(frames.encode(frames.DECISION, b"\1\0\5\0\0"))
                assert until(lambda: states(heard)[-1:] and states(heard)[-1]["last"] == [5, 0, 0])
                end.write(frames.encode(frames.DECISION, b"\2\0\5\1\0"))
                assert until(lambda: states(heard)[-1]["last"] == [5, 1, 0], 8)  # not only after its ten seconds
            finally:
                gateway.terminate()
        message = retained(one, assistant.topic("tiny"))
    assert list(json.loads(message)["cmps"]) == ["decision", "share"]
    assert json.loads(message)["cmps"]["decision"]["dev_cla"] == "door"


@pytest.mark.parametrize(
    "shown, classes, why",
    [
        ("movement", None, "want none or a device class of a binary sensor: battery"),
        ("cat,dog", 2, "of two classes give the device class of class 1"),
        ("motion", 3, "1 names, with commas between them; there are 3 classes"),
        ("cat,dog,dog", 3, "each another"),
        ("cat,,dog", None, "1 to 40 characters"),
    ],
)
def test_what_cannot_be_shown_is_refused(shown, classes, why):
    with pytest.raises(UserError, match=why):
        home_assistant.names(shown, classes)


def test_the_line_of_a_configuration(capsys):
    given = {"remote_shape": [1], "model_id": 1}
    assert "home_assistant" not in NodeConfig(**given).content()
    assert NodeConfig(**given, home_assistant="motion").content()["home_assistant"] == ["motion"]
    costs = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    made = NodeConfig(**given, policy="adaptive", costs=costs, home_assistant="a, b, c").content()
    assert made["home_assistant"] == ["a", "b", "c"]
    assert main(["gateway", "--port", "/dev/null", "--home-assistant", "movement"]) == 2
    assert "want none or a device class" in capsys.readouterr().err

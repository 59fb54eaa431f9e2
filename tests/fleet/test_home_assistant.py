"""Nodes in Home Assistant: what its own parser makes of their messages, and the whole life of a node there, on Mosquitto."""

import json
import re
import sys
from contextlib import contextmanager

import pytest
from command_line import h2t2, ran, started
from hypothesis import given
from hypothesis import strategies as st
from pseudo_terminal import Pty
from states import Clock, state
from support import ROOT, retained, subscribed, until, worker

from h2t2.cpython import device_names
from h2t2.cpython.whole_frames import encode
from h2t2.link import frames, presence, wire
from h2t2_tools.cli.main import main
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import home_assistant
from h2t2_tools.fleet.announcer import Announcer, Rule
from h2t2_tools.fleet.config import NodeConfig
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.home_assistant import BIRTH, PREFIX
from h2t2_tools.fleet.monitoring.follower import Follower
from h2t2_tools.fleet.monitoring.prometheus import FleetCollector
from h2t2_tools.fleet.monitoring.savings import saved_so_far
from h2t2_tools.fleet.monitoring.state import parse_state
from h2t2_tools.fleet.monitoring.watched_fleet import SETTLED_S, Fleet

PYTHON = ROOT / ".venv-assistant/bin/python"
NAME = "Wohnküche 2"
FIGURES = ("cost", "saved-always", "saved-always-share", "saved-never", "saved-never-share")


def assistant(request):
    """What tests/assistant_parser.py says, in Home Assistant's environment."""
    if sys.version_info < (3, 11):
        pytest.skip("Home Assistant on the package index wants Python 3.11")
    if not (ROOT / ".venv-assistant/.done").exists():  # an installation without a compiler ends half-way
        pytest.skip("no Home Assistant here; run: make .venv-assistant/.done")
    command = [PYTHON, ROOT / "tests/assistant_parser.py"]
    run = ran(command, input=json.dumps(request), timeout=300)
    return json.loads(run.stdout)


def parsed(names, told, name=NAME, message=None, shown=None):
    """What Home Assistant makes of a message, and of a state told later. shown: what templates render, if not the state."""
    request = {
        "topic": home_assistant.topic(name),
        "message": message or home_assistant.discovery(name, names, told),
        "state": json.dumps(shown or told),
        "status": [presence.status("online", 7).decode(), presence.status("offline", 7).decode()],
        "commands": {"beta": 0.25, "delta_fp": 0.5, "delta_fn": 1},
    }
    return assistant(request)["components"]


@pytest.mark.whole
def test_its_parser_and_templates_show_what_the_state_says():
    told = state(last=[3, 1, 1], paused=False, link="nobody")
    made = parsed(["motion"], told)
    assert {name: one["platform"] for name, one in made.items()} == {
        "decision": "binary_sensor", "share": "sensor", "link": "sensor", "beta": "number",
        "delta_fp": "number", "delta_fn": "number", "pause": "switch", "model": "update", **dict.fromkeys(FIGURES, "sensor"),
    }  # fmt: skip
    assert made["decision"]["value"] == "ON" and made["decision"]["device_class"] == "motion"
    assert float(made["share"]["value"]) == round(100 * told["offloads"] / told["samples"], 1)
    figures = {"cost": 0.1, "saved": saved_so_far(parse_state(json.dumps(told).encode()))}
    shown = parsed(["motion"], told, shown=figures)
    assert float(shown["cost"]["value"]) == 0.1
    for choice in ("always", "never"):
        assert float(shown[f"saved-{choice}"]["value"]) == pytest.approx(figures["saved"][choice]["amount"], abs=0.001)
        share = 100 * figures["saved"][choice]["share"]
        assert float(shown[f"saved-{choice}-share"]["value"]) == pytest.approx(share, abs=0.06)
    assert made["link"]["value"] == "nobody" and made["pause"]["value"] == "OFF"
    assert float(made["beta"]["value"]) == pytest.approx(told["beta"] / 32768, abs=1e-4)
    assert json.loads(made["model"]["value"])["installed_version"] == str(told["model"])
    for name, q15 in (("beta", 8192), ("delta_fp", 16384), ("delta_fn", 32768)):
        assert json.loads(made[name]["command"]) == {"set": {name: q15}}
        assert made[name]["command_topic"] == wire.topic(NAME, "command")
    assert list(map(json.loads, made["pause"]["command"])) == [{"pause": 86400}, {"pause": 0}]
    assert {one["topic"] for name, one in made.items() if name not in FIGURES} == {wire.topic(NAME, "state")}
    assert {made[name]["topic"] for name in FIGURES} == {home_assistant.figures_topic(NAME)}
    assert {tuple(one["available"]) for one in made.values()} == {("online", "offline")}
    assert len({one["unique_id"] for one in made.values()}) == len(made)


@pytest.mark.whole
def test_its_parser_shows_classes_by_name_and_what_is_not_known_yet():
    made = parsed(["cat", "dog", "two birds"], state(last=[3, 2, 0], classes=3))
    assert made["decision"]["platform"] == "sensor" and made["decision"]["value"] == "two birds"
    fresh = {**state(), "samples": 0, "last": None, "answered": [0] * 16, "scores": [0] * 16, "local_cost": [0] * 16, "paid": 0}
    made = parsed(["none"], fresh, shown={"cost": None, "saved": None, "last": None})
    assert (
        made["decision"]["value"] == made["cost"]["value"] == made["saved-never"]["value"] == "None"
        and made["decision"]["device_class"] is None
    )


@pytest.mark.whole
def test_a_node_that_takes_updates_shows_its_local_models_version():
    told = {**state(), "update": {"counter": 7, "tried": 8, "trial": 0, "said": "back: its scores drift"}}
    made = json.loads(parsed(["motion"], told)["model"]["value"])
    assert made == {"installed_version": "7", "latest_version": "7", "release_summary": "back: its scores drift"}


@contextmanager
def home(one):
    """Home Assistant's place on a broker: what is said on its topics, and what it says."""
    heard = []

    def take(message):
        heard.append((message.topic, message.payload.decode(), message.retain))

    with subscribed(one, [PREFIX + "/#", wire.topic("+", "state")], take) as session:
        yield session, heard


def states(heard):
    return [json.loads(text) for topic, text, _ in heard if topic.endswith("/state") and text]


@contextmanager
def announcing(url, *rules):
    """`h2t2 home-assistant` in a process of its own."""
    with started("home-assistant", *rules, "--broker", url, stderr=None) as process:
        yield
    assert process.returncode == 0


@pytest.mark.whole
def test_the_life_of_a_node(broker):
    """Announced when it comes and again when Home Assistant starts, steered by Home Assistant's controls, and removed."""
    place = home_assistant.topic("hall")
    options = ["--samples", "100000", "--every", "20ms", "--device", "hall", "--report-decisions"]
    with worker(broker.url), home(broker) as (session, heard), announcing(broker.url, "h*=motion"):

        def last(entry):
            return states(heard)[-1].get(entry) if states(heard) else None

        def announcements():
            return sum(topic == place for topic, _, _ in heard)

        with started("node", "--pair", "digits", "--broker", broker.url, *options, stderr=None):
            assert until(lambda: announcements() == 1 and last("last"))
            session.publish(BIRTH, b"online", 1)
            assert until(lambda: announcements() == 2)
            message = retained(broker, place)
            assert json.loads(message) == json.loads(home_assistant.discovery("hall", ["motion"], states(heard)[-1]))
            session.publish(wire.topic("hall", "command"), b'{"set": {"beta": 8192}}', 1)
            session.publish(wire.topic("hall", "command"), b'{"pause": 86400}', 1)
            assert until(lambda: (last("beta"), last("paused")) == (8192, True))
            assert until(lambda: {state["last"][1] for state in states(heard) if state["last"]} == {0, 1})
            refused = h2t2("fleet", "hall", "--remove", "--broker", broker.url, "--listen", 1)
            assert refused.returncode == 1 and "is online" in refused.stderr
        gone = h2t2("fleet", "hall", "--remove", "--broker", broker.url, "--listen", 1, "--json", "-")
        assert gone.returncode == 0 and json.loads(gone.stdout)["device"] == "hall", gone.stderr
        assert until(lambda: place in [topic for topic, text, _ in heard if not text])
        for topic in (place, wire.topic("hall", "state"), wire.topic("hall", "status")):
            assert not retained(broker, topic, 1)
        assert "no such device" in h2t2("fleet", "hall", "--broker", broker.url, "--listen", 1).stderr
    if PYTHON.exists():
        assert parsed(["motion"], state(), "hall", message)["decision"]["platform"] == "binary_sensor"


@pytest.mark.whole
def test_a_gateway_shows_a_board_that_tells_no_state(broker):
    end = Pty()
    with home(broker) as (_, heard), announcing(broker.url, "tiny=door"):
        words = ["--port", f"{end.port}=tiny", "--broker", broker.url, "--fast"]
        with started("gateway", *words, ready="ready", stdout=None):
            end.write(encode(frames.DECISION, b"\1\0\5\0\0"))
            assert until(lambda: states(heard)[-1:] and states(heard)[-1]["last"] == [5, 0, 0])
            end.write(encode(frames.DECISION, b"\2\0\5\1\0"))
            assert until(lambda: states(heard)[-1]["last"] == [5, 1, 0], 8)  # not only after its ten seconds
            assert until(lambda: any(topic == home_assistant.topic("tiny") for topic, _, _ in heard))
        message = retained(broker, home_assistant.topic("tiny"))
    assert list(json.loads(message)["cmps"]) == ["decision", "share"]
    assert json.loads(message)["cmps"]["decision"]["dev_cla"] == "door"


class Played:
    """A follower whose fleet a test tells, and its announcer; `sent` is what that has published."""

    def __init__(self, *rules):
        self.clock, self.announcer = Clock(), Announcer([*rules])
        self.known, self.up, self.sent = Fleet(self.clock), True, []
        self.settle()

    @contextmanager
    def fleet(self):
        yield self.known

    def retain(self, topic, payload):
        if self.up:
            self.sent.append((topic, payload))
        return self.up

    def settle(self):
        """Let the broker have sent all that it retains."""
        self.clock.time += SETTLED_S
        self.known.settle()

    def reconnect(self, *devices):
        """Connect to a broker that holds only the states and announcements of these devices."""
        held = {home_assistant.topic(name): self.announcer._published[home_assistant.topic(name)] for name in devices}
        for each in (self.known, self.announcer):
            each.begin()
        self.known.listen()
        for name in devices:
            self.known.take(wire.topic(name, "state"), b'{"samples": 1}', True)
        for place, message in held.items():
            self.announcer.take(place, message.encode())

    def say(self, device, **entries):
        self.known.take(wire.topic(device, "state"), json.dumps({"samples": 1, **entries}).encode())

    def look(self):
        """What the announcer publishes at a look: device's topic -> message, or None."""
        self.announcer.look(self)
        sent, self.sent = self.sent, []
        return {topic: json.loads(payload) if payload else None for topic, payload in sent}


@pytest.fixture
def follower():
    return Played()


def test_a_device_is_announced_once_until_it_changes_and_removed_with_it(follower):
    assert not follower.look()
    place = home_assistant.topic("hall")
    follower.say("hall")
    assert list(follower.look()[place]["cmps"]) == ["decision", "share"]
    assert not follower.look()
    follower.say("hall", beta=1, samples=2)
    follower.up = False
    follower.look()
    follower.up = True
    assert list(follower.look()[place]["cmps"]) == ["decision", "share", "beta"]
    follower.known.take(wire.topic("hall", "state"), b"")
    assert follower.look() == {place: None, home_assistant.figures_topic("hall"): None}
    assert not follower.look()


def test_all_are_announced_again_when_the_connection_or_home_assistant_comes_up(follower):
    for name in ("a", "b"):
        follower.say(name)
    assert len(follower.look()) == 2
    follower.announcer.take(BIRTH, b"offline")
    assert not follower.look()
    follower.announcer.take(BIRTH, b"online")
    assert len(follower.look()) == 2
    follower.known.lose()
    follower.announcer.take(BIRTH, b"online")
    assert not follower.look()
    follower.reconnect("a", "b")
    assert len(follower.look()) == 2


def test_a_device_that_was_removed_while_we_were_away_stays_removed(follower):
    """It was announced again, and stayed for ever."""
    for name in ("stays", "old"):
        follower.say(name)
    follower.look()
    follower.reconnect("stays")
    for _ in range(2):
        assert home_assistant.topic("old") not in follower.look()
        follower.settle()
    assert list(follower.known.devices) == ["stays"]
    follower.say("old")  # it is a device again
    assert list(follower.look()) == [home_assistant.topic("old")]


def test_after_a_restart_of_a_broker_that_kept_nothing_only_who_comes_back_is_announced(follower):
    for n in range(200):
        follower.say(f"d{n}")
    follower.look()
    follower.reconnect()
    follower.say("d7")
    for _ in range(2):
        assert follower.look().keys() <= {home_assistant.topic("d7")}  # nothing is deleted, either: it may come back
        follower.settle()
    assert list(follower.known.devices) == ["d7"]


def test_an_announcement_without_a_device_is_deleted_unless_it_is_somebody_elses(follower):
    """A device was removed while no h2t2 home-assistant ran, by somebody who may not write below homeassistant."""
    follower.clock.time -= SETTLED_S
    own = home_assistant.discovery("gone", ["none"], {})
    follower.announcer.take(home_assistant.topic("gone"), own.encode())
    for name, message in (("a", b"{}"), ("b", b"[" * 9999), ("c", b'{"o": {"name": "other"}, "cmps": {}}'), ("d", b"\xff")):
        follower.announcer.take(f"homeassistant/device/{name}/config", message)
    assert not follower.look()  # its state may still come
    follower.settle()
    assert follower.look() == {home_assistant.topic("gone"): None, home_assistant.figures_topic("gone"): None}


def messages(follower):
    """The messages about the hall, until nothing changes."""
    seen = []
    while len(seen) < 9:
        message = follower.look().get(home_assistant.topic("hall"))
        if message is None:
            return seen
        seen.append(message)
    raise AssertionError("it never ends")


def looks(follower):
    """The components of messages()."""
    return [message["cmps"] for message in messages(follower)]


def test_a_component_that_goes_or_changes_its_kind_is_removed_as_home_assistant_wants_it(follower):
    """Home Assistant keeps what is left out, and an entity of another platform under the same name."""
    follower.say("hall", classes=2, streams={"door": [1, 9, 0], "yard": [1, 9, 0]})
    (described,) = looks(follower)
    door, yard = (name for name in described if name.startswith("decision-"))
    follower.say("hall", classes=2, streams={"yard": [1, 9, 0]})
    removing, last = looks(follower)
    assert removing == {**last, door: {"p": "binary_sensor"}} and yard in last
    follower.say("hall", classes=3, streams={"yard": [1, 9, 0]})
    removing, last = looks(follower)
    assert {removing[name]["p"] for name in ("decision", yard)} == {"binary_sensor"} and len(removing["decision"]) == 1
    assert last["decision"]["p"] == last[yard]["p"] == "sensor"
    follower.announcer.take(BIRTH, b"online")
    assert looks(follower) == [last]


@pytest.mark.whole
def test_home_assistant_shows_what_the_device_has_and_nothing_else(follower):
    """By its own rule for removal: of the messages in their order."""
    sent, last = [], []
    for entries in (
        {"classes": 2, "streams": {"door": [1, 9, 0], "yard": [1, 9, 0]}, "beta": 1, "paused": False},
        {"classes": 2, "streams": {"yard": [1, 9, 0]}},
        {"classes": 3, "streams": {"yard": [1, 9, 0]}},
        {"classes": 2},
    ):
        follower.say("hall", **entries)
        sent += messages(follower)
        last.append(len(sent) - 1)
    assert last == [0, 2, 4, 6]  # each change wants two
    shown = assistant({"topic": home_assistant.topic("hall"), "messages": list(map(json.dumps, sent))})["shown"]
    for n in last:
        assert shown[n] == {name: [one["p"]] for name, one in sent[n]["cmps"].items()}
    shown = assistant({"topic": home_assistant.topic("hall"), "messages": [json.dumps(sent[n]) for n in last]})["shown"]
    assert shown[-1]["decision"] == ["binary_sensor", "sensor"]  # without the others it keeps both


def test_a_component_that_went_while_we_were_away_is_removed():
    """The broker's message says what Home Assistant knows."""
    before, after = Played(), Played()
    before.say("hall", beta=1)
    before.announcer.look(before)
    after.announcer.take(*before.sent[0])
    after.say("hall")
    removing, last = looks(after)
    assert removing == {**last, "beta": {"p": "number"}}


def test_the_first_rule_that_matches_names_the_decision(caplog):
    follower = Played(*map(Rule.parse, ("porch-1=door", "p*=motion", "b=x, y, z")))
    for name, classes in (("porch-1", 2), ("porch-2", 2), ("hall", 2), ("p3", 3), ("b", 3)):
        follower.say(name, classes=classes)
    follower.look()
    follower.announcer.take(BIRTH, b"online")
    decisions = {message["dev"]["name"]: message["cmps"]["decision"] for message in follower.look().values()}
    assert {name: decision.get("dev_cla") for name, decision in decisions.items()} == {
        "porch-1": "door", "porch-2": "motion", "hall": None, "p3": "enum", "b": "enum"
    }  # fmt: skip
    assert decisions["b"]["ops"] == ["x", "y", "z"] and decisions["p3"]["ops"] == ["0", "1", "2"]
    assert caplog.text.count("p3: 1 names for 3 classes") == 1


def test_prices_are_named_in_words_of_the_event():
    for names, missed in ((["ok", "broken"], "broken"), (None, "event")):
        entities = json.loads(home_assistant.discovery("hall", ["none"], state(class_names=names)))["cmps"]
        prices = {key: entities[key]["name"] for key in ("beta", "delta_fp", "delta_fn")}
        wanted = {"beta": "Price of asking", "delta_fp": "Cost of a false alarm", "delta_fn": f"Cost of a missed {missed}"}
        assert prices == wanted


@given(st.text(min_size=1).filter(device_names.is_device), st.text(min_size=1).filter(device_names.is_device))
def test_different_devices_have_different_identifiers(a, b):
    assert re.fullmatch("[a-zA-Z0-9_-]+", home_assistant.identity(a))
    assert (home_assistant.identity(a) == home_assistant.identity(b)) == (a == b)


@pytest.mark.parametrize(
    "rule, why",
    [
        ("hall=movement", "want none or a device class of a binary sensor: battery"),
        ("hall=cat,dog", "of two classes give the device class of class 1"),
        ("hall=cat,dog,dog", "different names"),
        ("hall=cat,,dog", "1 to 40 characters"),
        ("motion", "want DEVICE=CLASS"),
    ],
)
def test_a_rule_that_cannot_be_shown_is_refused(rule, why, capsys):
    with pytest.raises(UserError, match=why):
        Rule.parse(rule)
    assert main(["home-assistant", rule]) == 2 and why in capsys.readouterr().err


def test_a_device_reports_its_decisions_only_where_asked():
    content = {"remote_shape": [1], "model_id": 1}
    assert "report_decisions" not in NodeConfig(**content).content()
    assert NodeConfig(**content, report_decisions=True).content()["report_decisions"] is True


def test_a_device_whose_pair_names_its_classes_shows_the_names(follower):
    follower.say("hall", last=[3, 1, 0], classes=2, class_names=["cat", "dog"])
    follower.say("door", last=[3, 1, 0], classes=2, class_names=["{{ secret }}", "dog"])  # a state is a stranger's text
    sent = follower.look()
    decision = sent[home_assistant.topic("hall")]["cmps"]["decision"]
    assert decision["ops"] == ["cat", "dog"] and "['cat', 'dog'][value_json.last[1]]" in decision["val_tpl"]
    assert home_assistant.topic("door") not in sent


@pytest.mark.whole
def test_a_broker_that_forgot_devices_is_believed(broker):
    """Its restart, without persistence, is as if 200 devices had been removed while the connection was away: neither Home
    Assistant nor Prometheus hears of them."""
    announcer = Announcer([])
    with home(broker) as (session, heard):
        follower = Follower(Endpoint(broker.host, broker.port), announcer).start()

        def devices():
            """Those that Prometheus would hear of."""
            announcer.look(follower)
            families = FleetCollector(follower).collect()
            return {sample.labels["device"] for family in families for sample in family.samples if "device" in sample.labels}

        try:
            names = ["kept", *[f"old{n}" for n in range(200)]]
            for name in names:
                session.publish(wire.topic(name, "state"), json.dumps(state()), 1, True)
            assert until(lambda: devices() == {*names} and len(announced(heard)) == 201)
            broker.stop()
            heard.clear()
            broker.start()
            assert until(lambda: session.publish(wire.topic("kept", "state"), json.dumps(state()), 1, True))
            assert until(lambda: devices() == {"kept"} and announced(heard))
            assert announced(heard) == {home_assistant.topic("kept")}
        finally:
            follower.close()


def announced(heard):
    """The topics of the announcements that somebody heard."""
    return {topic for topic, text, _ in heard if topic.startswith(PREFIX) and topic.endswith("/config") and text}

"""A node in Home Assistant: when it is told of, and what is told at once. What Home Assistant makes of it: tests/fleet."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Link, recorded, set_clock
from support import Ldl, paper

from h2t2.link import wire
from h2t2.node import assistant
from h2t2.node.assistant import BIRTH, Assistant
from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.sensing import Sensing
from h2t2.node.service import Service


@given(st.text(min_size=1).filter(wire.is_device), st.text(min_size=1).filter(wire.is_device))
def test_any_name_becomes_one_of_its_own(a, b):
    assert re.fullmatch("[a-zA-Z0-9_-]+", assistant.identity(a))
    assert (assistant.identity(a) == assistant.identity(b)) == (a == b)


def test_only_what_the_state_has_is_shown():
    small = json.loads(assistant.discovery("tiny", ["door"], {"samples": 1, "offloads": 0}))
    assert list(small["cmps"]) == ["decision", "share"]
    classes = json.loads(assistant.discovery("big", ["a", "b", "c"], {"beta": 1, "model": 2}))
    assert classes["cmps"]["decision"]["ops"] == ["a", "b", "c"] and "delta_fp" not in classes["cmps"]


def test_it_is_told_whenever_the_link_or_home_assistant_has_come_up():
    link = Link()
    told = Assistant(link, "kitchen", ["motion"])

    def tellings():
        told.look(lambda: {"beta": 1})
        return len(link.retained)

    assert tellings() == 0  # not connected yet
    link.connections = 1
    assert [tellings(), tellings()] == [1, 1]
    link.also = [b"offline"]
    assert tellings() == 1
    link.also = [b"online"]
    assert [tellings(), tellings()] == [2, 2]
    link.connections, link.up = 2, False
    assert tellings() == 2
    link.up = True
    assert [tellings(), tellings()] == [3, 3]
    assert {topic for topic, _ in link.retained} == {"homeassistant/device/h2t2-kitchen/config"} and BIRTH.startswith("homeass")


def test_a_board_that_wakes_has_told_it_before():
    """3 kB at each waking would cost more than the sample; a broker that has forgotten is told when Home Assistant comes up."""
    link = Link()
    told = Assistant(link, "kitchen", ["motion"], True)
    link.connections = 1
    told.look(dict)
    assert not link.retained
    link.also = [b"online"]
    told.look(dict)
    assert len(link.retained) == 1


@pytest.fixture
def service(monkeypatch):
    now = [0]
    set_clock(monkeypatch, lambda: now[0])
    link = Link()
    link.connections = 1
    node = Node(paper(), Ldl(), link, lambda *_: None, 1, link.boot, 1, 1000)
    sensing = Sensing(recorded([15] * 4), 0, True, node.complain)
    keeper = Keeper(node.policy, None)
    made = Service(node, sensing, (1,), keeper, telemetry_s=10, log=lambda _: None, assistant=Assistant(link, "d", ["motion"]))
    made.now = now
    return made


def test_a_changed_decision_is_told_at_once_but_not_more_than_once_a_second(service):
    node, link, now = service.node, service.node.link, service.now
    service._look()
    told = [len(link.reported)]
    for ms, decision in ((100, 1), (1100, 1), (1200, 0), (1300, 1), (2200, 0), (4000, 0), (9000, 0)):
        now[0], node.last = ms, (3, decision, 0)
        service._look()
        told.append(len(link.reported))
    # at 0 the first state; at 1100 the decision of 100; at 2200 the next, of 1200 and 1300 nothing
    assert told == [1, 1, 2, 2, 2, 3, 3, 3]
    assert json.loads(link.reported[-1])["last"] == [3, 0, 0]


def test_what_a_command_changed_is_told_at_once(service):
    link = service.node.link
    service._look()
    for ms, command, entry, value in ((100, b'{"pause": 60}', "paused", True), (200, b'{"set": {"beta": 99}}', "beta", 99)):
        service.now[0] = ms
        link.commands = [command]
        before = len(link.reported)
        service._look()
        assert len(link.reported) == before + 1 and json.loads(link.reported[-1])[entry] == value
    link.commands = [b"nonsense"]
    service._look()
    assert len(link.reported) == before + 1

"""When a node reports its state: after a changed decision, after a command."""

import json

import pytest
from scripted import Link, recorded, set_clock
from support import Ldl, paper

from h2t2.node.keeper import Keeper
from h2t2.node.node import Node
from h2t2.node.sensing import Sensing
from h2t2.node.service import Service


@pytest.fixture
def service(monkeypatch):
    now = [0]
    set_clock(monkeypatch, lambda: now[0])
    link = Link()
    link.connections = 1
    node = Node(paper(), Ldl(), link, lambda *_: None, model_id=1, boot=link.boot, window=1, deadline_ms=1000)
    sensing = Sensing(recorded([15] * 4), patient=True, complain=node.complain)
    keeper = Keeper(node.policy, None)
    made = Service(node, sensing, keeper, shape=(1,), telemetry_s=10, log=lambda _: None, report_decisions=True)
    made.now = now
    return made


def test_a_changed_decision_is_reported_at_most_once_a_second(service):
    node, link, now = service.node, service.node.link, service.now
    service._housekeeping()
    told = [len(link.reported)]
    for ms, decision in ((100, 1), (1100, 1), (1200, 0), (1300, 1), (2200, 0), (4000, 0), (9000, 0)):
        now[0], node.last = ms, (3, decision, 0)
        service._housekeeping()
        told.append(len(link.reported))
    # at 0 the first state; at 1100 the decision of 100; at 2200 the next, of 1200 and 1300 nothing
    assert told == [1, 1, 2, 2, 2, 3, 3, 3]
    state = json.loads(link.reported[-1])
    assert state["last"] == [3, 0, 0] and state["telemetry_s"] == 10


def test_a_change_by_a_command_is_reported_at_once(service):
    link = service.node.link
    service._housekeeping()
    for ms, command, entry, value in ((100, b'{"pause": 60}', "paused", True), (200, b'{"set": {"beta": 99}}', "beta", 99)):
        service.now[0] = ms
        link.commands = [command]
        before = len(link.reported)
        service._housekeeping()
        assert len(link.reported) == before + 1 and json.loads(link.reported[-1])[entry] == value
    link.commands = [b"nonsense"]
    service._housekeeping()
    assert len(link.reported) == before + 1

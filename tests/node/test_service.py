"""The loop around a node: commands carried out, pauses, resets, telemetry."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import running
from support import paper

import h2t2.clock
import h2t2.node.commands
import h2t2.node.service
from h2t2.clock import ticks_ms
from h2t2.core.adaptive import Adaptive
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.node.app import App
from h2t2.node.memory_slots import BufferSlot
from h2t2.node.node import FALLBACK, REMOTE
from h2t2.node.service import state
from h2t2.node.sleep import Sleep
from h2t2.node.store import Store


def test_costs_are_set():
    service, node, decisions, _ = running()
    node.link.commands.append(b'{"set": {"beta": 111, "delta_fn": 222}}')
    service.run()
    assert (node.policy.beta, node.policy.delta_fn, node.policy.delta_fp) == (111, 222, 22938)
    assert node.policy.rates == paper(delta_fn=222).rates and service.carried_out == 1 and len(decisions) == 30
    service, node, _, _ = running(Adaptive())
    node.link.commands.append(b'{"set": {"beta": 3000, "delta_fp": 9000}}')
    service.run()
    assert node.policy.effective == Adaptive(beta=3000, delta_fp=9000).effective


@pytest.mark.parametrize("seconds", [1, 5])
def test_a_pause_offloads_nothing_and_ends(monkeypatch, seconds):
    now = [0]
    monkeypatch.setattr(h2t2.clock, "ticks_ms", lambda: now[0] % 2**30)
    service, node, decisions, _ = running(bins=(5,) * 12)
    before = list(node.policy.state())

    def act(tag, k, decision, source):
        decisions.append((tag, k, decision, source))
        now[0] += 1000

    node.actuate = act
    node.link.commands.append(b'{"pause": %d}' % seconds)
    service.run(seconds)
    assert [source for *_, source in decisions] == [FALLBACK] * seconds and node.unasked == seconds
    assert list(node.policy.state()) == before  # not asked, nothing charged
    service.run()
    assert {source for *_, source in decisions[seconds:]} == {REMOTE}


def test_the_state_counts_exceptions_of_what_acts():
    """Of these alone: those of the sensor have a count of their own."""
    service, node, _, _ = running(bins=(0,) * 20)

    def act(tag, k, decision, source):
        if tag % 2:
            raise OSError("the relay is not there")

    node.actuate = act
    service.run()
    told = state(service)
    assert (told["act_errors"], told["sensor_errors"], told["errors"], told["samples"]) == (10, 0, 0, 20)


def test_a_reset_forgets_and_an_old_reply_teaches_nothing():
    blank = paper(epsilon=32768, feedback="all")
    service, node, decisions, _ = running(blank)
    service.run(10)
    assert node.policy.lessons == 10
    last = node.policy.tickets.last
    node.link.answers = False
    node.step(5, (1,), b"x", "held")
    node.link.commands.append(b'{"reset": true}')
    service._housekeeping()
    assert decisions[-1][0] == "held" and decisions[-1][3] == FALLBACK  # decided, not forgotten
    assert node.policy.lessons == 0 and node.policy.tickets.last == last + 1
    node.link.waiting.append(worker_wire.encode_reply(wire.OK, 9, last + 1, 1, 0))
    node.poll()
    assert node.policy.lessons == 0 and node.strangers == 1


def test_commands_survive_a_restart_and_a_stranger_cannot_flood():
    memory = bytearray(4096)
    store = Store([BufferSlot(memory, 0, 2048), BufferSlot(memory, 2048, 2048)])
    service, node, decisions, said = running(store=store)
    node.link.commands += [b'{"set": {"beta": 777}}'] + [b"nonsense"] * 1000 + [b'{"pause": 0}'] * 10
    node.link.commands += [b'{"set": {"delta_fn": 888}}']
    for _ in range(1100):
        service._housekeeping()
    assert service.carried_out == 4 and service.refused == 1000 + 7 + 1 and len(said) < 40
    again, node, _, _ = running(store=store)
    assert again.keeper.restored and node.policy.beta == node.policy.charge == 777


def test_a_command_is_answered_and_one_id_acts_once():
    service, node, _, _ = running()
    node.link.commands += [b'{"id": "a", "set": {"beta": 111}}', b'{"id": "b", "set": {"beta": 222}}']
    node.link.commands += [b'{"id": "a", "set": {"beta": 111}}', b'{"id": "c", "set": {"beta": 40000}}', b"{"]
    for _ in range(5):
        service._housekeeping()
    assert node.policy.beta == 222 and service.carried_out == 2
    told = [json.loads(answer) for answer in node.link.answered]
    done = {"ok": True, "why": ""}
    assert told[:3] == [{"id": "a", **done}, {"id": "b", **done}, {"id": "a", **done}]
    assert told[3]["id"] == "c" and not told[3]["ok"] and "0..32768" in told[3]["why"]
    assert told[4] == {"id": "", "ok": False, "why": "command is not JSON"}


def test_a_command_past_its_time_is_refused_and_without_a_clock_it_is_said(monkeypatch):
    now = [1_800_000_000]
    monkeypatch.setattr(h2t2.node.commands, "unix_now", lambda: now[0])
    service, node, _, _ = running()
    node.link.commands += [
        b'{"id": "a", "until": 1799999999, "set": {"beta": 1}}',
        b'{"id": "b", "until": 1800000000, "reset": true}',
    ]
    service._housekeeping()
    service._housekeeping()
    now[0] = 0
    node.link.commands += [b'{"id": "c", "until": 5, "set": {"beta": 3}}']
    service._housekeeping()
    told = [json.loads(answer) for answer in node.link.answered]
    assert [one["ok"] for one in told] == [False, True, True] and "1 s after its time" in told[0]["why"]
    assert "clock is not set" in told[2]["why"] and node.policy.beta == 3


def test_the_state_tells_what_an_operator_asks():
    service, node, _, _ = running(store=Store([BufferSlot(bytearray(2048), 0, 2048), BufferSlot(bytearray(2048), 0, 2048)]))
    service.cause = "wdt"
    service.run()
    told = json.loads(node.link.reported[-1])
    want = {"beta": 9830, "delta_fp": 22938, "delta_fn": 32768, "policy": "h2t2", "bits": 4, "model": 1, "boot": 9}
    want |= {"wire": 2, "snapshot": 7, "snapshot_age_s": 0, "link": "up", "start": "wdt", "namesakes": False}
    assert want.items() <= told.items() and told["runtime"].count(".") == 2


def test_one_line_a_change_and_a_report_of_it():
    """The broker goes, the workers go, a namesake comes: a line each, not one a sample; the retained state says it at once."""
    service, node, _, said = running(bins=(5,) * 400)
    link = node.link

    def turns(n):
        for _ in range(n):
            service._turn()

    service.sensing.due = ticks_ms()
    turns(40)
    link.up, link.trouble = False, "connection refused"
    turns(40)
    link.up, link.worker_count = True, 0
    turns(40)
    link.worker_count = 1
    turns(40)
    link.has_namesake = lambda: True
    turns(40)
    assert said == [
        "from now on: the broker is away (connection refused)",
        "from now on: no worker serves the model",
        "from now on: the remote model answers",
        "another device bears this name: each takes the other's connection away; rename one",
    ]
    assert [json.loads(one)["link"] for one in link.reported] == ["down", "nobody", "up", "up"]
    assert json.loads(link.reported[-1])["namesakes"]
    link.has_namesake = lambda: False
    turns(1)
    assert len(said) == 4 and not json.loads(link.reported[-1])["namesakes"]


def test_the_state_is_told_by_the_clock(monkeypatch):
    now = [0]
    monkeypatch.setattr(h2t2.clock, "ticks_ms", lambda: now[0] % 2**30)
    service, node, _, _ = running(bins=(5,) * 3000)
    service.telemetry_s = 10
    for n in range(400):
        now[0] = n * 100
        service._housekeeping()
    assert len(node.link.reported) == 3


def test_stop_decides_and_saves_at_once():
    store = Store([BufferSlot(bytearray(2048), 0, 2048), BufferSlot(bytearray(2048), 0, 2048)])
    service, node, decisions, _ = running(bins=(5,) * 1000, store=store, window=8)
    node.link.answers = False
    made = node.actuate
    node.actuate = lambda *given: made(*given) or (len(decisions) == 3 and service.stop())
    node.link.worker_count = 1
    node.wait_ms = 50  # the first three are given up quickly
    service.run()
    assert 3 <= len(decisions) <= 16 and not node.in_flight and node.samples == len(decisions)
    assert service.keeper.saves and running(store=store)[0].keeper.restored


@given(st.binary(max_size=300))
def test_whatever_comes_as_a_command_the_node_goes_on(payload):
    service, node, decisions, _ = running(bins=(5,) * 3)
    node.link.commands.append(payload)
    service.run()
    assert len(decisions) == 3 and service.errors == 0


def test_a_table_is_taken_by_the_policy_that_has_one():
    """{"prior": [...]}: in force at once; refused, with the reason, by H2T2, of another length, and where it is no list."""
    service, node, _, _ = running(Adaptive())
    table = [32768 - 2048 * k for k in range(16)]
    for id, prior in (("a", table), ("b", table[1:]), ("c", {}), ("d", [1.5] * 16)):
        node.link.commands.append(json.dumps({"id": id, "prior": prior}).encode())
    service.run()
    answers = [json.loads(answer) for answer in node.link.answered]
    assert [answer["ok"] for answer in answers] == [True, False, False, False]
    assert "15 numbers, want 16" in answers[1]["why"] and "list" in answers[2]["why"] and "integer" in answers[3]["why"]
    assert node.policy.forecaster.prior.tolist() == [32767, *table[1:]]
    assert (service.carried_out, service.refused) == (1, 3)
    service, node, _, _ = running()
    node.link.commands.append(json.dumps({"prior": table}).encode())
    service.run()
    assert "takes no table" in json.loads(node.link.answered[0])["why"]


def test_what_lies_far_outside_is_said_now_and_then():
    service, node, _, said = running(bins=[5] * 9)
    counts = iter([0, 1, 1, 2, 3, 4, 5, 6, 7])
    app = SimpleNamespace(saturated=lambda: next(counts, 7), gaps=lambda: 0, report=lambda: {"saturated": 7}, logged=(0, 0))
    app.log_measurements = lambda remark: App.log_measurements(app, remark)
    service.app = app
    service.run()
    told = [text for text in said if "far outside" in text]
    assert [text.split("(")[1] for text in told] == [f"{n} samples so far)" for n in (1, 2, 4)]
    assert json.loads(node.link.reported[-1])["saturated"] == 7


class Full:
    """A store on a board whose heap is full."""

    damaged = 0

    def open(self):
        return None

    def writing(self, size, chunks):
        raise MemoryError("memory allocation failed")


def test_a_node_sleeps_though_neither_its_snapshot_nor_its_report_has_room(monkeypatch):
    class Asleep(Exception):
        pass

    def nap(ms, node, feed):
        raise Asleep

    service, node, _, said = running(store=Full())
    node.samples = 1
    sleep = SimpleNamespace(deep=True, worth=lambda ms, link: True, nap=nap)
    monkeypatch.setattr(node.link, "report_state", lambda state: bytearray(1 << 62))
    with pytest.raises(Asleep):
        Sleep.take_turn(sleep, 60000, service)
    assert service.keeper.unsaved == 1 and service.errors == 1


def test_turns_that_fail_do_not_spin(monkeypatch):
    rests = []
    service, node, _, _ = running()
    monkeypatch.setattr(h2t2.node.service, "pause", lambda ms: rests.append(ms) or len(rests) == 5 and service.stop())
    monkeypatch.setattr(service, "_turn", lambda: bytearray(1 << 62))
    service.run()
    assert len(rests) == 5 == service.errors and min(rests) >= 10


def test_a_link_that_only_a_reset_can_help_starts_the_node_again_after_it_has_saved():
    memory = bytearray(8192)
    service, node, _, said = running(store=Store([BufferSlot(memory, 0, 4096), BufferSlot(memory, 4096, 4096)]))
    node.link.is_deaf = lambda: True
    service.run()
    assert service.next_cause == "radio" and service.keeper.saves
    assert any("nothing passes: starting again" in line for line in said)

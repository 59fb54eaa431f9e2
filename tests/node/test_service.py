"""The loop around a node: commands carried out, pauses, resets, telemetry."""

import json

from hypothesis import given
from hypothesis import strategies as st
from scripted import running
from support import paper

import h2t2.node.commands
import h2t2.node.service
from h2t2.core.calibrating import Calibrating
from h2t2.link import wire
from h2t2.node.node import FALLBACK, REMOTE
from h2t2.node.snapshot import BufferSlot, Store, save


def test_costs_are_set():
    service, node, decisions, _ = running()
    node.link.commands.append(b'{"set": {"beta": 111, "delta_fn": 222}}')
    service.run()
    assert (node.policy.beta, node.policy.delta_fn, node.policy.delta_fp) == (111, 222, 22938)
    assert node.policy.rates == paper(delta_fn=222).rates and service.commands == 1 and len(decisions) == 30
    service, node, _, _ = running(Calibrating())
    node.link.commands.append(b'{"set": {"beta": 3000, "delta_fp": 9000}}')
    service.run()
    assert (node.policy.lower, node.policy.upper) == (
        Calibrating(beta=3000, delta_fp=9000).lower,
        Calibrating(beta=3000, delta_fp=9000).upper,
    )


def test_a_pause_offloads_nothing_and_ends(monkeypatch):
    now = [0]
    monkeypatch.setattr(h2t2.node.service, "ticks_ms", lambda: now[0] % 2**30)
    service, node, decisions, _ = running(bins=(5,) * 12)
    before = save(node.policy)

    def act(tag, k, decision, source):
        decisions.append((tag, k, decision, source))
        now[0] += 1000

    node.act = act
    node.link.commands.append(b'{"pause": 5}')
    service.run(5)
    assert [source for *_, source in decisions] == [FALLBACK] * 5 and node.unasked == 5
    assert save(node.policy) == before  # not asked, nothing charged
    service.run()
    assert {source for *_, source in decisions[5:]} == {REMOTE}


def test_a_reset_forgets_and_an_old_reply_teaches_nothing():
    blank = paper(epsilon=32768, feedback="all")
    service, node, decisions, _ = running(blank)
    service.run(10)
    assert node.policy.taught == 10
    last = node.policy.tickets.last
    node.link.answers = False
    node.step(5, (1,), b"x", "held")
    node.link.commands.append(b'{"reset": true}')
    service._command()
    assert decisions[-1][0] == "held" and decisions[-1][3] == FALLBACK  # decided, not forgotten
    assert node.policy.taught == 0 and node.policy.tickets.last == last + 1
    node.link.waiting.append(wire.encode_reply(wire.OK, 9, last + 1, 1, 0))
    node.poll()
    assert node.policy.taught == 0 and node.strangers == 1


def test_commands_survive_a_restart_and_a_stranger_cannot_flood():
    memory = bytearray(4096)
    store = Store([BufferSlot(memory, 0, 2048), BufferSlot(memory, 2048, 2048)])
    service, node, decisions, said = running(store=store)
    node.link.commands += [b'{"set": {"beta": 777}}'] + [b"nonsense"] * 1000 + [b'{"pause": 0}'] * 10
    node.link.commands += [b'{"set": {"delta_fn": 888}}']
    for _ in range(1100):
        service._command()
    assert service.commands == 4 and service.commands_refused == 1000 + 7 + 1 and len(said) < 40
    again, node, _, _ = running(store=store)
    assert again.restored and node.policy.beta == node.policy.charged == 777


@given(st.binary(max_size=300))
def test_whatever_comes_as_a_command_the_node_goes_on(payload):
    service, node, decisions, _ = running(bins=(5,) * 3)
    node.link.commands.append(payload)
    service.run()
    assert len(decisions) == 3 and service.errors == 0


def test_telemetry_tells_the_counters():
    service, node, _, _ = running()
    service.run()
    told = json.loads(node.link.reported)
    assert told["samples"] == told["offloads"] == told["taught"] == 30 and told["fallbacks"] == told["unasked"] == 0

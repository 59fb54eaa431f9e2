"""Every sample is decided: at the edges of the wire format, with a policy that fails, with a configuration of too little."""

import pytest
from scripted import BOOT, Link, running
from support import Ldl, paper

from h2t2.core.adaptive import Adaptive
from h2t2.core.policy import OFFLOAD
from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2.node import board, entries, run, start
from h2t2.node.node import FALLBACK, Node
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.config import NodeConfig


def node_of(policy, **options):
    decisions, said = [], []
    node = Node(policy, Ldl(), Link(), lambda *args: decisions.append(args), model_id=1, boot=BOOT, log=said.append, **options)
    return node, decisions, said


def test_a_policy_of_more_bits_than_a_score_has_is_refused():
    """Ten bits lost every second decision: a bin is a byte on the wire."""
    with pytest.raises(ValueError, match="policy of 10 bits: scores have 8"):
        node_of(Adaptive(bits=10))
    node, decisions, _ = node_of(Adaptive(bits=8))
    node.ldl.level = lambda q: q
    for n, k in enumerate((0, 255) * 20):
        node.step(k, (1,), b"x", n)
    node.poll()
    assert len(decisions) == 40


@pytest.mark.parametrize("shape", [(65536,), (1,) * 7, (0,), (65535, 5), ()])
def test_a_shape_that_no_request_can_say_is_refused_before_the_first_sample(shape):
    with pytest.raises(ValueError, match="does not fit a request"):
        wire.checked_shape(shape)
    config = {"policy": "adaptive", "arguments": {"bits": 4}, "ldl": Ldl(), "event": 1, "model_id": 1, "in_flight": 1}
    with pytest.raises(ValueError, match="does not fit a request"):
        start.service({**config, "deadline_ms": 1000, "remote_shape": list(shape), "records": "none"}, Link())
    if 0 < len(shape) <= 6:
        with pytest.raises((UserError, ValueError), match="does not fit a request"):
            NodeConfig(device="d", broker="b", event=1, remote_shape=list(shape), model_id=1)


@pytest.mark.parametrize("shape", [(65535,), (1, 1, 1, 1, 1, 65535), (512, 512)])
def test_the_largest_shapes_travel(shape):
    size = wire.size_of(wire.INT8, shape)
    node, decisions, _ = node_of(paper(epsilon=32768))
    node.step(5, shape, bytes(size), 0)
    node.poll()
    assert node.replies == len(decisions) == 1
    assert worker_wire.decode_request(node.link.sent[0]).shape == shape


@pytest.mark.parametrize("fails", ["decide", "learn"])
def test_a_policy_that_fails_half_way_decides_and_is_not_saved(fails):
    """No memory in the middle of a change: the sample is decided, what is half changed is not saved, the node begins anew."""
    saved, calls = [], []

    def broken(*_):
        calls.append(1)
        if len(calls) < 3:
            return real(*_)
        raise MemoryError("memory allocation failed")

    policy = paper(epsilon=32768)
    real = getattr(policy, fails)
    setattr(policy, fails, broken)
    service, node, decisions, said = running(policy=policy, bins=(5,) * 30)
    service.keeper.save = lambda: saved.append(1)
    service.run()
    assert service.next_cause and not saved and len(calls) == 3
    assert len(decisions) == node.samples and not node.in_flight
    assert any("starting again from what was saved" in line for line in said)
    assert (decisions[-1][3] == FALLBACK) == (fails == "decide")


def test_an_offload_for_which_there_is_no_memory_is_decided(monkeypatch):
    def full(*_):
        raise MemoryError("memory allocation failed")

    monkeypatch.setattr(wire, "encode_request", full)
    node, decisions, said = node_of(paper(epsilon=32768))
    node.step(5, (1,), b"x", 0)
    assert [source for *_, source in decisions] == [FALLBACK] and any("request" in line for line in said)
    assert OFFLOAD not in [decision for _, _, decision, _ in decisions]


def test_a_configuration_without_samples_says_so_once():
    """A KeyError of `records` made a board start again for ever."""
    config = {"policy": "adaptive", "arguments": {"bits": 4}, "ldl": Ldl(), "event": 1, "model_id": 1, "in_flight": 1}
    with pytest.raises(ValueError, match="no entry app or records"):
        start.service({**config, "deadline_ms": 1000, "remote_shape": [1]}, Link())


def test_the_wait_between_two_starts_rests(monkeypatch, tmp_path):
    """It feeds the watchdog ten times a second, not as fast as it can."""
    rests, fed = [], []
    (tmp_path / "config.json").write_text("{}")

    class Watch:
        def seconds(self):
            return len(rests) // 10

    def fail_ten_times(*_):
        if len(rests) >= 10:
            return False
        raise OSError("no such thing")

    monkeypatch.setattr(run, "_run", fail_ten_times)
    monkeypatch.setattr(run, "Stopwatch", Watch)
    monkeypatch.setattr(board, "pause", lambda ms: rests.append(ms))
    monkeypatch.setattr(entries, "watchdog", lambda _: lambda: fed.append(1))
    run.main(str(tmp_path / "config.json"))
    assert rests == [100] * 10 and len(fed) == 10

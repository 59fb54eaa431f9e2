"""The time between samples, as a node and a gate tell it a policy that reads its past."""

from types import SimpleNamespace

import pytest
from scripted import BOOT, Link, recorded, set_clock
from support import Ldl

from h2t2.core.ordered import Ordered
from h2t2.node import sleep, start
from h2t2.node.node import Node
from h2t2_tools.fleet.gate.gate_config import GateConfig
from h2t2_tools.fleet.gate.streams import Streams


def test_a_node_tells_the_time_since_the_last_sample_that_the_policy_decided(monkeypatch):
    ticks, passed = [0], []
    set_clock(monkeypatch, lambda: ticks[0])
    node = Node(Ordered(), Ldl(), Link(), lambda *_: None, model_id=1, boot=BOOT)
    node.policy.pass_time = passed.append
    for at, paused in ((0, False), (5000, False), (6000, True), (25000, False), ((1 << 29) + 25001, False)):
        ticks[0], node.paused = at, paused
        node.step(5, (1,), b"x", at)
        node.poll()
    assert passed == [5000, 20000, -(1 << 29) + 1]  # the last: nobody can tell from ticks that wrap


@pytest.mark.parametrize("woken", [False, True])
def test_a_restart_forgets_the_past_and_a_deep_sleep_does_not(tmp_path, monkeypatch, woken):
    config = {
        "policy": "adaptive", "arguments": {"bits": 4, "ordered": True}, "ldl": "", "event": 1, "remote_shape": [1],
        "model_id": 1, "in_flight": 1, "deadline_ms": 1000, "telemetry_s": 0, "snapshot": str(tmp_path / "state"),
    }  # fmt: skip

    def service():
        return start.service(config, Link(), lambda *_: None, sensor=recorded((5,) * 30), opener=lambda *_: Ldl())

    service().run()
    config["sleep"] = {"kind": "deep"}
    monkeypatch.setattr(sleep, "configured", lambda *_: SimpleNamespace(woken=woken))
    again = service()
    assert again.keeper.restored and again.node.policy.lessons
    assert any(again.node.policy.forecaster.heads.traces) == woken


def test_each_stream_of_a_gate_has_a_past_and_a_clock_of_its_own_which_a_restart_forgets(tmp_path):
    config = GateConfig(topic="x/+", remote="worker:1", folder=tmp_path, ordered=True)
    streams = Streams(config, tmp_path / "s")
    for stream in (streams.get("hall"), streams.get("porch")):
        stream.policy.forecaster.heads.traces[0] = 9
        stream.keeper.save()
        stream.store.flush()
    streams = Streams(config, tmp_path / "s")
    assert streams.get("hall").keeper.restored and not any(streams.get("hall").policy.forecaster.heads.traces)
    passed = {"hall": [], "porch": []}
    for key, times in passed.items():
        streams.get(key).policy.pass_time = times.append
    for key, now in (("hall", 3.0), ("porch", 4.0), ("hall", 5.0), ("porch", 9.5), ("hall", 1e9)):
        streams.get(key).pass_time(now)
    assert passed == {"hall": [2000, 1 << 29], "porch": [5500]}

"""A whole node on every board, with a real broker and remote model: each decision equals the host's."""

import json

import pytest
from board_features import needs
from interpreters import replayed
from portable.replay import RUNS
from rig import ROOT, host_node

from h2t2_lab.boards.microbit import Microbit
from h2t2_tools.boards.kinds import KINDS, payload
from h2t2_tools.boards.microbit import page
from h2t2_tools.checks.validate import samples
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.policies import DEFAULTS


@pytest.mark.slow
@pytest.mark.timeout(1200)  # an emulated chip is slow
@needs("node")
def test_decisions_equal_the_hosts(board, make_material, rdl, figures, request):
    """200 real samples (100 on a micro:bit, and on a slow board with --quick): bins, decisions and sources equal the host's."""
    reduced = board.kind == "microbit" or ("slow" in board.features and request.config.getoption("--quick"))
    count = 100 if reduced else 200
    material = make_material(count)
    outcome = board.run(material)
    figures.update(samples=len(outcome.decisions), offloads=sum(row["source"] == "remote" for row in outcome.decisions))
    if board.kind == "pi":
        expected = host_node(material.board_config, count).lines()
    else:
        expected = material.replay_page() if board.kind == "microbit" else material.replay()
    assert outcome.lines() == expected, outcome.log
    assert 10 < figures["offloads"] < count - 10
    if board.relayed:
        assert outcome.summary["requests"] == outcome.summary["replies"] == figures["offloads"]
    else:
        assert outcome.summary["taught"] == outcome.summary["replies"] == figures["offloads"]
        assert outcome.summary["strangers"] == outcome.summary["fallbacks"] == outcome.summary.get("errors", 0) == 0


@pytest.mark.slow
@needs("node", "clock")
def test_within_a_budget_decisions_equal_the_hosts(board, make_material, rdl, figures):
    """With a budget of 10 %, one in ten: bins, decisions and sources equal the host's."""
    material = make_material(400, budget="10%", beta=0.02)
    outcome = board.run(material)
    figures.update({name: outcome.summary[name] for name in ("offloads", "unaffordable", "budget")})
    assert outcome.lines() == material.replay(), outcome.log
    assert 10 < outcome.summary["offloads"] <= 40


@pytest.mark.whole
@needs("node", "clock")
def test_under_a_limit_for_misses_decisions_equal_the_hosts(board, make_material, rdl, figures):
    material = make_material(300, miss_rate=0.01, beta=0.2)
    outcome = board.run(material)
    figures.update({name: outcome.summary[name] for name in ("offloads", "miss_rate", "miss_rate_high", "miss_counts")})
    assert outcome.lines() == material.replay(), outcome.log
    assert outcome.summary["miss_rate_limit"] == 328


@pytest.mark.slow
@needs("node", "clock")
def test_another_remote_model_answers_nothing(board, make_material, rdl, figures):
    """No worker serves the configured model: every offload falls back, and the node decides every sample."""
    outcome = board.run(make_material(60, model_id=999))
    figures.update(outcome.summary)
    assert len(outcome.decisions) == 60 and outcome.summary["fallbacks"] == outcome.summary["offloads"] > 5
    assert outcome.summary["taught"] == 0 and {row["source"] for row in outcome.decisions} <= {"local", "fallback"}


@needs("node", "heap")
def test_a_model_unlike_the_configuration_is_refused(board, make_material):
    """The size of the records contradicts model and configuration: `h2t2 flash` refuses them before it touches the board."""
    wrong = make_material(10, remote_shape=[29])
    kind = KINDS[board.kind]
    with pytest.raises(UserError, match="not whole records"):
        payload(kind, wrong.contents())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs("core")
def test_golden_vectors(board, request, figures):
    """Machine code replays the core's vector file with the integers of the host that wrote it, 2,000 rounds of every policy.

    --quick: a slow board replays those runs that its nodes use.
    """
    expected = [json.loads(line) for line in (ROOT / "tests/vectors/core.jsonl").read_text().splitlines()]
    chosen = list(range(len(RUNS)))
    if "slow" in board.features and request.config.getoption("--quick"):
        chosen = [n for n in chosen if RUNS[n][0] in ("rng", "h2t2", "adaptive", "budget") and 0 < RUNS[n][2] <= 142]
        chosen = [0, *chosen, len(RUNS) - 1]
    results = replayed(board.emulator, chosen)
    figures.update(runs=len(chosen), rounds=sum(RUNS[n][1] for n in chosen))
    assert results == [expected[n] for n in chosen]


@pytest.mark.long
@pytest.mark.whole
@needs("node", "clock")
def test_heap_is_flat_over_10000_rounds(board, make_material, rdl, figures):
    """After a collection the heap in use has not grown between 2,000 and 10,000 rounds (64 bytes for a table that grew)."""
    material = make_material(200, snapshot="", telemetry=0)
    board.prepare(material)
    (material.folder / "long.py").write_text(LONG)
    outcome = board.finish(board.start(material, "long.py"), 200)
    heap = [int(line.split()[1]) for line in outcome.log.splitlines() if line.startswith("heap ")]
    figures.update(heap_before=heap[0], heap_after=heap[-1], rounds=10000)
    assert len(heap) == 5 and heap[-1] <= heap[0] + 64


LONG = """import gc, json
from h2t2.link import wire
from h2t2.link.mqtt import MqttLink
from h2t2.node.recorded import Recorded
from h2t2.node.start import service
with open("config.json") as file:
    config = json.load(file)
config["patient"] = True
link = MqttLink(config["broker"], config["port"], config["device"], config["model_id"], 5)
link.open()
running = service(config, link, act=lambda *_: None, sensor=lambda: None)
for part in range(5):
    for _ in range(10):
        running.sensing.sensor = Recorded("samples.bin", running.node.ldl.input_size, wire.size_of(wire.INT8, running.shape))
        running.sensing.ended = False
        running.run()
    gc.collect()
    print("heap", gc.mem_alloc())
assert running.node.samples == 10000, running.node.samples
link.close()
"""


@pytest.mark.slow
@needs("serial")
def test_heap_is_flat_over_500_rounds(board, figures):
    """H2T2 on one page on the micro:bit: 500 decisions and labels, each with a locked heap, leave the heap in use unchanged."""
    if not board.emulator:
        pytest.skip("only the emulated board counts the heap")
    bins, labels = (column.tolist() for column in samples(4, 500, 3))
    with Microbit() as repl:
        repl.prepare()
        repl.load_policy(page.arguments({**DEFAULTS, "epsilon": 1 / 16}))
        heap = []
        for start in range(0, 500, 50):
            for k, label in zip(bins[start : start + 50], labels[start : start + 50]):
                repl.run(f"L();a=p.decide({k});U()\nif a<0:L();p.learn(p.ticket,{label});U()")
            heap.append(repl.heap())
    figures.update(heap_before=heap[0], heap_after=heap[-1], rounds=500)
    assert len(set(heap)) == 1

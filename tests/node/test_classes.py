"""More classes than two, from an LDL's outputs over a node's decisions, commands and snapshots to real brokers and boards."""

import json
import re

import numpy as np
import pytest
import replayed
from command_line import h2t2
from scripted import running
from support import ROOT, need, worker

from h2t2 import units
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.class_scores import ClassScores
from h2t2.ldl.ldl import Ldl
from h2t2.node.memory_slots import BufferSlot
from h2t2.node.node import FALLBACK, LOCAL, REMOTE
from h2t2.node.store import Store
from h2t2_tools.boards import run_emulated
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import broker, config
from h2t2_tools.fleet.config import NodeConfig

PAIR = ROOT / "models/ten_digits"
COSTS = [[0, 32768, 32768], [32768, 0, 32768], [32768, 32768, 0]]
SURE, UNSURE = [100, 16000, 284], [5500, 5500, 5384]


def test_both_back_ends_give_the_same_scores():
    pair = pairs.load("ten_digits")
    pi = ClassScores(TFLiteModel(str(pair.ldl), event=0), 10)
    board = ClassScores(Int8Model((PAIR / "ldl.h2m").read_bytes(), 0), 10)
    model = pi.ldl
    for x in pair.x[:60]:
        sample = model.quantise(x)
        seen = pi.run(sample).tolist()
        assert seen == board.run(sample.ravel().tolist()).tolist()
        assert np.abs(np.array(seen) / 16384 - model.scores(sample)).max() < 1 / 256
    assert pi.input_quantisation() == model.input_quantisation() and pi.input_size == board.input_size == 64


class Loud(Ldl):
    """An LDL of ten outputs that are all sure."""

    classes, input_size = 10, 1

    def run(self, x):
        return 0

    def score_of(self, n):
        return 255


def test_scores_that_are_no_shares_are_scaled_down_and_too_few_outputs_refused():
    scores = ClassScores(Loud(), 10).run(b"x")
    assert max(scores) == min(scores) == 1638
    for ldl in (Ldl(), Int8Model((ROOT / "models/digits/ldl.h2m").read_bytes())):
        with pytest.raises(ValueError, match="outputs, and costs for 10 classes"):
            ClassScores(ldl, 10)


def test_every_sample_is_decided_and_a_label_beyond_the_classes_teaches_nothing():
    policy = AdaptiveClasses(COSTS, beta=3000)
    service, node, decisions, said = running(policy, bins=[UNSURE] * 4 + [SURE] * 60)
    node.link.label = 2
    service.run(4)
    assert [(k, label, source) for _, k, label, source in decisions] == [(0, 2, REMOTE)] * 4 and policy.lessons == 4
    node.link.label = 3
    node.step(UNSURE, (1,), b"x", "beyond")
    node.poll()
    assert node.strangers == 1 and policy.lessons == 4
    node.give_up_all()
    assert decisions[-1][2:] == (policy.local, FALLBACK)
    node.link.label = 1
    service.run()
    assert {label for _, _, label, _ in decisions[5:]} == {1} and LOCAL in {source for *_, source in decisions}
    node.ldl = None  # fails
    node.step(SURE, (1,), b"x", "broken")
    assert decisions[-1] == ("broken", -1, policy.safest_class(), FALLBACK) and any("local model" in text for text in said)
    made = json.loads(node.link.reported[-1])
    assert (made["policy"], made["classes"]) == ("adaptive-classes", 3) and "delta_fp" not in made


def test_without_the_policy_it_says_what_is_likely():
    policy = AdaptiveClasses(COSTS)
    service, node, decisions, _ = running(policy, bins=[SURE] * 3)
    node.paused = True
    before = list(policy.state())
    service.run()
    assert [row[2:] for row in decisions] == [(1, FALLBACK)] * 3 and list(policy.state()) == before
    policy.change_costs([(1, -1, 0), (2, 0, 32768)])
    assert policy.costs.tolist() == [0, 32768, 32768, 0, 0, 0, 32768, 32768, 0]
    assert policy.safest_class() == 0  # 1 as well as 0 costs 32768 at most
    policy.change_costs([(2, 0, 1)])
    assert policy.likely([0, 0, 16384]) == 2  # nothing is known of such scores
    policy.decide([0, 0, 16384])
    assert policy.likely([0, 0, 16384]) == 0  # saying 0 for a 2 costs nothing to speak of


def test_costs_by_command_survive_a_start_and_those_of_a_new_configuration_hold():
    memory = bytearray(8192)
    stores = [Store([BufferSlot(memory, 4096 * n, 4096) for n in (0, 1)]) for _ in range(4)]
    service, node, _, _ = running(AdaptiveClasses(COSTS, 2), bins=[UNSURE] * 20, store=stores[0])
    node.link.commands.append(b'{"set": {"beta": 9000, "costs": [[2, -1, 16384], [2, 0, 5]]}, "id": "a"}')
    service.run()
    assert json.loads(node.link.answered[0])["ok"]
    changed = [0, 32768, 32768, 32768, 0, 32768, 5, 16384, 0]
    assert node.policy.costs.tolist() == changed and node.policy.beta == 9000 and node.policy.lessons >= 4

    again, node2, _, _ = running(AdaptiveClasses(COSTS, 2), store=stores[1])
    assert (
        again.keeper.restored
        and list(node2.policy.state()) == list(node.policy.state())
        and node2.policy.costs.tolist() == changed
    )

    others = [[0, 9, 9], [9, 0, 9], [9, 9, 0]]
    other, node3, _, said = running(AdaptiveClasses(others, 2), store=stores[2])
    assert other.keeper.restored and node3.policy.costs.tolist() == [0, 9, 9, 9, 0, 9, 9, 9, 0] and node3.policy.lessons >= 4
    assert "other costs" in said[0] and "fades" not in said[0]

    four = [[9 * (i != j) for j in range(4)] for i in range(4)]
    more, _, _, said = running(AdaptiveClasses(four, 2), store=stores[3])
    assert not more.keeper.restored and "of another kind or size of policy" in said[0]


@pytest.mark.parametrize(
    "payload, why",
    [
        ('{"set": {"delta_fn": 5}}', "has a cost matrix"),
        ('{"set": {"costs": [[1, 1, 5]]}}', "no cost of saying 1 for 1"),
        ('{"set": {"costs": [[0, 1, 7], [0, 3, 5]]}}', "no cost of saying 3 for 0 among 3"),
        ('{"set": {"costs": [[3, 1, 5]]}}', "no cost of saying 1 for 3"),
        ('{"set": {"costs": [[0, 1, 32769]]}}', "want an integer in 0..32768"),
        ('{"set": {"costs": [[0, true, 5]]}}', r"want \[label, answer, cost\]"),
        ('{"set": {"costs": [[0, 1]]}}', r"want \[label, answer, cost\]"),
        ('{"set": {"costs": []}}', "want a list"),
        ('{"set": {"costs": [[16, 1, 5]]}}', "want an integer in 0..15"),
    ],
)
def test_costs_that_cannot_be_are_refused_and_nothing_changes(payload, why):
    service, node, _, _ = running(AdaptiveClasses(COSTS), bins=[SURE])
    node.link.commands.append(payload.encode())
    service.run()
    (answer,) = map(json.loads, node.link.answered)
    assert not answer["ok"] and re.search(why, answer["why"])
    assert node.policy.costs.tolist() == [x for row in COSTS for x in row]


def test_two_classes_take_no_other_costs():
    service, node, _, _ = running(None, bins=[5])
    node.link.commands.append(b'{"set": {"costs": [[0, 1, 5]]}}')
    service.run()
    assert not json.loads(node.link.answered[0])["ok"]


def test_a_command_changes_a_cost_where_the_remote_model_errs():
    """What labels count follows, also after a start."""
    rates = [[0.9, 0.05, 0.05], [0.2, 0.8, 0.0], [0.0, 0.1, 0.9]]
    memory, expected = bytearray(8192), [[0, 32768, 32768], [32768, 0, 32768], [5, 16384, 0]]
    for commands in ([[2, -1, 16384], [2, 0, 5]], [[1, 2, 0]], [[1, 0, 0], [1, 2, 9]]):
        store = Store([BufferSlot(memory, 4096 * n, 4096) for n in (0, 1)])
        policy = AdaptiveClasses(COSTS, 2, confusion=units.confusion(rates))
        service, node, _, _ = running(policy, bins=[UNSURE] * 4, store=store)
        node.link.commands.append(json.dumps({"set": {"costs": commands}}).encode())
        service.run()
        assert json.loads(node.link.answered[0])["ok"]
        for label, answer, cost in commands:
            expected[label] = [cost if j == answer or (answer < 0 and j != label) else c for j, c in enumerate(expected[label])]
        assert policy.costs.tolist() == sum(expected, [])
        counted = np.array(policy.label_costs).reshape(3, 3) / 32768
        costs = np.array(expected) / 32768
        assert np.abs(rates @ counted - (costs - (rates * costs).sum(1, keepdims=True))).max() < 2e-4


@pytest.mark.parametrize(
    "entries, why",
    [
        ({"policy": "h2t2"}, "costs: policy h2t2 decides between two classes"),
        ({"prior": [0.5] * 16}, "three classes or more take no prior"),
        ({"miss_rate": 0.1}, "miss_rate: three classes or more want `normal`"),
        ({"miss_rate": 0.1, "normal": "ok"}, "normal ok: there is no such class; want its number"),
        ({"miss_rate": 0.1, "normal": 3}, r"normal 3 is not in 0\.\.2"),
        ({"normal": 0}, "normal: of a miss_rate"),
        ({"class_costs": None, "miss_rate": 0.1, "normal": 0}, "normal: of three classes or more"),
        ({"bits": 8}, r"bits 8 is not in 1\.\.6"),
        ({"class_costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0.5]]}, r"costs\[2\]\[2\] is 16384"),
        ({"class_costs": [[0, 1, 1], [1, 0, 1], [1, 1]]}, "row 2 has 2 entries"),
        ({"rdl_confusion": [[0.4, 0.3, 0.3]] * 3}, "too little apart"),
        ({"class_costs": None, "rdl_confusion": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}, "rdl_confusion: of more classes than two"),
    ],
)
def test_a_configuration_of_costs_that_cannot_be_is_refused(entries, why):
    usual = {"remote_shape": [8], "model_id": 1, "class_costs": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}
    with pytest.raises((ValueError, UserError), match=why):
        NodeConfig(**{**usual, **entries}).content()


def test_what_a_configuration_says_of_classes():
    usual = {"remote_shape": [8], "model_id": 1, "class_costs": [[0, 1, 0.5], [1, 0, 1], [1, 1, 0]]}
    made = NodeConfig(**usual).content()["arguments"]
    assert made["costs"][0] == [0, 32768, 16384] and not {"delta_fp", "eta", "confusion"} & set(made)
    made = NodeConfig(**usual, rdl_confusion=[[0.9, 0.1, 0], [0, 1, 0], [0, 0, 1]]).content()["arguments"]
    assert made["confusion"] == [
        [29491, 3277, 0], [0, 32768, 0], [0, 0, 32768], [36409, -3641, 0], [0, 32768, 0], [0, 0, 32768],
    ]  # fmt: skip


def test_costs_and_confusion_of_a_configuration_may_stand_in_files(tmp_path):
    """Their lines say how many classes there are."""
    (tmp_path / "costs.csv").write_text("0,1,0.5\n1,0,1\n1,1,0\n")
    (tmp_path / "confusion.csv").write_text("9,1,0\n0,1,0\n0,0,1\n")
    usual = {"remote_shape": [8], "model_id": 1, "folder": tmp_path}
    made = NodeConfig(**usual, class_costs="costs.csv", rdl_confusion="confusion.csv").content()["arguments"]
    assert made["costs"][0] == [0, 32768, 16384] and made["confusion"][0] == [29491, 3277, 0]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("board", ["unix", "arm32"])
def test_ten_digits_on_a_board(tmp_path, board):
    """`h2t2 new` and `run`, with a real broker and worker: every decision is that of the host's own integers."""
    need(run_emulated.EMULATED[board])
    project = tmp_path / "ten"
    assert main(["new", str(project), "--from", "ten_digits"]) == 0
    lines = (project / "samples.csv").read_text().splitlines(True)[:150]
    (project / "samples.csv").write_text("".join(lines))
    replayed.run(project, board)
    given = config.load(project / "h2t2.toml")
    expected, own = replayed.decisions(PAIR, "".join(lines), given.arguments(), 0)
    assert replayed.written(project / f"run-{board}/decisions.csv") == expected and len(expected) == 150
    assert np.mean(own == pairs.load("ten_digits").y[:150]) > 0.8
    assert len({label for label, *_ in expected}) == 10


@pytest.mark.whole
def test_a_node_of_ten_classes(tmp_path):
    """On this machine, with costs of one's own: its summary says what it has learned of every class."""
    np.savetxt(tmp_path / "costs.csv", 0.5 * (1 - np.eye(10)), delimiter=",")
    with broker.running("amqtt") as url, worker(url, "ten_digits"):
        size = "--pair", "ten_digits", "--samples", 300, "--broker", url, "--class-costs", tmp_path / "costs.csv"
        ran = h2t2("node", *size, "--deadline", "30s")
        summary = json.loads(ran.stdout.splitlines()[-1])["summary"]
    assert summary["classes"] == 10 and summary["replies"] == summary["offloads"] > 50 and summary["errors"] == 0
    assert len(summary["cells"]) == 10 and len(summary["cells"][0]) == 16 and summary["thresholds"] is None
    remote = {json.loads(line)["decision"] for line in ran.stdout.splitlines() if '"remote"' in line}
    assert len(remote) == 10


@pytest.mark.parametrize(
    "words, why",
    [
        (("node", "--pair", "ten_digits", "--delta-fn", 0.5), "--delta-fn: not of a pair of 10 classes"),
        (("node", "--pair", "digits", "--class-costs", "x.csv"), "--class-costs: not of a pair of 2 classes"),
        (("node", "--pair", "ten_digits", "--policy", "h2t2"), "decides between two classes"),
        (("node", "--pair", "ten_digits", "--class-costs", "{}"), "line 1: 2 numbers, of 10 classes"),
        (("new", "{}/a", "--from", "ten_digits", "--board", "microbit"), "has 10 classes, but the microbit supports two"),
        (("command", "dev", "--class-cost", "8", "none", "1"), "want a class, a class or any, and a cost"),
    ],
)
def test_what_many_classes_cannot_have_is_said(tmp_path, capsys, words, why):
    path = tmp_path / "costs.csv"
    path.write_text("0,1\n" * 10)
    assert main([str(word).replace("{}", str(path if word == "{}" else tmp_path)) for word in words]) == 2
    assert why in capsys.readouterr().err

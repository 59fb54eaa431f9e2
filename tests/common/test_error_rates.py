"""The error rates of a remote model: what a pair's test samples tell, who counts with them, and where asking never pays."""

import json
import shutil

import numpy as np
import pytest
from scripted import Link, recorded
from support import Ldl

from h2t2 import units
from h2t2.cpython import pair
from h2t2.node import start
from h2t2_tools.common import pairs, policies
from h2t2_tools.common.remote_errors import RemoteErrors
from h2t2_tools.fleet import config
from h2t2_tools.fleet.config import described
from h2t2_tools.fleet.gate.gate_config import GateConfig
from h2t2_tools.fleet.gate.streams import Streams
from h2t2_tools.router.router import Router


def upper(wrong, samples):
    """One standard deviation above the mean of so many mistakes beside a prior, 1 of 20."""
    p = (wrong + 1) / (samples + 20)
    return pytest.approx(p + (p * (1 - p) / (samples + 20)) ** 0.5)


def test_few_samples_are_no_certainty():
    (_, false), (missed, _) = pair.error_table([[47, 3], [0, 50]])
    assert false == upper(3, 50) and missed == upper(0, 50) and round(false, 3) == 0.085
    assert pair.error_table([[90_000, 10_000], [0, 0]]) == [pytest.approx([0.9, 0.1], abs=2e-3), [0, 1]]


def test_each_class_counts_its_own_samples():
    info = pairs.load_info("digits").model_copy(update={"rates": {"rdl_fp": 0.0, "rdl_fn": 0.1}, "class_samples": [380, 20]})
    assert info.error_rates() == {"rdl_fp": upper(0, 380), "rdl_fn": upper(2, 20)}
    old = info.model_copy(update={"class_samples": [], "test_samples": 401})
    assert old.error_rates() == {"rdl_fp": upper(0, 200), "rdl_fn": upper(20, 200)}
    assert info.model_copy(update={"rates": {}}).error_rates() == {}


def test_of_more_classes_a_pair_tells_a_row_for_each():
    """Beside the samples of a class 20 others of which one was wrong, as any other class alike; and one standard deviation."""
    info = pairs.load_info("ten_digits")
    table = np.array(info.error_rates()["rdl_confusion"])
    counts = 71 * np.array(info.rates["rdl_confusion"][5])
    assert 1 - table[5, 5] == upper(71 - counts[5], 71) and table[5, 4] / table[5, 0] == pytest.approx(9 * counts[4] + 1)
    assert table.sum(1) == pytest.approx(np.ones(10)) and table.argmax(1).tolist() == list(range(10))
    hopeless = info.model_copy(update={"rates": {"rdl_confusion": [[0.1] * 10] * 10}})
    assert hopeless.error_rates() == {}


@pytest.mark.parametrize(("text", "counts"), [("", True), ('rdl_confusion = ""\n', False)])
def test_a_configuration_of_many_classes_takes_its_pairs_rates_unless_it_says_otherwise(text, counts, tmp_path):
    (tmp_path / config.FILE).write_text(f'pair = "ten_digits"\ndevice = "here"\nbroker = "127.0.0.1"\n{text}')
    arguments = config.load(tmp_path / config.FILE).content()["arguments"]
    assert ("confusion" in arguments) is counts


@pytest.mark.parametrize(
    ("changed", "counts"),
    [({}, True), ({"rdl_confusion": np.eye(10).tolist()}, False), ({"class_names": list("9876543210")}, False)],
)
def test_a_gate_and_a_router_of_many_classes_count_with_the_rates_of_their_pair(changed, counts, tmp_path):
    names, costs = list("0123456789"), (1 - np.eye(10)).tolist()
    shutil.copytree(pairs.places.models() / "ten_digits", tmp_path / "pair")
    description = json.loads((tmp_path / "pair/pair.json").read_text())
    (tmp_path / "pair/pair.json").write_text(json.dumps({**description, "class_names": names}))
    entries = {"class_names": names, "class_costs": costs, **changed}
    config = GateConfig(topic="x", remote="pair/rdl.tflite", folder=tmp_path, **entries)
    gate = Streams(config, tmp_path / "state").get("all").policy
    options = {name: value for name, value in changed.items() if name != "class_names"}
    files = [str(tmp_path / f"pair/{model}.tflite") for model in ("ldl", "rdl")]
    router = Router(*files, classes=entries["class_names"], costs=costs, **options)
    router._start(10)
    expected = sum(units.confusion(pairs.load_info("ten_digits").error_rates()["rdl_confusion"]), [])
    for policy in (gate, router.policy):
        assert (policy.confusion.tolist() == expected) is counts and policy.costs.tolist() == sum(units.matrix(costs), [])


def test_of_more_classes_a_persons_labels_change_a_row():
    """That of the true class; where too much is wrong, the rates before stay."""
    errors, policy = RemoteErrors(None, None), policies.make("adaptive", {"costs": (1 - np.eye(3)).tolist()})
    for _ in range(28):
        errors.judge(1, 1)
    errors.judge(0, 1)
    errors.judge(0, 1)
    errors.tell(policy)
    rates = np.array(policy.confusion[:9]).reshape(3, 3) / 32768
    assert 1 - rates[1, 1] == pytest.approx(upper(2, 30).expected, abs=1e-4)
    assert rates[1, 0] / rates[1, 2] == pytest.approx(5, rel=0.01) and (rates[[0, 2]] == np.eye(3)[[0, 2]]).all()
    assert policy.label_costs != policy.costs and errors.rates(3) == {"rdl_confusion": pytest.approx(rates, abs=1e-4)}
    before = policy.confusion.tolist()
    for _ in range(1000):
        errors.judge(0, 1)
    errors.tell(policy)
    assert policy.confusion.tolist() == before


def test_a_pair_tells_a_configuration_unless_that_says_otherwise(tmp_path):
    rates = pairs.load_info("digits").error_rates()
    assert 0.1 < rates["rdl_fn"] < 0.12
    for text, expected in (
        ("", rates),
        ("rdl_fn = 0.0\n", {**rates, "rdl_fn": 0.0}),
        ('policy = "h2t2"\n', {"rdl_fp": 0, "rdl_fn": 0}),
    ):
        (tmp_path / config.FILE).write_text(f'pair = "digits"\ndevice = "here"\nbroker = "127.0.0.1"\n{text}')
        read = config.load(tmp_path / config.FILE)
        assert {name: getattr(read, name) for name in expected} == pytest.approx(expected)
    assert not {"rdl_fp", "rdl_fn"} & described(pairs.load_info("digits"), "h2t2").keys()


def test_a_pair_says_how_many_samples_of_each_class_it_was_tested_on(tmp_path):
    """As h2t2 pair writes it: the sums of both classes."""
    folder = tmp_path / "digits"
    shutil.copytree(pairs.places.models() / "digits", folder)
    description = json.loads((folder / "pair.json").read_text())
    (folder / "pair.json").write_text(json.dumps({**description, "class_samples": [300, 61]}))
    info = pairs.load_info(str(folder))
    assert info.class_samples == [300, 61] and info.error_rates()["rdl_fn"] == upper(6.1, 61)


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ((0.0, 0.0), ""), ((0.05, 0.05), ""), ((0.2, 0.2), ""),
        ((0.35, 0.35), "wrong on 35.0%"), ((0.3, 0.45), "wrong on 45.0% of the events and 30.0% of the others"),
    ],
)  # fmt: skip
def test_where_asking_never_pays_a_sentence_says_so_and_a_nodes_log_as_well(rates, share):
    options = {"beta": 0.2, "delta_fp": 0.7, "delta_fn": 1.0, "rdl_fp": rates[0], "rdl_fn": rates[1]}
    sentence = policies.never_worth_asking(policies.make("adaptive", options))
    assert sentence == (f"asking does not pay: the remote model is {share}" if share else "")
    log = []
    entries = {
        "policy": "adaptive", "arguments": units.policy(**options), "ldl": "", "event": 1, "remote_shape": [1],
        "model_id": 1, "in_flight": 1, "deadline_ms": 1000,
    }  # fmt: skip
    start.service(entries, Link(), sensor=recorded(()), log=log.append, opener=lambda *_: Ldl())
    assert log == [
        f"asking does not pay: the remote model is wrong on {rates[1]:.0%} of the events and {rates[0]:.0%} of the others"
    ] * bool(share)
    assert policies.never_worth_asking(policies.make("h2t2", {})) == ""


def test_a_remote_model_of_a_pair_has_the_pairs_errors_where_its_classes_have_the_pairs_names():
    remote = pairs.places.models() / "digits" / "rdl.tflite"
    info = pairs.load_info("digits")
    assert RemoteErrors(remote, info.class_names).rates() == pytest.approx(info.error_rates())
    for names, told in ((info.class_names[::-1], False), (None, False), (info.class_names, True)):
        assert RemoteErrors(remote, names, told).rates() == {}
    errors = RemoteErrors("https://x/v1", info.class_names)
    errors.judge(1, 1)
    assert errors.rates() == {"rdl_fn": upper(0, 1)}  # nothing is known of the other class


def test_a_guarantee_keeps_the_rates_that_it_began_with():
    errors = RemoteErrors(None, None)
    errors.judge(0, 1)
    for confidence, changed in ((0, True), (0.9, False)):
        policy = policies.make("adaptive", {"miss_rate": 0.1, "confidence": confidence})
        errors.tell(policy)
        assert (policy.rdl_fn > 0) == changed

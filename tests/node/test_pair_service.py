"""A node of a pair's folder: the entries are those of `h2t2 node` and `h2t2 flash`, and the program sees the model's score."""

import asyncio

import pytest

from h2t2 import units
from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_classes import AdaptiveClasses
from h2t2.core.h2t2 import H2T2
from h2t2.core.ordered import Ordered
from h2t2.cpython import pair as pair_node
from h2t2.cpython.tflite import TFLiteModel
from h2t2.node import start
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import app, broker, endpoint
from h2t2_tools.fleet.config import NodeConfig, described

ADDRESSES = [
    ("pi", ("pi", 1883, False)), ("pi:1884", ("pi", 1884, False)), ("10.0.0.9", ("10.0.0.9", 1883, False)),
    ("mqtt://pi", ("pi", 1883, False)), ("mqtt://localhost:18831", ("localhost", 18831, False)),
    ("mqtts://pi", ("pi", 8883, True)), ("mqtts://pi:8884", ("pi", 8884, True)),
    ("::1", ("::1", 1883, False)), ("[::1]:1884", ("::1", 1884, False)),
]  # fmt: skip


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "ten_digits"])
def test_a_folder_gives_the_entries_of_a_flashed_board(name):
    pair = pairs.load(name)
    config, _ = pair_node.configuration(pair.folder)
    entries = described(pair.info)
    flashed = NodeConfig(**{key: value for key, value in entries.items() if value != ""}).content()
    assert config["measured"] == app.measured(pair.folder, pair.info)
    assert [config[key] for key in ("event", "remote_shape", "model_id")] == [
        entries[key] for key in ("event", "remote_shape", "model_id")
    ]
    assert config["arguments"]["beta"] == flashed["arguments"]["beta"]
    rates = ("rdl_fp", "rdl_fn")
    assert [config["arguments"].get(name, 0) for name in rates] == [flashed["arguments"].get(name, 0) for name in rates]
    for matrix in ("costs", "confusion"):
        assert config["arguments"].get(matrix) == flashed["arguments"].get(matrix)


class Begun(Exception):
    """A link that has been asked for."""


@pytest.mark.parametrize("text, expected", ADDRESSES)
def test_a_broker_is_named_in_the_same_forms_everywhere(text, expected, monkeypatch):
    """In a program, on a command line, in a configuration: [mqtt[s]://]HOST[:PORT]."""

    def begin(host, port, *_, tls=None, **__):
        raise Begun(host, port, tls is not None)

    monkeypatch.setattr("h2t2.cpython.paho.PahoLink", begin)
    with pytest.raises(Begun) as asked:
        pair_node.service(pairs.load("breast_cancer").folder, list, list, broker=text)
    assert asked.value.args == expected
    assert broker.parse(text, tls=True) == NodeConfig(broker=text, model_id=1, remote_shape=[1]).address == expected[:2]
    to = endpoint.resolve(text)
    assert (to.host, to.port, to.tls is not None) == expected


@pytest.mark.parametrize("login", [{"ca": "missing.pem"}, {"ca": "missing.pem", "user": "porch"}])
def test_a_login_with_the_authority_of_the_broker_asks_for_tls(login):
    with pytest.raises(ValueError, match="missing.pem"):
        pair_node.service(pairs.load("breast_cancer").folder, list, list, login=login)


@pytest.mark.parametrize("text", ["http://pi", "mqtt://", "pi/topic", "pi:port", "user:word@pi"])
def test_what_is_no_address_of_a_broker_is_refused(text):
    with pytest.raises(ValueError):
        pair_node.service(pairs.load("breast_cancer").folder, list, list, broker=text)
    with pytest.raises(UserError, match="broker"):
        broker.parse(text, tls=True)


@pytest.mark.parametrize("content", [None, "{}", "[]", "{", '{"remote": 1}'])
def test_a_folder_that_is_no_pair_is_refused(content, tmp_path):
    if content is not None:
        (tmp_path / "pair.json").write_text(content)
    with pytest.raises(ValueError, match="no pair: .*h2t2 pair makes one"):
        pair_node.service(tmp_path, print, print)


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("breast_cancer", {}, Ordered), ("breast_cancer", {"ordered": False}, Adaptive),
        ("ten_digits", {}, AdaptiveClasses), ("breast_cancer", {"policy": "h2t2", "arguments": {}}, H2T2),
    ],
)  # fmt: skip
def test_a_program_has_a_past_where_its_policy_can_read_one(name, options, kind):
    node = pair_node.service(pairs.load(name).folder, lambda: None, print, device="k", **options)
    assert type(node.node.policy) is kind
    node.node.link.close()


@pytest.mark.slow
def test_a_program_of_three_lines_decides_with_the_models_score(broker, rdl, localhost):
    pair = pairs.load("breast_cancer")
    model = TFLiteModel(str(pair.ldl), event=pair.info.event_output("ldl"))
    rows, decisions = iter(pair.x[:40].tolist()), []
    node = pair_node.service(pair.folder, lambda: next(rows), decisions.append, port=broker.port, device="kitchen")
    node.node.link.open(5000)
    node.run()
    node.node.link.close()
    assert len(decisions) == 40 and "remote" in {decision.source for decision in decisions}
    for decision, x in zip(sorted(decisions, key=lambda each: pair.x[:40].tolist().index(each.tag)), pair.x):
        exact = model.score(model.run(model.quantise(pair.model_input(x, "ldl"))))
        assert abs(decision.score - exact) <= 1 / 128 + 0.03  # app.py's integers may round a number the other way


@pytest.mark.parametrize("threaded", [False, True])
def test_a_node_of_a_pair_is_awaited(threaded):
    """Its functions are plain, sense() in a thread or not, and another task runs meanwhile."""
    pair = pairs.load("breast_cancer")
    rows, decided, ran = iter(pair.x[:20].tolist()), [], []
    node = pair_node.service(pair.folder, lambda: next(rows), decided.append, device="k", threaded=threaded, awaitable=True)

    async def main():
        async def other():
            while True:
                ran.append(len(decided))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await node.arun()
        task.cancel()

    asyncio.run(main())
    node.node.link.close()
    assert len(decided) == 20 and len({*ran}) > 10


@pytest.mark.parametrize("bits", [3, 4, 6, 8])
def test_the_policy_alone_knows_bins(bits, monkeypatch):
    """A policy of other bits than 4, and a local model of one's own: every sample falls into its bin."""
    pair = pairs.load("breast_cancer")
    rows, decided = iter(pair.x[:40].tolist()), []
    service = pair_node.service(
        pair.folder, lambda: next(rows), decided.append, device="k", arguments=units.policy(bits=bits, window=8)
    )
    node, bins = service.node, []
    monkeypatch.setattr(node, "actuate", lambda tag, k, decision, source: bins.append(k))
    service.run()
    node.link.close()
    model = TFLiteModel(str(pair.ldl), event=pair.info.event_output("ldl"))
    levels = [model.level(model.run(model.quantise(pair.model_input(x, "ldl")))) for x in pair.x[:40]]
    assert len(bins) == 40 and node.policy.bits == bits
    assert sum(abs(k - (level >> 8 - bits)) > 1 for k, level in zip(bins, levels)) == 0  # an input may be rounded otherwise


def test_devices_of_a_fleet_draw_differently_and_a_given_seed_stays():
    pair = pairs.load("breast_cancer")

    def state_of(device, **arguments):
        service = pair_node.service(pair.folder, list, list, device=device, arguments=units.policy(bits=4, **arguments))
        service.node.link.close()
        rng = service.node.policy.rng
        return rng.x, rng.y, rng.z

    assert len({state_of(f"porch-{n}") for n in range(20)}) == 20 and state_of("porch-1") == state_of("porch-1")
    assert state_of("porch-1", seed=5) == state_of("porch-2", seed=5)


def test_the_host_knows_the_seed_of_a_board():
    def seed_of(device, **options):
        return NodeConfig(device=device, model_id=7, remote_shape=[1], **options).arguments()["seed"]

    assert seed_of("porch") == start.seed_of("porch", 7) != seed_of("shed") and seed_of("porch", seed=3) == 3

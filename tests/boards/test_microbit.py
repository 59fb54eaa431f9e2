"""H2T2 on one page, and a classifier beside it, on the emulated micro:bit: 16 KB of RAM, MicroPython 1.9.2."""

from array import array

import pytest
import random_models
from rig import Material
from support import ROOT, need, until

from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2_lab.boards.microbit import Microbit
from h2t2_tools.boards import flash, gateway
from h2t2_tools.boards.emulators.catalogue import MICROBIT
from h2t2_tools.boards.kinds import KINDS, payload
from h2t2_tools.boards.microbit import microbit_program, packed_layers, page
from h2t2_tools.boards.own_main import is_ours
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.checks.validate import samples
from h2t2_tools.common import pairs
from h2t2_tools.common.dense_models import dense_only
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.policies import DEFAULTS
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.model import bundle

HEAP = 4096  # bytes that the page may take with its state
OFFLOAD = page.load().OFFLOAD


@pytest.mark.whole
@pytest.mark.parametrize("feedback", ["explored", "all"])
def test_the_page_on_the_emulated_microbit(feedback):
    """In 4 KB of heap; every step with the heap locked; each action, and in the end the whole state, equal to the host's."""
    need(MICROBIT)
    arguments = page.arguments({**DEFAULTS, "epsilon": 1 / 16, "feedback": feedback})
    policy = page.load().H2T2(**arguments)
    bins, labels = (column.tolist() for column in samples(4, 60, 2))
    actions, expected = [], []
    with Microbit() as board:
        board.prepare()
        board.load_policy(arguments)
        assert 3000 < board.heap() - board.base <= HEAP
        for k, label in zip(bins, labels):
            actions.append(int(board.run(f"L();a=p.decide({k});U();print(a)")))
            expected.append(policy.decide(k))
            if actions[-1] == OFFLOAD:
                board.run(f"L();p.learn(p.ticket,{label});U()")
                policy.learn(policy.ticket, label)
        assert board.run("print(list(p.snapshot()))").strip() == str(list(policy.snapshot()))
        assert board.run("print(p.masses)").strip() == str(policy.masses)
        board.run("s=p.snapshot();p.losses=s;p.restore(s)")
        assert board.run("print(p.snapshot()==s)") == "True\n"
    assert actions == expected and len(set(actions)) > 1


@pytest.mark.slow
def test_losses_are_halved_on_the_emulated_microbit():
    need(MICROBIT)
    arguments = page.arguments({**DEFAULTS, "epsilon": 1 / 16})
    policy = page.load().H2T2(**arguments)
    with Microbit() as board:
        board.prepare()
        board.load_policy(arguments)
        policy.losses[5] = policy.losses[37] = 1 << 24
        board.run("p.losses[5]=p.losses[37]=1<<24")
        action = int(board.run("L();a=p.decide(5);U();print(a)"))
        assert action == policy.decide(5) and policy.losses[5] == 1 << 23
        assert board.run("print(list(p.snapshot()))").strip() == str(list(policy.snapshot()))


@pytest.mark.whole
def test_a_classifier_beside_the_page_on_the_emulated_microbit():
    """The breast-cancer LDL and the page in 16 KB: bins of real samples and actions as on the host."""
    need(MICROBIT)
    pair = pairs.load("breast_cancer")
    host = Int8Model(bundle.from_tflite(pair.ldl))
    pi = TFLiteModel(str(pair.ldl))
    arguments = page.arguments({**DEFAULTS, "epsilon": 1 / 16, "beta": 0.2})
    policy = page.load().H2T2(**arguments)
    inputs = [pi.quantise(pair.model_input(x, "ldl")).ravel().tolist() for x in pair.x[:25]]
    seen, expected = [], []
    with Microbit() as board:
        board.prepare()
        board.load_policy(arguments)
        board.load_ldl(host)
        for x, label in zip(inputs, pair.y.tolist()):
            k = int(board.run(f"k=classify(m,{bytes(q & 255 for q in x)!r});print(k)"))
            seen.append((k, int(board.run("L();a=p.decide(k);U();print(a)"))))
            k = host.level(host.run(x)) >> 4
            expected.append((k, policy.decide(k)))
            if seen[-1][1] == OFFLOAD:
                board.run(f"L();p.learn(p.ticket,{label});U()")
                policy.learn(policy.ticket, label)
    assert seen == expected and len({k for k, _ in seen}) > 4 and len({action for _, action in seen}) > 1


def dense_model(seed):
    """Two or three dense layers, then nothing, LOGISTIC or SOFTMAX."""
    make = random_models.Maker(seed, (6,))
    y = make.dense(make.first, 5, fused=(random_models.NONE, random_models.RELU, random_models.RELU6)[seed % 3])
    if seed & 1:
        y = make.dense(y, 4)
    y = make.dense(y, 1 + (seed >> 1 & 1))
    if seed >> 1 & 1:
        return make.bytes(make.operator("SOFTMAX", (y,), make.tensor(make.shape(y), 1 / 256, -128), beta=1.0))
    return make.bytes(make.operator("LOGISTIC", (y,), make.tensor(make.shape(y), 1 / 256, -128)) if seed & 4 else y)


@pytest.mark.parametrize("event", [0, 1])
@pytest.mark.parametrize("seed", range(8))
def test_packed_layers_have_the_bins_of_the_interpreter(seed, event, tmp_path):
    """Random dense models; firmware/boards/microbit/ldl.py runs here as on the board."""
    (tmp_path / "random.tflite").write_bytes(dense_model(seed))
    model = Int8Model(bundle.from_tflite(tmp_path / "random.tflite"), event)
    (tmp_path / "packed").write_bytes(packed_layers.pack_model(model))
    names = {}
    exec((ROOT / "firmware/boards/microbit/ldl.py").read_text(), names)
    packed = names["load"](str(tmp_path / "packed"))
    rng = random_models.np.random.default_rng(seed)
    inputs = rng.integers(-128, 128, (200, 6)).tolist()
    bins = [names["classify"](packed, bytes(q & 255 for q in x)) for x in inputs]
    assert bins == [model.level(model.run(x)) >> 4 for x in inputs]


@pytest.mark.parametrize("name", ["digits", "occupancy"])
def test_a_model_that_is_not_dense_is_refused(name):
    path = ROOT / f"models/{name}/ldl.tflite"
    model = Int8Model(bundle.from_tflite(path), 0)
    if dense_only(model):
        pytest.skip(f"{name} is dense")
    with pytest.raises(UserError, match="the micro:bit runs FULLY_CONNECTED layers and a LOGISTIC or SOFTMAX"):
        packed_layers.pack_model(model)


@pytest.mark.parametrize("kind", random_models.STEPLESS)
def test_a_model_without_a_layer_is_refused(kind, tmp_path):
    (tmp_path / "random.tflite").write_bytes(random_models.stepless(kind))
    with pytest.raises(UserError, match="the micro:bit runs FULLY_CONNECTED layers"):
        packed_layers.pack_model(Int8Model(bundle.from_tflite(tmp_path / "random.tflite"), 0))


@pytest.mark.parametrize(
    "entry", [{"policy": "adaptive"}, {"bits": 5}, {"exploration": "anytime"}, {"half_life": 9}, {"rdl_fp": 0.1}]
)
def test_an_entry_that_the_page_cannot_follow_is_refused(tmp_path, entry):
    material = Material(tmp_path, 5, {"policy": "h2t2", "exploration": "epsilon", **entry})
    with pytest.raises(UserError, match=f"the micro:bit runs only H2T2 on one page: set {next(iter(entry))} = "):
        payload(KINDS["microbit"], material.contents())


def test_a_program_is_pieces_and_its_names_are_its_own(tmp_path):
    material = Material(tmp_path, 5, {"policy": "h2t2", "exploration": "epsilon"})
    files = payload(KINDS["microbit"], material.contents())
    other = Material(tmp_path, 5, {"policy": "h2t2", "exploration": "epsilon", "beta": 0.3})
    assert [name for name in files if microbit_program.PROGRAM.fullmatch(name)] and list(files)[-1] == "main.py"
    assert set(files) & set(payload(KINDS["microbit"], other.contents())) == {"samples", "main.py"}
    assert is_ours(files["main.py"]) and not is_ours(files["main.py"] + b"print('mine')\n")
    assert sum(map(len, files.values())) - len(files["samples"]) < 6500
    longest = max(microbit_program.pieces(page.SOURCE.read_text()), key=len)
    assert len(longest) < 500 and "#" not in longest


def lines_of(port, material, endpoint):
    """(decisions, log) of a whole run behind a gateway, which restarts the board."""
    decisions, log = [], []
    out = gateway.Out(log.append, decisions.append)
    line = gateway.Line(port, {gateway.ON_LINE: "bit"}, endpoint, gateway.LineOptions(pace=True, restart=True), out)
    assert until(lambda: len(decisions) == material.samples, 100), log
    line.stop()
    return [(row["bin"], row["decision"], row["source"]) for row in decisions]


@pytest.mark.whole
def test_what_it_has_learned_survives_restarts_and_damage(broker, rdl, tmp_path, monkeypatch):
    """Two runs and a third after the newer snapshot was cut short: every decision is that of the page on the host.

    800 bytes of heap are taken away, because how full it becomes depends on when answers arrive.
    """
    need(MICROBIT)
    monkeypatch.setattr(microbit_program, "MAIN", microbit_program.MAIN.replace("run(p", "taken=bytearray(800)\nrun(p"))
    endpoint = Endpoint(broker.host, broker.port)
    config = {"policy": "h2t2", "exploration": "epsilon", "deadline": "20s", "device": "bit"}
    material = Material(tmp_path, 60, config)
    with Microbit() as board:
        board.close()
        flash.flash(KINDS["microbit"], board.port, material.contents(), False, lambda *_: None, start=False)
        policy = page.load().H2T2(**page.arguments(material.board_config.model_dump()))
        states = []
        for _ in range(2):
            decisions = lines_of(board.port, material, endpoint)
            assert decisions == material.replay_page(policy)
            states.append(policy.snapshot())
            policy.restore(states[-1])
        with RawRepl(board.port, True) as repl:
            names = ["learned0", "learned1"]
            newest = max(names, key=lambda name: repl.read_file(name)[-4])  # the low byte of its number
            content = repl.read_file(newest)
            assert content[:212] == states[-1].tobytes()
            older = repl.read_file(names[1 - names.index(newest)])
            repl.write_file(newest, content[:100])
            policy.restore(array("i", older[:212]))
        assert lines_of(board.port, material, endpoint) == material.replay_page(policy)

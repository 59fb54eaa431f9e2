"""`h2t2 pair --features`: a second output of the local model, from which a head on the device learns."""

import json
from binascii import crc32

import joblib
import numpy as np
import pytest
import replayed
from command_line import h2t2
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import need
from taught_heads import averaged

from h2t2.core.adaptive import Adaptive
from h2t2.core.adaptive_class_head import AdaptiveClassHead
from h2t2.core.adaptive_head import AdaptiveHead
from h2t2.core.ordered import Ordered
from h2t2.cpython import pair as pair_node
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.class_scores import ClassScores
from h2t2.ldl.head_sample import HeadSample
from h2t2.ldl.ldl import Ldl
from h2t2.node.slots import Slots
from h2t2_tools.boards import project, run_emulated
from h2t2_tools.boards.kinds import KINDS, payload
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs, policies
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.head_file import MODEL_BITS
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.rdl import models
from h2t2_tools.fleet.update import keys, signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions
from h2t2_tools.model.exact import open_exact
from h2t2_tools.model.retrain import retrain

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")
FEATURES = 6
SMALL = {
    "network": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=800, random_state=1)),
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
}


def pair_of(folder, small, big, seen, data, *options):
    """A pair whose local model has seen so many samples and gives features; the first 200 calibrate it, the others test it."""
    x, y = data
    joblib.dump(small.fit(x[:seen], y[:seen]), folder / "small.joblib")
    joblib.dump(big.fit(x, y), folder / "big.joblib")
    np.savez(folder / "train.npz", x=x[:200])
    np.savez(folder / "test.npz", x=x[200:], y=y[200:])
    words = ["pair", folder / "small.joblib", folder / "big.joblib", "--test", folder / "test.npz", "--beta", "0.15", *options]
    words += ["--calibration", folder / "train.npz", "--features", FEATURES, "--out", folder / "mypair"]
    assert main([*map(str, words)]) == 0
    return pairs.load(str(folder / "mypair"))


@pytest.fixture(scope="module", params=SMALL)
def pair(request, tmp_path_factory):
    """A pair of digits ("is it an 8") whose local model has seen 100 of them and gives features."""
    x, y = load_digits(return_X_y=True)
    big = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=800, random_state=1))
    return pair_of(tmp_path_factory.mktemp("pair"), SMALL[request.param], big, 100, (x[:600], (y == 8).astype(int)[:600]))


def inputs(pair, model, rows):
    scale, zero_point = model.input_quantisation()
    prepared = pair.info.prepared["ldl"].apply(rows)
    return np.clip(np.round(prepared / scale) + zero_point, -128, 127).astype(np.int8)


@pytest.mark.slow
def test_the_features_are_whitened_and_the_same_bytes_everywhere(pair):
    assert pair.info.features == FEATURES
    bundle = Int8Model((pair.folder / "ldl.h2m").read_bytes(), 0)
    models = bundle, open_exact(pair.ldl), TFLiteModel(str(pair.ldl))
    rows, scores = [], []
    calibration = load_digits().data[:200].astype(np.float32)
    for x in inputs(pair, bundle, calibration):
        scores.append([model.run(x.reshape(model.input_shape) if model is models[2] else x) for model in models])
        rows.append([[model.arena[model.features_at + n] - 128 for n in range(FEATURES)] for model in models])
    assert all(model.features == FEATURES for model in models)
    rows = np.array(rows)
    assert np.array_equal(rows[:, 0], rows[:, 1]) and np.abs(rows[:, 0] - rows[:, 2]).max() <= 4  # LiteRT may differ by a step
    assert np.ptp(np.array(scores)[:, :2], 1).max() == 0 and np.ptp(np.array(scores), 1).max() <= 4
    values = rows[:, 0] / 32
    covariance = np.cov(values, rowvar=False)
    assert np.abs(values.mean(0)).max() < 0.05 and np.abs(covariance - np.eye(FEATURES)).max() < 0.15


def shorten_samples(porch, board):
    """Keep 30 samples for an emulated Pico, which takes half a second for each. Return how many are left."""
    lines = (porch / "samples.csv").read_text().splitlines(keepends=True)[: 30 if board == "pico" else 400]
    (porch / "samples.csv").write_text("".join(lines))
    return len(lines)


on_boards = pytest.mark.parametrize(
    "board", ["unix", pytest.param("arm32", marks=pytest.mark.whole), pytest.param("pico", marks=pytest.mark.whole)]
)


def play_on_a_board(pair, board, tmp_path, capsys):
    """Run a pair's project on an emulated board, whose decisions must be the host's. Return the policy's arguments."""
    need(run_emulated.EMULATED[board])
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder)]) == 0
    count = shorten_samples(porch, board)
    capsys.readouterr()
    assert main(["run", str(porch), "--board", board, "--json", str(tmp_path / "report.json")]) == 0
    lines = replayed.printed_decisions(capsys.readouterr().out)
    configuration = project.load(porch, "unix").contents.config
    arguments = configuration.arguments()
    csv = (porch / "samples.csv").read_text()
    expected, _ = replayed.decisions(pair.folder, csv, arguments, configuration.event, [source for _, source in lines])
    assert lines == [row[:2] for row in expected] and len(lines) == count
    report = json.loads((tmp_path / "report.json").read_text())
    assert 0 < report["summary"]["head_share"] <= 32768 and not report["trouble"]
    return arguments


@pytest.mark.slow
@pytest.mark.timeout(900)  # an emulated Pico on a busy machine
@on_boards
def test_a_node_with_a_head_decides_as_the_host_does(pair, board, tmp_path, capsys):
    assert play_on_a_board(pair, board, tmp_path, capsys)["features"] == FEATURES


def head_of_others(folder, model):
    """Return the file of taught heads, in a new folder."""
    folder.mkdir()
    return averaged(folder, lambda **options: AdaptiveHead(FEATURES, **options), model)[1]


@pytest.mark.slow
@pytest.mark.parametrize("board", ["unix", pytest.param("arm32", marks=pytest.mark.whole)])
def test_a_node_begins_with_the_heads_of_others(pair, board, tmp_path, capsys):
    need(run_emulated.EMULATED[board])
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder)]) == 0
    head = head_of_others(tmp_path / "own", Int8Model((pair.folder / "ldl.h2m").read_bytes(), 0).checksum & MODEL_BITS)
    (porch / "h2t2.toml").write_text('head = "../own/head.h2h"\n' + (porch / "h2t2.toml").read_text())
    samples = (porch / "samples.csv").read_text().splitlines(keepends=True)[:200]
    (porch / "samples.csv").write_text("".join(samples))
    capsys.readouterr()
    assert main(["run", str(porch), "--board", board, "--json", str(tmp_path / "report.json")]) == 0
    lines = replayed.printed_decisions(capsys.readouterr().out)
    config = project.load(porch, "unix").contents.config
    sources = [source for _, source in lines]
    expected, without = (
        replayed.decisions(pair.folder, "".join(samples), config.arguments(), config.event, sources, head=file)[0]
        for file in (head, None)
    )
    assert lines == [row[:2] for row in expected] != [row[:2] for row in without]
    assert not json.loads((tmp_path / "report.json").read_text())["trouble"]


@pytest.mark.slow
def test_a_head_that_does_not_fit_gets_onto_no_board(pair, tmp_path):
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder), "--board", "pico_w"]) == 0
    text = (porch / "h2t2.toml").read_text()
    model = Int8Model((pair.folder / "ldl.h2m").read_bytes(), 0).checksum & MODEL_BITS
    own, other = head_of_others(tmp_path / "own", model), head_of_others(tmp_path / "other", model ^ 1)

    def files(head, lines=""):
        (porch / "h2t2.toml").write_text(f'head = "../{head}/head.h2h"\n{lines}{text}')
        return payload(KINDS["pico_w"], project.load(porch, "pico_w").contents)

    content = files("own")
    assert content["head.h2h"] == own.read_bytes() and "h2t2/node/head_start.mpy" in content
    assert json.loads(content["config.json"])["head"] == "head.h2h"
    with pytest.raises(UserError, match="head.h2h: it is of another local model"):
        files("other")
    with pytest.raises(UserError, match="this policy has no head"):
        files("own", "ordered = true\n")
    with pytest.raises(UserError, match="of 2 classes and 6 features, the policy of 2 and 5"):
        files("own", "features = 5\n")
    other.write_bytes(own.read_bytes()[:-1])
    with pytest.raises(UserError, match="head.h2h: it is damaged"):
        files("other")
    with pytest.raises(UserError, match="no such file"):
        files("none")


@pytest.mark.slow
def test_a_node_on_this_machine_begins_with_the_heads_of_others(pair, tmp_path):
    """A file of another local model is named in the log."""
    words = ["node", "--pair", pair.folder, "--samples", 20, "--deadline", "100ms"]
    words += ["--broker", f"mqtt://127.0.0.1:{broker.free_port()}"]
    model = crc32(pair.ldl.read_bytes()) & MODEL_BITS
    for number, line in ((model, "the head begins with what other devices have learned"), (model ^ 1, "the head begins anew")):
        node = h2t2(*words, "--head", head_of_others(tmp_path / f"{number}", number))
        assert node.returncode == 0 and line in node.stderr and json.loads(node.stdout.splitlines()[-1])["summary"]


@pytest.fixture(scope="module")
def class_pair(tmp_path_factory):
    """A pair of four digits whose local model has seen 60 of them and gives features."""
    x, y = load_digits(n_class=4, return_X_y=True)
    big = make_pipeline(StandardScaler(), LogisticRegression())
    return pair_of(tmp_path_factory.mktemp("classes"), SMALL["network"], big, 60, (x[:400], y[:400]), "--classes", "4")


@pytest.mark.slow
@pytest.mark.timeout(900)  # an emulated Pico on a busy machine
@on_boards
def test_a_node_with_a_head_for_each_class_decides_as_the_host_does(class_pair, board, tmp_path, capsys):
    assert class_pair.info.features == FEATURES
    arguments = play_on_a_board(class_pair, board, tmp_path, capsys)
    assert type(policies.core.make("adaptive", arguments)) is AdaptiveClassHead


def test_features_off_and_policies_without_a_head(pair, tmp_path):
    porch = tmp_path / "porch"
    assert main(["new", str(porch), "--from", str(pair.folder)]) == 0
    text = (porch / "h2t2.toml").read_text()

    def policy(lines):
        (porch / "h2t2.toml").write_text(lines + text)
        return policies.core.make("adaptive", project.load(porch, "unix").contents.config.arguments())

    assert isinstance(policy(""), AdaptiveHead)
    assert type(policy("features = 0\n")) is Ordered
    assert type(policy("features = 0\nordered = false\n")) is Adaptive
    limited = policy("miss_rate = 0.02\n")
    assert isinstance(limited, AdaptiveHead) and limited.limit.miss_rate == 655


class Model:
    """A local model with two features."""

    features, input_size = 2, 1
    arena, features_at = bytes([0, 128, 138]), 1

    def run(self, x):
        return x

    def level(self, q):
        return q + 128


def test_an_app_adds_numbers_to_the_features():
    complaints = []

    def complain(kind, error):
        complaints.append(f"{kind}: {error}")

    numbers = [(300, -1), (5,), 7]
    sample = HeadSample(Model(), 4, 2, lambda: numbers.pop(0), complain)
    assert sample.run(5).tolist() == [133, 0, 10, 127, -1]
    assert sample.run(5).tolist() == sample.run(5).tolist() == [133, 0, 10, 0, 0]  # its score and features are not lost
    assert complaints[0] == "context: context() returned 1 numbers, want 2" and len(complaints) == 2
    assert HeadSample(Model(), 3, 2, lambda: (1, 2), complain).run(5).tolist() == [133, 0, 1, 2]  # the first of its features


class ClassModel(Model, Ldl):
    """A local model of three classes with two features."""

    classes = 3

    def score_of(self, n):
        return (30, 206, 20)[n]


def test_the_scores_of_all_classes_and_the_features():
    model = HeadSample(ClassScores(ClassModel(), 3), 3, 1, lambda: (7,), print)
    sample = model.run(5)
    assert sample.tolist() == [30 << 6, 206 << 6, 20 << 6, 0, 10, 7]
    assert model.level(sample) == 206
    assert AdaptiveClassHead(3, [[0, 9, 9], [9, 0, 9], [9, 9, 0]]).bin(sample) == 11
    with pytest.raises(ValueError, match="gives 2"):
        HeadSample(ClassScores(ClassModel(), 3), 3, 0, None, print)


@pytest.mark.parametrize(
    "features, added, context, words",
    [(3, 0, None, "the local model gives 2"), (1, 2, list, "gives 2"), (4, 2, None, "no function context")],
)
def test_a_head_that_fits_neither_model_nor_app_is_refused(features, added, context, words):
    with pytest.raises(ValueError, match=words):
        HeadSample(Model(), features, added, context, print)


@pytest.mark.slow
def test_a_pair_of_a_pairs_local_model(pair, tmp_path, capsys):
    """It keeps its features, or gets others in their place; a tensor that does not exist is named beside those that do."""
    words = ["pair", str(pair.ldl), str(pair.folder.parent / "big.joblib"), "--test", str(pair.folder.parent / "test.npz")]
    assert main([*words, "--out", str(tmp_path / "kept")]) == 0
    assert pairs.load(str(tmp_path / "kept")).info.features == FEATURES
    assert main([*words, "--features", "3", "--out", str(tmp_path / "other")]) == 0
    other = pairs.load(str(tmp_path / "other"))
    assert other.info.features == 3 and Int8Model((other.folder / "ldl.h2m").read_bytes(), 0).features == 3
    capsys.readouterr()
    assert main([*words, "--features", "3", "--features-from", "none", "--out", str(tmp_path / "no")]) == 2
    assert f"{pair.ldl}: as int8 it computes no tensor none; it computes " in capsys.readouterr().err
    assert main([*words, "--features-from", "none", "--out", str(tmp_path / "no")]) == 2
    assert "goes with --features N" in capsys.readouterr().err


RECIPE = """import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def training_data():
    x, y = load_digits(return_X_y=True)
    return x[:100].astype(np.float32), (y[:100] == 8).astype(int)


def local_model(x, y, weight):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
"""


@pytest.mark.slow
def test_a_local_model_that_is_trained_again_gives_features(pair, tmp_path):
    (tmp_path / "recipe.py").write_text(RECIPE)
    (tmp_path / "model.joblib").write_bytes((pair.folder.parent / "small.joblib").read_bytes())
    out = tmp_path / "again"
    out.mkdir()
    retrain._write(pair, tmp_path / "model.joblib", tmp_path / "recipe.py", pair.x, out, out)
    again = pairs.load(str(out))
    assert again.info.features == Int8Model((out / "ldl.h2m").read_bytes(), 0).features == FEATURES
    assert models.answers(again).shape == (len(pair.x),)  # its remote model has the files that it needs


def test_a_package_says_how_many_features_its_model_gives(pair, tmp_path):
    private, _ = keys.make(tmp_path / "key")
    blob = (pair.folder / "ldl.h2m").read_bytes()
    made = signed_package.build(pair, blob, private, PackageOptions(counter=1))
    assert made.details["features"] == FEATURES
    (tmp_path / "s.u1.h2m").write_bytes(blob)
    (tmp_path / "s.u1.json").write_text(json.dumps(made.details))
    for given, context, expected in ((4, 0, FEATURES), (6, 2, FEATURES + 2), (None, 0, None)):
        arguments = {} if given is None else {"features": given}
        flashed = {"policy": "adaptive", "arguments": arguments, "context": context}
        flashed |= {"snapshot": str(tmp_path / "s"), "update": {"app": False}}
        assert Slots(flashed).configuration(1, None)["arguments"].get("features") == expected


def test_a_pairs_service_makes_a_head_where_the_policy_has_one(pair):
    _, described = None, pair_node.configuration(pair.folder)[0]
    assert described["features"] == FEATURES and "features" not in described["arguments"]


def test_another_local_model_gets_another_head():
    policy = AdaptiveHead(2)
    policy.adopt(5)
    heads = policy.forecaster.heads
    for n in range(200):
        if policy.decide([n % 256, 20, -20]) < 0:
            policy.learn(policy.ticket, n & 1)
    labels = sum(policy.forecaster.labels[:128])  # of the bins
    assert heads.taught and labels
    policy.adopt(5)
    assert heads.taught
    policy.adopt(6)
    assert not heads.taught and not any(heads.weights) and sum(policy.forecaster.labels[:128]) == labels
    assert not any(policy.forecaster.labels[128:])

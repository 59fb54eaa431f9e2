"""Decision trees: read as their libraries mean them, in integers as in floats, the same bytes everywhere, up to a board."""

import json
import pickle
from array import array
from dataclasses import replace

import joblib
import numpy as np
import pytest
from bundles import Guarded, resealed
from command_line import H2T2, h2t2, ran
from interpreters import in_machine_code
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from support import ROOT, need

from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.open import open_ldl
from h2t2.ldl.trees_bounds import check_trees
from h2t2.node.measured import Measured
from h2t2_tools.boards import run_emulated
from h2t2_tools.boards.emulators.catalogue import ARM32, UNIX
from h2t2_tools.checks import ldl_check
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet import app
from h2t2_tools.model import bundle
from h2t2_tools.model.convert import forest, from_scikit, int8_trees
from h2t2_tools.model.convert.readers import column_names, open_source
from h2t2_tools.model.exact import open_exact, open_local
from h2t2_tools.model.inspect import inspect
from h2t2_tools.model.operators.tflite_fixed_point import multiplier, multiply

pytest.importorskip("ai_edge_litert", reason="the extra convert, which writes the models, is not installed")

SAVED = sorted(path for path in (ROOT / "tests/material/trees").iterdir() if path.suffix != ".npy")
SETS = {"cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def data(name):
    """(x, y, samples to train with), in the order of tests/material/make_trees.py."""
    x, y = SETS[name](return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    return x[order].astype(np.float32), y[order], len(x) * 2 // 3


MODELS = {
    "forest": RandomForestClassifier(20, max_depth=7, random_state=0),
    "extra": ExtraTreesClassifier(15, max_depth=6, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=12, random_state=0),
    "exponential": GradientBoostingClassifier(n_estimators=12, loss="exponential", random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=12),
    "boosted, stopped early": GradientBoostingClassifier(n_estimators=60, n_iter_no_change=2, random_state=0),
    "histograms, stopped early": HistGradientBoostingClassifier(
        max_iter=200, early_stopping=True, n_iter_no_change=2, random_state=0
    ),
    "bagged": BaggingClassifier(DecisionTreeClassifier(max_depth=4), 6, max_features=0.6, random_state=1),
    "voted for": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=1),
    "averaged": VotingClassifier(
        [("a", RandomForestClassifier(25, max_depth=5, random_state=1)), ("b", ExtraTreesClassifier(15, random_state=1))],
        voting="soft",
        weights=[2, 1],
    ),
    "behind scalers": make_pipeline(StandardScaler(), RobustScaler(), DecisionTreeClassifier(max_depth=5, random_state=1)),
}
CASES = [(name, of) for name in MODELS for of in ("cancer", "wine") if (name, of) != ("exponential", "wine")]


def source(name, of):
    x, y, half = data(of)
    return from_scikit.from_object(MODELS[name].fit(x[:half], y[:half]))


def written(read, x, folder):
    """The int8 .tflite of a source, calibrated with x."""
    path = folder / "trees.tflite"
    path.write_bytes(read.quantise(read.prepared(x)))
    return path


def decisions(scores):
    return (scores[:, 0] >= 0.5).astype(int) if scores.shape[1] == 1 else scores.argmax(1)


def check_alike(read, x, half, folder):
    """int8 decides as the floats do, on the board's interpreter and on the compiled one."""
    path = written(read, x[:half], folder)
    exact, board = open_exact(path), Int8Model(bundle.from_tflite(path), 0)
    rounded = np.array([exact.scores(exact.quantise(row)) for row in read.prepared(x)])
    scores = read.scores(x)
    assert (decisions(rounded) == decisions(scores)).mean() >= 0.99 and (np.abs(rounded - scores).max(1) > 0.05).mean() < 0.01
    for row in read.prepared(x[half : half + 15]):
        q = exact.quantise(row)
        assert board.run(q.tolist()) == exact.run(q)
        assert [board.score_of(n) for n in range(board.classes)] == [exact.score_of(n) for n in range(board.classes)]


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.name)
def test_a_saved_model_says_what_its_library_says(path, tmp_path):
    x, _, half = data(path.name.partition("_")[0])
    said = np.load(path.with_suffix(".npy"))
    read = open_source(path)
    assert read.scores(x) == pytest.approx(said[:, 1:] if said.shape[1] == 2 else said, abs=1e-6)
    check_alike(read, x, half, tmp_path)


def test_a_report_names_the_rounds_that_early_stopping_left():
    kinds = [open_source(ROOT / f"tests/material/trees/{of}_xgboost_stopped.json").kind for of in ("cancer", "wine")]
    assert kinds == [
        f"XGBoost (the best {of}; no number counts as missing, else --missing-value)"
        for of in ("10 of 16 rounds", "36 of 40 rounds")
    ]


@pytest.mark.parametrize("name, of", CASES)
def test_scikit_learns_trees(name, of, tmp_path):
    x, _, half = data(of)
    check_alike(source(name, of), x, half, tmp_path)
    *before, last = from_scikit._steps(MODELS[name])
    own = from_scikit.forest(last, tmp_path).behind(from_scikit._columns(before, last, tmp_path))
    said = MODELS[name].predict_proba(x)
    assert own.scores(x.astype(float)) == pytest.approx(said[:, 1:] if said.shape[1] == 2 else said, abs=1e-6)


@pytest.mark.parametrize("strict", [False, True])
def test_integers_compare_as_the_quantised_numbers_do(strict, tmp_path):
    """Random trees of many classes: an independent sum of leaves, found by comparing real numbers, gives every byte."""
    rng = np.random.default_rng(5)
    trees = [random_tree(rng, 12, 3) for _ in range(9)]
    own = forest.Forest("random", 12, trees, None, rng.normal(size=3), "none", strict)
    factor, offset = int8_trees.scaling(own)
    path = tmp_path / "trees.tflite"
    x = rng.normal(size=(200, 12))
    path.write_bytes(int8_trees.tflite(own, factor, offset, x * factor + offset, path))
    integers = int8_trees.nodes(own, factor, offset, path)
    exact = open_exact(path)
    m, exponent = multiplier(float(np.float32(integers.step)) / (1 / 256))
    for _ in range(200):
        q = rng.integers(-128, 128, 12).astype(np.int8)
        sums = integers.bias.astype(int)
        for tree in trees:
            at = 0
            while (feature := tree.feature[at]) >= 0:
                real = (tree.threshold[at] * factor[feature] + offset[feature]) / int8_trees.STEP
                goes_left = (
                    q[feature] + 0.5 + int8_trees.NOISE < real if strict else q[feature] <= real + 0.5 + int8_trees.NOISE
                )
                at = tree.below[at] if goes_left else tree.above[at]
            sums = sums + np.rint(tree.value[at] / integers.step).astype(int)
        expected = [min(max(multiply(int(total), m, exponent) - 128, -128), 127) for total in sums]
        assert exact.outputs(q).tolist() == expected


def random_tree(rng, inputs, outputs, depth=5):
    """A tree with random thresholds, children behind their parents."""
    count = 2**depth - 1
    inner = np.arange(count) < count // 2
    feature = np.where(inner, rng.integers(0, inputs, count), -1)
    left = np.where(inner, 2 * np.arange(count) + 1, 0)
    return forest.ordered(feature, rng.normal(size=count), left, np.where(inner, left + 1, 0), rng.random((count, outputs)))


def test_a_number_with_unlike_thresholds_gets_several_inputs():
    """A threshold far from the others does not coarsen them: a cut lies nearer to its threshold than the next one."""
    thresholds = np.append(np.linspace(0, 1, 200), [1e6])
    ends = np.array([1, 0, 0]), np.array([2, 0, 0]), np.array([[0.0], [1], [0]])
    trees = [forest.Tree(np.array([0, -1, -1]), np.array([t, 0, 0]), *ends) for t in thresholds]
    whole = forest.Forest("made", 1, trees, None, np.zeros(1), "none")
    fine, columns = int8_trees.divided(whole)
    assert 2 <= len(columns) <= 1 + int8_trees.MOST_PARTS and set(columns) == {0}
    factor, offset = (numbers / int8_trees.STEP for numbers in int8_trees.scaling(fine))
    cuts = [
        (int8_trees._integer(t.threshold[:1] * factor[n] + offset[n], False)[0] + 0.5 - offset[n]) / factor[n]
        for t in fine.trees
        for n in t.feature[:1]
    ]
    assert np.abs(cuts - thresholds)[:-1].max() < 0.002 and cuts[-1] == pytest.approx(1e6, rel=0.1)


@pytest.mark.parametrize("strict", [False, True])
def test_the_steps_of_int8_meet_the_threshold_that_decides(strict):
    """One tree's leaves differ by 1, those of others by little: its threshold moves by less than 1/16 of a step on average."""
    rng = np.random.default_rng(1)
    moved = []
    for _ in range(20):
        thresholds = np.sort(rng.normal(size=150))
        spans = np.full(150, 0.002)
        spans[70] = 1.0
        factor, offset = int8_trees._line(*int8_trees._range(thresholds, spans, strict), strict)
        real = thresholds[70] * factor + offset
        moved.append(abs(int8_trees._integer(real, strict) + 0.5 - real))
    assert np.mean(moved) < 0.06  # 0.5 without WIDENED


def test_a_nodes_span_is_what_the_leaves_behind_it_differ_by():
    ends, value = np.zeros(5, int), np.array([[0.0], [0.0], [0.2], [0.9], [0.3]])
    tree = forest.Tree(
        np.array([0, 1, -1, -1, -1]), ends.astype(float), np.array([1, 2, 0, 0, 0]), np.array([4, 3, 0, 0, 0]), value
    )
    assert tree.spans() == pytest.approx([0.7, 0.7, 0, 0, 0])


def test_nodes_that_int8_cannot_reach_are_left_out(tmp_path):
    """Below a node that asks for the same number at nearly the same place, and where a threshold is infinite."""
    value = np.array([[0.0], [1], [0], [1], [0.5]])
    tree = forest.Tree(
        np.array([0, 0, -1, -1, -1]),
        np.array([0.5, 0.49999, 0, 0, 0]),
        np.array([1, 2, 0, 0, 0]),
        np.array([4, 3, 0, 0, 0]),
        value,
    )
    wide = forest.Tree(np.array([0, -1, -1]), np.array([100.0, 0, 0]), np.array([1, 0, 0]), np.array([2, 0, 0]), value[:3])
    missing = replace(wide, threshold=np.array([np.inf, 0, 0]))
    own = forest.Forest("made", 1, [tree, wide, missing], None, np.zeros(1), "none")
    integers = int8_trees.nodes(own, *int8_trees.scaling(own), tmp_path)
    assert integers.count == 2 and len(integers.content) == 2 * (4 + 6)


def models_for_boards(folder):
    """Trees of every form: one output, several, rows of leaves, features of two bytes; with and without a link behind."""
    rng = np.random.default_rng(2)
    for name, of in (("forest", "cancer"), ("forest", "wine"), ("boosted", "wine"), ("histograms", "cancer")):
        place = folder / f"{name}-{of}"
        place.mkdir()
        yield written(source(name, of), data(of)[0], place)
    for outputs, output in ((1, None), (4, None), (2, [0, 1, 1, 0])):
        trees = [random_tree(rng, 700, 1 if output else outputs) for _ in range(4)]
        own = forest.Forest("wide", 700, trees, output, np.zeros(outputs), "softmax" if output else "none")
        factor, offset = int8_trees.scaling(own)
        path = folder / f"wide{outputs}.tflite"
        path.write_bytes(int8_trees.tflite(own, factor, offset, rng.normal(size=(30, 700)), path))
        yield path


@pytest.mark.slow
@pytest.mark.parametrize("emulator, fast", [(UNIX, True), (UNIX, False), (ARM32, True)], ids=["unix", "unix-bytecode", "arm32"])
def test_the_same_bytes_on_micropython(emulator, fast, tmp_path):
    need(emulator)
    expected = []
    for n, path in enumerate(models_for_boards(tmp_path)):
        blob = bundle.from_tflite(path)
        (tmp_path / f"{n}.h2m").write_bytes(blob)
        host, rng = Int8Model(blob, 0), np.random.default_rng(n)
        inputs = rng.integers(-128, 128, (6, host.input_size)).astype(np.int8)
        (tmp_path / f"{n}.x").write_bytes(inputs.tobytes())
        expected += [[host.run(x.tolist()), *(host.score_of(o) for o in range(host.classes))] for x in inputs]
    script = tmp_path / "run.py"
    script.write_text(f"FOLDER, COUNT, FAST = {str(tmp_path)!r}, {n + 1}, {fast}\n{ON_BOARD}")
    runtime = in_machine_code(emulator, tmp_path) if fast else ROOT / "firmware"
    assert [json.loads(line) for line in emulator.run(script, [], runtime).splitlines()] == expected


ON_BOARD = """
from array import array
from h2t2.ldl import steps
from h2t2.ldl.bundle import Int8Model
from h2t2.ldl.open import open_ldl
from micropython import heap_lock, heap_unlock
for n in range(COUNT):
    with open("%s/%d.h2m" % (FOLDER, n), "rb") as file:
        model = Int8Model(file.read(), 0)
    assert all([steps.is_machine_code(step) == FAST for step, _, _ in model.steps])
    streamed = open_ldl("%s/%d.h2m" % (FOLDER, n), 0, stream=True)
    with open("%s/%d.x" % (FOLDER, n), "rb") as file:
        for _ in range(6):
            x = array("b", file.read(model.input_size))
            q = streamed.run(x)
            heap_lock()
            model.run(x)
            heap_unlock()
            assert model.run(x) == q
            print([q] + [model.score_of(o) for o in range(model.classes)])
"""


@pytest.mark.slow
def test_a_strangers_trees_cannot_reach_outside_their_memory(tmp_path):
    """Any two bytes of the trees changed: refused, or they run inside the arena and the bundle, and come to an end."""
    refused = ran = 0
    for path in list(models_for_boards(tmp_path))[1:4]:
        good = bundle.from_tflite(path)
        (_, p, _), *_ = Int8Model(good, 0).steps
        rng = np.random.default_rng(3)
        for at in (p[6] + 2 * rng.integers(0, p[10] // 2, 400)).tolist():
            for value in (0, 7, 255, 32767, 32768, 65535):
                try:
                    bad = Int8Model(resealed(good, at, value), 0)
                except ValueError as error:
                    refused += "bundle" in str(error)
                    continue
                bad.arena, bad.blob = Guarded(bad.arena), Guarded(bad.blob)
                bad.run(rng.integers(-128, 128, bad.input_size).tolist())
                ran += 1
    assert refused > 200 and ran > 200


def test_trees_of_no_outputs_are_refused(tmp_path):
    good = bundle.from_tflite(next(iter(models_for_boards(tmp_path))))
    (_, p, _), *_ = Int8Model(good, 0).steps
    p = array("i", p)
    p[8] = 0
    p[12] = 1  # a table of leaves
    with pytest.raises(ValueError, match="bundle: trees of 0 outputs"):
        check_trees(good, p[6], p[7:])


def boosted_leaf(value, path):
    """LightGBM's saved model with another value of its first leaf."""
    content = json.loads((ROOT / "tests/material/trees/cancer_lightgbm_gbdt.json").read_text())
    node = content["tree_info"][0]["tree_structure"]
    while "left_child" in node:
        node = node["left_child"]
    node["leaf_value"] = value
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("value", [1e6, -1e30, 1e39])
def test_a_leaf_without_regularisation_leaves_steps_for_the_others(value, tmp_path):
    """As reg_lambda=0 makes them: the leaf decides alone, in the library and as int8."""
    x, _, half = data("cancer")
    check_alike(open_source(boosted_leaf(value, tmp_path / "model.json")), x, half, tmp_path)


def test_trees_that_do_not_open_say_why(tmp_path):
    """Not that TFLite runs no trees, which nobody asked."""
    own = forest.Forest("made", 2, [random_tree(np.random.default_rng(1), 2, 1)], None, np.array([1e39]), "none")
    own = replace(own, trees=[replace(tree, value=tree.value * 1e43) for tree in own.trees])
    path, (factor, offset) = tmp_path / "trees.tflite", int8_trees.scaling(own)
    with np.errstate(over="ignore"):
        path.write_bytes(int8_trees.tflite(own, factor, offset, np.zeros((3, 2)), path))
    with pytest.raises(UserError, match="trees.tflite: tensor nodes has a scale of inf"):
        open_local(path)


def test_a_loss_of_trees_names_what_trees_lose_by(tmp_path, capsys):
    x, y = of_a_day()
    y = (x[:, 0] // 300 % 2).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(x - [1.7e9, 0], y)
    joblib.dump(model, tmp_path / "model.joblib")
    np.savez(tmp_path / "fit.npz", x=x - [1.7e9, 0], y=y)
    big = tmp_path / "big.py"
    big.write_text("def scores(x):\n    return [0.5] * len(x)\n")
    for words in (("convert", "--calibration", tmp_path / "fit.npz"), ("pair", f"{big}:scores")):
        command, *others = words
        words = (command, tmp_path / "model.joblib", *others, "--test", tmp_path / "fit.npz", "--out", tmp_path / "out")
        assert main([*map(str, words), "--max-loss", "0"]) == 1
        said = capsys.readouterr().err
        assert "model.joblib: int8 loses" in said and "thresholds of a number lie closer together" in said
        assert "Normalization" not in said


GAPS = ROOT / "tests/material/gaps"


def test_a_number_that_counts_as_missing_is_named(tmp_path, capsys):
    """XGBClassifier(missing=0) stands in no file: the report's first line says so, and --missing-value tells it."""
    with np.load(GAPS / "samples.npz") as content:
        x, y, said = content["x"], content["y"], content["score"]
    plain, told = open_source(GAPS / "xgboost.json"), open_source(GAPS / "xgboost.json", 0)
    assert np.abs(plain.scores(x)[:, 0] - said).max() > 0.3
    assert told.scores(x)[:, 0] == pytest.approx(said, abs=1e-6) and told.shape == plain.shape == (30,)
    check_alike(told, x, 380, tmp_path)
    words = ["convert", GAPS / "xgboost.json", "--calibration", GAPS / "samples.npz", "--out", tmp_path / "out"]
    assert main([*map(str, words)]) == 0
    assert "XGBoost (no number counts as missing, else --missing-value), 1 output" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "big.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    words = ["pair", GAPS / "xgboost.json", f"{tmp_path / 'big.py'}:scores", "--test", GAPS / "samples.npz"]
    assert main([*map(str, words), "--out", str(tmp_path / "pair"), "--missing-value", "0", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)["ldl"]
    assert report["kind"] == "XGBoost (0 counts as missing)" and report["float"]["accuracy"] == ((said >= 0.5) == y).mean()
    pair = pairs.load(str(tmp_path / "pair"))
    local, ldl = Measured(**app.measured(pair.folder, pair.info)["local"]), open_exact(pair.ldl)
    decided = [ldl.score(ldl.run(local(row))) >= 0.5 for row in x.tolist()]
    assert (np.array(decided) == (said >= 0.5)).mean() > 0.98


@pytest.mark.parametrize("name", ["cancer_lightgbm_gbdt.txt", "cancer_lightgbm_gbdt.json", "cancer_catboost.json"])
@pytest.mark.parametrize("distil", [False, True])
def test_other_files_say_themselves_what_is_missing(name, distil, tmp_path, capsys):
    x, y, _ = data("cancer")
    np.savez(tmp_path / "fit.npz", x=x, y=y)
    words = ["convert", ROOT / "tests/material/trees" / name, "--calibration", tmp_path / "fit.npz", "--out", tmp_path / "out"]
    assert main([*map(str, words), "--missing-value", "0", *["--distil"] * distil]) == 2
    assert f"{name} is no .json or .ubj of XGBoost" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["nan", "none"])
def test_what_counts_as_missing_is_a_number(word, capsys):
    assert main(["convert", "model.json", "--calibration", "x.npz", f"--missing-value={word}"]) == 2
    assert f"--missing-value {word}: want a number, such as 0 or -999" in capsys.readouterr().err


SPLIT = {
    "num_leaves": 2,
    "tree_structure": {
        "split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": True, "missing_type": "None",
        "split_index": 0,
        "left_child": {"leaf_index": 0, "leaf_value": 0.1}, "right_child": {"leaf_index": 1, "leaf_value": 0.2},
    },
}  # fmt: skip


def lightgbm(**entries):
    return {"tree_info": [SPLIT], "num_tree_per_iteration": 1, "max_feature_idx": 3, "objective": "binary", **entries}


def split(**entries):
    return {**SPLIT, "tree_structure": {**SPLIT["tree_structure"], **entries}}


REFUSED = {
    "no outputs": (lightgbm(num_tree_per_iteration=0), "not a model that XGBoost, LightGBM or CatBoost saved"),
    "many outputs": (lightgbm(num_tree_per_iteration=10**14), "not a model that XGBoost, LightGBM or CatBoost saved"),
    "not finite": (
        lightgbm(tree_info=[split(left_child={"leaf_index": 0, "leaf_value": float("inf")})]),
        "adds no finite number",
    ),
    "feature": (lightgbm(tree_info=[split(split_feature=7)]), "reads number 7 of 4"),
    "regression": ({"learner": {"gradient_booster": {}, "objective": {"name": "reg:squarederror"}}}, "reg:squarederror"),
    "another": ({"layers": []}, "neither XGBoost's"),
    "damaged": ({"learner": {}}, "not a model that XGBoost, LightGBM or CatBoost saved"),
    "ranks": ({"tree_info": [], "num_tree_per_iteration": 1, "max_feature_idx": 3, "objective": "lambdarank"}, "lambdarank"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_of_no_classifier_is_refused(name, tmp_path):
    content, reason = REFUSED[name]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"model.json: .*{reason}"):
        open_source(path)


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("decision_type=2", "decision_type=1", "trees with categories.*; --distil trains trees on its scores"),
        ("decision_type=2", "decision_type=6", "take 0 for a missing number.*; --distil"),
        ("is_linear=0", "is_linear=1", "linear leaves.*; --distil"),
        ("left_child=", "left_child=77", "not a model that LightGBM saved"),
    ],
)
def test_trees_that_integers_cannot_have_are_named(old, new, reason, tmp_path):
    text = (ROOT / "tests/material/trees/cancer_lightgbm_gbdt.txt").read_text()
    assert old in text
    (tmp_path / "model.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=f"model.txt: .*{reason}"):
        open_source(tmp_path / "model.txt")


def test_what_else_is_refused(tmp_path):
    x, y, half = data("cancer")
    for model, reason in (
        (
            GradientBoostingClassifier(n_estimators=2, init=LogisticRegression(max_iter=9999)),
            "begins with a LogisticRegression",
        ),
        (HistGradientBoostingClassifier(max_iter=2, categorical_features=[3]), "categorical features"),
        (DecisionTreeClassifier(max_depth=1, min_samples_split=len(x)), "no tree of it asks for anything"),
    ):
        few = x[:half].copy()
        few[:, 3] = np.arange(half) % 5
        with pytest.raises(UserError, match=f"model.joblib: .*{reason}"):
            from_scikit.from_object(model.fit(few, y[:half]))
    (tmp_path / "model.ubj").write_bytes(b"{")
    with pytest.raises(UserError, match=r"save_model\('model.json'\)"):
        open_source(tmp_path / "model.ubj")


def test_tflite_runs_no_trees_and_the_bundle_beside_them_does(tmp_path):
    path = written(source("forest", "wine"), data("wine")[0], tmp_path)
    report = inspect(path)
    assert report["problems"] == [] and report["policy"] == ["yes: 3 class scores in [0, 1]"]
    assert [operator["name"] for operator in report["operators"]] == ["H2T2_TREES"]
    with pytest.raises(ValueError, match="trees.tflite: its trees run from a bundle: h2t2 inspect"):
        open_ldl(path)
    with pytest.raises(UserError, match="TFLite has none to compare with"):
        ldl_check.compare(path, None, 3, 1, False, lambda *_: None)
    path.with_suffix(".h2m").write_bytes(bundle.from_tflite(path))
    x = (np.arange(open_exact(path).input_size) % 13).astype(np.int8) - 6
    assert open_ldl(path, 2).run(x) == open_exact(path, 2).run(x)


@pytest.mark.slow
def test_convert_says_what_int8_loses(tmp_path, capsys):
    x, y, half = data("cancer")
    np.savez(tmp_path / "fit.npz", x=x[:half], y=y[:half])
    np.savez(tmp_path / "test.npz", x=x[half:], y=y[half:])
    saved = ROOT / "tests/material/trees/cancer_lightgbm_gbdt.txt"
    words = [
        "convert",
        saved,
        "--calibration",
        tmp_path / "fit.npz",
        "--test",
        tmp_path / "test.npz",
        "--out",
        tmp_path / "out",
    ]
    assert main([*map(str, words), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kind"] == "LightGBM" and abs(report["int8"]["accuracy"] - report["float"]["accuracy"]) < 0.01
    assert report["bytes"]["bundle_bytes"] == (tmp_path / "out/cancer_lightgbm_gbdt.h2m").stat().st_size < 2000


def of_a_day(seed=1):
    """(x, y): seconds since 1970 within a day, and a number that tells nothing; the class changes every hour."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([1.7e9 + np.sort(rng.integers(0, 86400, 3000)), rng.normal(size=3000)])
    return x, ((x[:, 0] - 1.7e9) // 3600 % 2).astype(int)


def test_a_report_compares_with_the_library_on_seconds_since_1970(tmp_path, capsys):
    """Whose steps in float32 are 128 s; the int8 model tells them apart all the same."""
    x, y = of_a_day()
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(x[::2], y[::2])
    joblib.dump(model, tmp_path / "model.joblib")
    np.savez(tmp_path / "fit.npz", x=x[::2], y=y[::2])
    np.savez(tmp_path / "test.npz", x=x[1::2], y=y[1::2])
    files = ("--calibration", tmp_path / "fit.npz", "--test", tmp_path / "test.npz", "--out", tmp_path / "out")
    assert main([str(word) for word in ("convert", tmp_path / "model.joblib", *files, "--json", "-")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["float"]["accuracy"] == model.score(x[1::2], y[1::2]) and report["int8"]["accuracy"] > 0.95
    changed = (model.predict(x[1::2]) != model.predict(x[1::2].astype(np.float32))).sum()
    assert any("number 0 of a sample lies near 1.7e+09, where floats of 32 bits are 128 apart" in w for w in report["warnings"])
    assert any(f"{changed} of 1500 samples get another decision" in warning for warning in report["warnings"])


def test_a_device_tells_seconds_since_1970_apart(tmp_path):
    """The integers that turn whole numbers into int8 decide as the library's doubles do."""
    x, y = of_a_day()
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(x[::2], y[::2])
    joblib.dump(model, tmp_path / "model.joblib")
    np.savez(tmp_path / "test.npz", x=x[1::2], y=y[1::2])
    (tmp_path / "remote.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    mine = tmp_path / "mine"
    words = ("pair", tmp_path / "model.joblib", f"{tmp_path / 'remote.py'}:scores", "--test", tmp_path / "test.npz")
    assert main([str(word) for word in (*words, "--out", mine)]) == 0
    pair = pairs.load(str(mine))
    local, ldl = Measured(**app.measured(mine, pair.info)["local"]), open_exact(pair.ldl)
    measured = [[int(row[0]), float(row[1])] for row in x[1::2].tolist()]
    decided = np.array([ldl.score(ldl.run(local(row))) >= 0.5 for row in measured])
    assert (decided == (model.predict_proba(x[1::2])[:, 1] >= 0.5)).mean() > 0.97 and pair.x.dtype == np.float64


def test_trees_are_no_remote_model(tmp_path, capsys):
    x, y, half = data("cancer")
    np.savez(tmp_path / "test.npz", x=x[half:], y=y[half:])
    local, remote = (ROOT / f"tests/material/trees/cancer_{name}" for name in ("xgboost_gbtree.json", "lightgbm_rf.txt"))
    assert main(["pair", str(local), str(remote), "--test", str(tmp_path / "test.npz"), "--out", str(tmp_path / "pair")]) == 2
    err = capsys.readouterr().err
    assert "lightgbm_rf.txt: no remote model: decision trees: TFLite runs none" in err and "FILE.py:FUNCTION" in err
    assert not (tmp_path / "pair").exists()


def project(folder, local, of, *options):
    """`h2t2 pair` and `h2t2 new`: a project whose local model is trees, with 60 samples."""
    x, y, half = data(of)
    with np.errstate(all="ignore"):
        big = make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=200, random_state=0)).fit(x[:half], y[:half])
    (folder / "big.joblib").write_bytes(pickle.dumps(big))
    np.savez(folder / "test.npz", x=x[half:], y=y[half:])
    words = ["pair", local, folder / "big.joblib", "--test", folder / "test.npz", "--out", folder / "pair", *options]
    assert main([*map(str, words)]) == 0
    return folder / "pair"


BOARDS = ["unix", *(pytest.param(board, marks=pytest.mark.whole) for board in ("arm32", "pico"))]


@pytest.mark.slow
@pytest.mark.timeout(900)  # an emulated Pico on a busy machine
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("of", ["cancer", "wine"])
def test_from_a_saved_file_to_a_board_that_decides(of, board, tmp_path):
    """LightGBM's file of two classes, and scikit-learn's random forest of three: pair, project, decisions of the board."""
    need(run_emulated.EMULATED[board])
    local, options = ROOT / "tests/material/trees/cancer_lightgbm_gbdt.txt", ()
    if of == "wine":
        x, y, half = data(of)
        local, options = tmp_path / "forest.joblib", ("--classes", "3")
        joblib.dump(RandomForestClassifier(12, max_depth=6, random_state=0).fit(x[:half], y[:half]), local)
    pair = project(tmp_path, local, of, *options)
    assert (pair / "ldl.h2m").exists()
    assert main(["new", str(tmp_path / "mine"), "--from", str(pair), "--board", {"arm32": "unix"}.get(board, board)]) == 0
    rows = (tmp_path / "mine/samples.csv").read_text().splitlines(keepends=True)[:40]
    (tmp_path / "mine/samples.csv").write_text("".join(rows))
    ran([*H2T2, "run", tmp_path / "mine", "--board", board, "--json", tmp_path / "report.json"])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"]["samples"] == sum(report["decisions"].values()) == 40
    assert report["accuracy"] > 0.85 and not report["trouble"]


@pytest.mark.slow
def test_a_device_counts_numbers_outside_the_calibration_and_no_healthy_ones(tmp_path):
    """int8 clips whatever lies outside the thresholds of an input, which most samples of a number do."""
    x, y, half = data("cancer")
    np.savez(tmp_path / "test.npz", x=x[half:], y=y[half:])
    np.save(tmp_path / "train.npy", x[:half])
    (tmp_path / "remote.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    model, mine = ROOT / "tests/material/trees/cancer_lightgbm_gbdt.txt", tmp_path / "mine"
    samples = ("--test", tmp_path / "test.npz", "--calibration", tmp_path / "train.npy", "--out", mine)
    h2t2("pair", model, f"{tmp_path / 'remote.py'}:scores", *samples)
    local = Measured(**app.measured(mine, pairs.load_info(str(mine)))["local"])
    clipped = [local(row) for row in x[half:].tolist()]
    assert max(max(row) for row in clipped) == 127 and local.saturated <= 0.02 * len(clipped)
    healthy = local.saturated
    for row in x[half:] * 1000:  # another unit
        local(row.tolist())
    assert local.saturated == healthy + len(clipped)


@pytest.mark.parametrize("file", ["cancer_lightgbm_gbdt.txt", "cancer_lightgbm_gbdt.json", "cancer_xgboost_gbtree.json"])
def test_a_booster_tells_the_columns_that_a_user_has_named(file, tmp_path):
    """Those that LightGBM numbers are no names."""
    path = ROOT / "tests/material/trees" / file
    assert column_names(path) is None
    names = [f"c{n}" for n in range(30)]
    if path.suffix == ".txt":
        text = path.read_text().replace("Column_", "c")
    else:
        content = json.loads(path.read_text())
        content.get("learner", content)["feature_names"] = names
        text = json.dumps(content)
    (tmp_path / file).write_text(text)
    assert column_names(tmp_path / file) == names

"""What stands before a model and travels as `prepared`: NaN, categories and their words, from a table to int8 scores."""

import json

import joblib
import numpy as np
import pytest
from on_boards import tumours
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from support import need

from h2t2.ldl.bundle import Int8Model
from h2t2.node.measured import Measured
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.pairs import InputScaling
from h2t2_tools.model import bundle
from h2t2_tools.model.convert import from_scikit
from h2t2_tools.model.convert.quiet import quiet
from h2t2_tools.model.convert.scaling import scaled
from h2t2_tools.model.exact import open_exact

pandas = pytest.importorskip("pandas", reason="no pandas; run: pip install pandas")
pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

NUMBERS = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
COLOURS = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
BEFORE = make_column_transformer((NUMBERS, ["age", "load"]), (COLOURS, ["colour"]), (OneHotEncoder(drop="first"), ["month"]))
MODELS = {
    "linear": make_pipeline(BEFORE, LogisticRegression(max_iter=500)),
    "network": make_pipeline(BEFORE, MLPClassifier((8,), max_iter=300, random_state=0)),
    "forest": make_pipeline(BEFORE, RandomForestClassifier(40, max_depth=7, random_state=0)),
    "forest of words' numbers": make_pipeline(
        make_column_transformer(
            (SimpleImputer(), ["age"]),
            (make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OrdinalEncoder()), ["colour"]),
            ("passthrough", ["month", "load"]),
        ),
        RandomForestClassifier(40, max_depth=7, random_state=0),
    ),
}
MODELS["gaps are a category"] = make_pipeline(
    make_column_transformer(
        (NUMBERS, ["age", "load"]), (OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("passthrough", ["month"])
    ),
    LogisticRegression(max_iter=500),
)
MODELS["no int8 form"] = make_pipeline(BEFORE, SVC(probability=True, random_state=0))
TRAINED = 500


def tables():
    """A data frame with numbers, words and a category, some of them missing, and the labels."""
    rng = np.random.default_rng(0)
    n = TRAINED + 300
    frame = pandas.DataFrame(
        {
            "age": rng.normal(40, 12, n).round(3),
            "colour": rng.choice(["red", "blue", "green"], n, p=[0.6, 0.3, 0.1]).astype(object),
            "month": rng.integers(1, 6, n),
            "load": rng.exponential(900, n).round(2),
        }
    )
    logit = (frame.age - 40) / 12 + (frame.colour == "red") * 1.2 - (frame.month == 3) * 2 + frame.load / 900 - 0.8
    y = (logit + rng.normal(0, 0.5, n) > 0).astype(int)
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = np.nan
    return frame, y


def written(folder, frame, y, form):
    """Training and test samples with their labels in a column, in files of a form."""
    whole = frame.assign(label=y)
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="no pyarrow; run: pip install 'h2t2-edge[parquet]'")
        whole["colour"] = whole.colour.astype("category")
    for name, part in (("train", whole[:TRAINED]), ("test", whole[TRAINED:])):
        path = folder / f"{name}.{form}"
        part.to_parquet(path) if form == "parquet" else part.to_csv(path, index=False)


def saved(folder, name):
    """(the fitted model, its scores of the test samples), with the file small.joblib."""
    frame, y = tables()
    with quiet():
        model = MODELS[name].fit(frame[:TRAINED], y[:TRAINED])
    joblib.dump(model, folder / "small.joblib")
    return frame, y, model.predict_proba(frame[TRAINED:])[:, 1]


def h2t2(*words, capsys=None):
    code = main([*map(str, words)])
    assert code == 0, capsys.readouterr().err if capsys else code


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "no int8 form"])
def test_a_table_of_words_and_gaps_gives_the_scores_of_scikit_learn(name, form, tmp_path, monkeypatch, capsys):
    """The device's own arithmetic prepares each row of the samples."""
    monkeypatch.chdir(tmp_path)
    frame, y, exact = saved(tmp_path, name)
    written(tmp_path, frame, y, form)
    h2t2(
        "pair", "small.joblib", "small.joblib", "--test", f"test.{form}", "--calibration", f"train.{form}", "--out", "mine",
        "--payload", "float32", "--trust", capsys=capsys,
    )  # fmt: skip
    pair = pairs.load("mine")
    with np.load("mine/trace.npz") as trace:
        found = trace["score"]
    assert np.abs(found - exact).max() < 0.05 and ((found >= 0.5) != (exact >= 0.5)).mean() <= 0.01
    assert "0 blue, 1 green" in (tmp_path / "mine/README.md").read_text()
    assert np.isnan(pair.x).any() and json.loads((tmp_path / "mine/pair.json").read_text())["prepared"]["ldl"]["missing"]


def test_a_remote_model_gets_words_and_gaps_as_floats_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame, y, _ = saved(tmp_path, "forest")
    written(tmp_path, frame, y, "csv")
    words = ("pair", "small.joblib", "small.joblib", "--test", "test.csv", "--out", "mine", "--trust")
    assert main([*words]) == 2 and "--payload float32 sends them" in capsys.readouterr().err


@pytest.mark.parametrize("fit", [False, True])
def test_a_model_that_takes_no_missing_number_is_named_beside_one_that_does(fit, tmp_path, monkeypatch, capsys):
    """It ended as a defect of h2t2, with scikit-learn's traceback. fit: the calibration samples alone have the gap."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    x = y[:, None] + rng.normal(0, 1, (80, 3))
    gaps = x.copy()
    gaps[5, 1] = np.nan
    joblib.dump(LogisticRegression().fit(x, y), "plain.joblib")
    joblib.dump(make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(gaps, y), "small.joblib")
    for name, numbers in (("gaps", gaps), ("whole", x)):
        pandas.DataFrame(numbers, columns=["a", "b", "c"]).assign(label=y).to_csv(f"{name}.csv", index=False)
    files = ("--test", "whole.csv", "--calibration", "gaps.csv") if fit else ("--test", "gaps.csv")
    assert main(["pair", "small.joblib", "plain.joblib", *files, "--out", "mine", "--trust"]) == 2
    error = capsys.readouterr().err
    assert "plain.joblib takes no missing number: 1 of 80 samples" in error and "sample 5: b is missing" in error
    assert "Traceback" not in error


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_a_board_prepares_words_and_gaps(tmp_path, monkeypatch, capsys):
    need(UNIX)
    monkeypatch.chdir(tmp_path)
    frame, y, exact = saved(tmp_path, "linear")
    written(tmp_path, frame, y, "csv")
    (tmp_path / "remote.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    h2t2(
        "pair", "small.joblib", "remote.py:scores", "--test", "test.csv", "--calibration", "train.csv", "--out", "mine",
        "--payload", "float32", "--trust", capsys=capsys,
    )  # fmt: skip
    h2t2("new", "porch", "--from", "mine")
    h2t2("run", "porch", "--board", "unix")
    rows = (tmp_path / "porch/run-unix/decisions.csv").read_text().splitlines()
    found = np.array([float(row.rpartition(",")[2]) for row in rows])
    assert len(found) == len(exact) and np.abs(found - exact).max() < 0.05
    assert ((found >= 0.5) != (exact >= 0.5)).mean() <= 0.01


def test_the_device_prepares_as_the_host():
    """NaN and categories, as whole numbers and as real ones; a number with neither rule stays refused."""
    scaling = InputScaling(factor=[2.0, 3.0, 1.0], offset=[0.0, 1.0, 0.0], missing=[4.5, None, None], equal=[None, 2.0, None])
    ends = {"multipliers": [2 << 14, 3 << 14, 1 << 14], "offsets": [0, 1 << 14, 0], "shifts": [14] * 3}
    measured = Measured(None, **ends, missing=scaling.missing, equal=scaling.equal)
    for row in ([float("nan"), 2, 7], [3, 2.5, 7], [3.5, 2.0, -7], [1.0, float("nan"), 0]):
        assert measured(row).tolist() == scaling.apply(np.array(row, np.float32)).tolist()
    with pytest.raises(ValueError, match="number 2 of a sample is missing"):
        measured([1, 2, float("nan")])


REFUSED = {
    "a OneHotEncoder behind a scaler": make_pipeline(StandardScaler(), OneHotEncoder(), LogisticRegression()),
    "a OneHotEncoder that groups infrequent categories": make_pipeline(OneHotEncoder(max_categories=2), LogisticRegression()),
    "an OrdinalEncoder of other categories than texts": make_pipeline(OrdinalEncoder(), LogisticRegression()),
    "a SimpleImputer .* of another number than NaN": make_pipeline(SimpleImputer(missing_values=0), LogisticRegression()),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_an_encoding_that_does_not_travel_names_what_does(reason):
    x = np.random.default_rng(0).integers(0, 4, (60, 3)).astype(float)
    with pytest.raises(UserError, match=f"model.joblib: {reason}.*--distil"):
        from_scikit.from_object(REFUSED[reason].fit(x, x[:, 0] > 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_has_no_int8_form_becomes_trees(tmp_path, monkeypatch, capsys):
    """The refusal names the option, and the pair of the trees reads the same table."""
    monkeypatch.chdir(tmp_path)
    frame, y, exact = saved(tmp_path, "no int8 form")
    written(tmp_path, frame, y, "csv")
    (tmp_path / "remote.py").write_text("def scores(x):\n    return [0.5] * len(x)\n")
    words = ("pair", "small.joblib", "remote.py:scores", "--test", "test.csv", "--calibration", "train.csv", "--out", "mine")
    words = (*words, "--payload", "float32", "--trust")
    assert main([*words]) == 2 and "--distil trains trees on its scores" in capsys.readouterr().err
    h2t2(*words, "--distil", capsys=capsys)
    with np.load("mine/trace.npz") as trace:
        agree = ((trace["score"] >= 0.5) == (exact >= 0.5)).mean()
    assert agree > 0.9


@pytest.mark.slow
def test_words_that_look_like_numbers_keep_the_order_of_the_model(tmp_path, monkeypatch, capsys):
    """scikit-learn sorts the labels "9", "10", "11" as words: 10, 11, 9."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    words = np.array(["9", "10", "11"])[(x + 0.1 * rng.normal(size=x.shape)).argmax(1)]
    joblib.dump(LogisticRegression().fit(x, words), "small.joblib")
    np.savetxt("test.csv", np.column_stack([x, words]), "%s", ",", header="a,b,c,label", comments="")
    h2t2(
        "pair",
        "small.joblib",
        "small.joblib",
        "--test",
        "test.csv",
        "--classes",
        "3",
        "--out",
        "mine",
        "--trust",
        capsys=capsys,
    )
    description = json.loads((tmp_path / "mine/pair.json").read_text())
    assert description["class_names"] == ["10", "11", "9"] and description["metrics"]["ldl"]["int8"]["accuracy"] > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ensemble", [True, False])
def test_an_isotonic_calibration_is_a_table_behind_the_score(ensemble, tmp_path):
    """int8 gives each score as the table has it, but where samples lie at a jump of the table."""
    x, y, half = tumours()
    model = make_pipeline(StandardScaler(), CalibratedClassifierCV(LinearSVC(), method="isotonic", ensemble=ensemble, cv=4))
    model.fit(x[:half], y[:half])
    source = scaled(from_scikit.from_object(model), x[:half])
    (tmp_path / "m.tflite").write_bytes(source.quantise(source.prepared(x[:half])))
    board = Int8Model(bundle.from_tflite(tmp_path / "m.tflite"), 0)
    exact = open_exact(tmp_path / "m.tflite")
    found = np.array([exact.score(board.run(exact.quantise(row).tolist())) for row in source.prepared(x[half:])])
    scores = model.predict_proba(x[half:])[:, 1]
    assert ((found >= 0.5) != (scores >= 0.5)).mean() <= 0.01 and (np.abs(found - scores) <= 0.05).mean() > 0.98

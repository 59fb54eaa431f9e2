"""Models from their files, by the commands of a user (`h2t2 pair`, `new`, `run`), to the decisions of an emulated board."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from h2t2_tools.model.convert.quiet import quiet
from h2t2_tools.model.convert.readers import open_source
from h2t2_tools.model.exact import open_exact

MATERIAL = Path(__file__).parent / "material"
TRAINED = Path(__file__).parents[1] / "results/pytorch"
sys.path.insert(0, str(MATERIAL / "pytorch"))

from samples import FIT, PUBLIC, SHAPES, TEST, doubled, draw, tumours  # noqa: E402

NETWORKS = tuple(SHAPES)
NEAR = 0.05  # of a score: a smaller difference changes few decisions of a policy
REMOTE = "def scores(x):\n    return [0.5] * len(x)\n"
Samples = tuple[np.ndarray, np.ndarray]  # x (n, ...) float32 and y (n,) of 0 and 1
BOOSTERS = {
    "cancer_lightgbm_gbdt.txt": "LightGBM, its text", "cancer_lightgbm_rf.txt": "LightGBM's random forest",
    "cancer_lightgbm_gbdt.json": "LightGBM, JSON", "cancer_xgboost_gbtree.json": "XGBoost, JSON",
    "cancer_xgboost_dart.json": "XGBoost's dart", "cancer_catboost.json": "CatBoost, JSON",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A trained model with two classes.

    Attributes:
        path: Its file.
        fit, test: Samples that calibrate it and that a board decides.
        scores: What its own framework says of the test samples, (n,).
    """

    path: Path
    fit: Samples
    test: Samples
    scores: np.ndarray


def network(name: str, count: int = 300) -> Case:
    """A PyTorch network of tests/material/pytorch, or of public.toml: `make pytorch` trains it, into results/pytorch."""
    path = (TRAINED if name in PUBLIC else MATERIAL / "pytorch") / f"{name}.onnx"
    x, y = draw(name, count, TEST)
    x = x.round(2)  # as a sensor has it: samples.csv holds 1 MiB
    return Case(path, draw(name, 200, FIT), (x, y), open_source(path).scores(x)[:, -1])


def booster(name: str) -> Case:
    """Boosted trees of tests/material/trees, in an environment without their library."""
    x, y, half = tumours()
    scores = np.load(MATERIAL / f"trees/{name.partition('.')[0]}.npy")[:, 1]
    return Case(MATERIAL / "trees" / name, (x[:half], y[:half]), (x[half:], y[half:]), scores[half:])


def pipeline(name: str, folder: Path) -> Case:
    """A pipeline of scikit-learn, fitted and saved in a folder, with its test samples and a noisy copy of each."""
    x, y, half = tumours()
    with quiet(), np.errstate(all="ignore"):
        model = clone(PIPELINES[name]).fit(x[:half], y[:half])
    joblib.dump(model, folder / "model.joblib")
    tested = doubled(x, half)
    scores = model.predict_proba(tested)[:, 1]
    return Case(folder / "model.joblib", (x[:half], y[:half]), (tested, np.tile(y[half:], 2)), scores)


TREE = DecisionTreeClassifier(max_depth=5, random_state=0)
PIPELINES = {
    "LogisticRegression of raw numbers": LogisticRegression(max_iter=5000),
    "StandardScaler, MLPClassifier with tanh": make_pipeline(
        StandardScaler(), MLPClassifier((12,), "tanh", max_iter=300, random_state=0)
    ),
    "StandardScaler, PCA, LogisticRegression": make_pipeline(StandardScaler(), PCA(8), LogisticRegression()),
    "ColumnTransformer of scalers, linear SVC": make_pipeline(
        make_column_transformer((StandardScaler(), [0, 3, 20, 22]), (RobustScaler(), [7, 27])),
        SVC(kernel="linear", probability=True, random_state=0),
    ),
    "LinearSVC in CalibratedClassifierCV": CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC())),
    "LinearSVC with isotonic calibration": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), LinearSVC()), method="isotonic"
    ),
    "RandomForestClassifier": RandomForestClassifier(30, max_depth=6, random_state=0),
    "GradientBoostingClassifier": GradientBoostingClassifier(random_state=0),
    "BaggingClassifier of trees": BaggingClassifier(TREE, 10, random_state=0),
    "AdaBoostClassifier of trees": AdaBoostClassifier(n_estimators=20, random_state=0),
    "RandomForestClassifier with isotonic calibration": CalibratedClassifierCV(
        RandomForestClassifier(20, max_depth=6, random_state=0), method="isotonic", cv=3
    ),
    "VotingClassifier of a forest, an MLP and a regression": VotingClassifier(
        [
            ("forest", RandomForestClassifier(20, max_depth=6, random_state=0)),
            ("network", make_pipeline(StandardScaler(), MLPClassifier((12,), max_iter=300, random_state=0))),
            ("linear", make_pipeline(StandardScaler(), LogisticRegression())),
        ],
        voting="soft",
    ),
    "AdaBoostClassifier of regressions": make_pipeline(
        StandardScaler(), AdaBoostClassifier(LogisticRegression(C=0.05), n_estimators=8, random_state=0)
    ),
    "VotingClassifier of trees": VotingClassifier(
        [("tree", TREE), ("forest", RandomForestClassifier(10, random_state=0))], voting="soft"
    ),
}


def board_scores(h2t2: Callable[..., None], folder: Path, case: Case) -> np.ndarray:
    """The scores (n,) of the test samples, as the model gives them on the emulated board unix.

    Args:
        h2t2: Runs a command of h2t2 in the folder, and fails where the command does.
        folder: An empty folder.
        case: The model.
    """
    _write_samples(folder, case)
    (folder / "remote.py").write_text(REMOTE)
    samples = ("--test", "test.npz", "--calibration", "train.npz")
    h2t2("pair", case.path, "remote.py:scores", *samples, "--out", "pair", "--trust")
    h2t2("new", "porch", "--from", "pair")
    h2t2("run", "porch", "--board", "unix")
    rows = (folder / "porch/run-unix/decisions.csv").read_text().splitlines()
    return np.array([float(row.rpartition(",")[2]) for row in rows])


def host_scores(h2t2: Callable[..., None], folder: Path, case: Case) -> np.ndarray:
    """As board_scores(), by `h2t2 convert` and the integer interpreter on this machine, which computes what boards compute."""
    _write_samples(folder, case)
    h2t2("convert", case.path, "--calibration", "train.npz", "--test", "test.npz", "--out", "pair")
    model = open_exact((folder / f"pair/{case.path.stem}_int8.tflite").rename(folder / "pair/ldl.tflite"))
    return np.array([model.scores(model.quantise(x))[-1] for x in case.test[0]])


def _write_samples(folder: Path, case: Case) -> None:
    for name, (x, y) in (("train", case.fit), ("test", case.test)):
        np.savez(folder / f"{name}.npz", x=x, y=y)


def compared(exact: np.ndarray, found: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """What is different about scores (n,) of a model's other form, as shares and scores."""
    decisions = exact >= 0.5, found >= 0.5
    difference = np.abs(found - exact)
    return {
        "float": float((decisions[0] == y).mean()), "int8": float((decisions[1] == y).mean()),
        "changed": float((decisions[0] != decisions[1]).mean()), "mean": float(difference.mean()),
        "most": float(np.quantile(difference, 0.99)), "beyond": float((difference > NEAR).mean()),
    }  # fmt: skip

"""scikit-learn's models as sources: what the layers compute is what the model says, and int8 says nearly the same."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from h2t2.ldl.bundle import Int8Model
from h2t2_tools.common.errors import UserError
from h2t2_tools.model import bundle
from h2t2_tools.model.convert import from_scikit
from h2t2_tools.model.convert.quiet import quiet
from h2t2_tools.model.convert.scaling import scaled
from h2t2_tools.model.exact import open_exact

pytest.importorskip("ai_edge_quantizer", reason="the extra convert is not installed: pip install 'h2t2-edge[convert]'")

COLUMNS = ColumnTransformer(
    [
        ("standard", StandardScaler(), [3, 20, 7]),
        ("robust", make_pipeline(RobustScaler(), MinMaxScaler()), slice(10, 13)),
        ("again", MinMaxScaler(), np.arange(30) == 3),
        ("left out", "drop", [0, 1]),
        ("as it is", "passthrough", [-1]),
    ],
    remainder=StandardScaler(),
)
NETWORK = MLPClassifier((6,), max_iter=60, random_state=0)
BINARY = {
    "robust": make_pipeline(RobustScaler(), LogisticRegression()),
    "half robust": make_pipeline(RobustScaler(with_centering=False), StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2),
    "search inside": make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2)),
    "columns": make_pipeline(COLUMNS, LogisticRegression(max_iter=500)),
    "columns, then scaled": make_pipeline(COLUMNS, StandardScaler(), NETWORK),
    "few columns": make_pipeline(make_column_transformer((StandardScaler(), [4, 2])), LogisticRegression()),
    "a function": make_pipeline(make_column_transformer((FunctionTransformer(), [26, 27])), LogisticRegression()),
    "calibrated": CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), cv=3),
    "calibrated as one": make_pipeline(StandardScaler(), CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=3)),
    "calibrated network": make_pipeline(StandardScaler(), CalibratedClassifierCV(NETWORK, ensemble=False, cv=2)),
    "isotonic": CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), method="isotonic", cv=3),
    "isotonic as one": make_pipeline(
        StandardScaler(), CalibratedClassifierCV(LogisticRegression(), method="isotonic", ensemble=False, cv=3)
    ),
    "isotonic network": make_pipeline(
        StandardScaler(), CalibratedClassifierCV(NETWORK, method="isotonic", ensemble=False, cv=2)
    ),
    "principal components": make_pipeline(StandardScaler(), PCA(8, whiten=True), StandardScaler(), LogisticRegression()),
    "components for a network": make_pipeline(StandardScaler(), PCA(12), NETWORK),
    "tanh": make_pipeline(StandardScaler(), MLPClassifier((8,), "tanh", max_iter=60, random_state=0)),
    "cross-validated": make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=3, cv=2)),
    "chosen columns": make_pipeline(SelectKBest(k=8), StandardScaler(), VarianceThreshold(), LogisticRegression()),
    "chosen components": make_pipeline(StandardScaler(), PCA(8), SelectKBest(k=5), NETWORK),
    "ridge": make_pipeline(StandardScaler(), RidgeClassifier()),
    "discriminant": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    "stochastic": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
    "distances": make_pipeline(StandardScaler(), LinearSVC()),
    "kernel": make_pipeline(StandardScaler(), SVC(kernel="linear")),
    "kernel, with probability": make_pipeline(StandardScaler(), SVC(kernel="linear", probability=True, random_state=0)),
    "bagged": make_pipeline(StandardScaler(), BaggingClassifier(LogisticRegression(), 5, max_features=0.5, random_state=0)),
    "bagged pipelines": BaggingClassifier(make_pipeline(StandardScaler(), LogisticRegression()), 4, random_state=0),
    "voted for": VotingClassifier(
        [
            ("regression", make_pipeline(StandardScaler(), LogisticRegression())),
            ("discriminant", make_pipeline(RobustScaler(), LinearDiscriminantAnalysis())),
        ],
        voting="soft",
        weights=[2, 1],
    ),
}
TOLERANCE = {"kernel, with probability": 0.005}  # libsvm computes probabilities in steps, and stops near them
MANY = {
    "distances": make_pipeline(StandardScaler(), LinearSVC()),
    "columns": make_pipeline(make_column_transformer((RobustScaler(), [12, 0, 6, 9])), LogisticRegression()),
}


def trained(model, data):
    x, y = data(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(x))
    x, y = x[order], y[order]
    with quiet(), np.errstate(all="ignore"):
        return model.fit(x[: len(x) * 2 // 3], y[: len(x) * 2 // 3]), x, y


EVERY = [*((name, load_breast_cancer) for name in BINARY), *((name, load_wine) for name in MANY)]


def decisions(scores):
    return (scores[:, 0] >= 0.5).astype(int) if scores.shape[1] == 1 else scores.argmax(1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, data", EVERY)
def test_the_layers_compute_what_the_model_says(name, data, tmp_path):
    model, x, y = trained((BINARY if data is load_breast_cancer else MANY)[name], data)
    scores = from_scikit.from_object(model).scores(x)
    assert from_scikit._network(model, tmp_path).scores(x) == pytest.approx(scores, abs=TOLERANCE.get(name, 1e-6))
    if not hasattr(model, "predict_proba"):  # the scores are its distances
        assert (decisions(scores) == model.predict(x)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, data", EVERY)
def test_the_int8_form_decides_alike(name, data, tmp_path):
    model, x, y = trained((BINARY if data is load_breast_cancer else MANY)[name], data)
    source = from_scikit.from_object(model)
    path = tmp_path / "int8.tflite"
    path.write_bytes(source.quantise(source.prepared(x[: len(x) * 2 // 3])))
    exact = open_exact(path)
    rounded = np.array([exact.scores(exact.quantise(row)) for row in source.prepared(x)])
    scores = source.scores(x)
    assert (decisions(rounded) == decisions(scores)).mean() > 0.97
    assert np.abs(rounded - scores).mean() < 0.03


FOREST = RandomForestClassifier(20, max_depth=6, random_state=0)
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
UNLIKE = {
    "isotonic forests": CalibratedClassifierCV(FOREST, method="isotonic", cv=3),
    "sigmoid forest": CalibratedClassifierCV(FOREST, ensemble=False, cv=3),
    "isotonic": CalibratedClassifierCV(SCALED, method="isotonic", cv=3),
    "sigmoid networks": CalibratedClassifierCV(make_pipeline(StandardScaler(), NETWORK), cv=2),
    "votes": VotingClassifier(
        [("trees", FOREST), ("network", make_pipeline(StandardScaler(), NETWORK)), ("linear", SCALED)],
        voting="soft",
        weights=[2, 1, 1.5],
    ),
    "votes behind a scaler": make_pipeline(
        StandardScaler(), VotingClassifier([("trees", FOREST), ("linear", LogisticRegression())], voting="soft")
    ),
    "bagged behind a scaler": make_pipeline(StandardScaler(), BaggingClassifier(LogisticRegression(), 3, random_state=0)),
    "bagged boosters": BaggingClassifier(GradientBoostingClassifier(n_estimators=10, random_state=0), 3, max_features=0.6),
    "boosted regressions": make_pipeline(StandardScaler(), AdaBoostClassifier(LogisticRegression(C=0.05), n_estimators=8)),
    "boosted boosters": CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=10, random_state=0), cv=2),
}
ONLY_BINARY = "boosted regressions", "boosted boosters"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, data", [*((n, load_breast_cancer) for n in UNLIKE), *((n, load_wine) for n in UNLIKE if n not in ONLY_BINARY)]
)
def test_unlike_parts_and_calibrations_of_classes_have_one_int8_form(name, data, tmp_path):
    """The scores of scikit-learn itself; a vote or a step of a table may fall on the other side for a sample at it."""
    model, x, _ = trained(UNLIKE[name], data)
    fit = x[: len(x) * 2 // 3]
    source = scaled(from_scikit.from_object(model), fit)
    path = tmp_path / "int8.tflite"
    path.write_bytes(source.quantise(source.prepared(fit)))
    exact = open_exact(path)
    rounded, scores = np.array([exact.scores(exact.quantise(row)) for row in source.prepared(x)]), source.scores(x)
    assert (decisions(rounded) == decisions(scores)).mean() > 0.985
    difference = np.abs(rounded - scores)
    assert difference.mean() < 0.008 and (difference <= 0.05).mean() > 0.96
    board = Int8Model(bundle.from_tflite(path), 0)
    for row in source.prepared(x[-20:]):
        assert board.run(exact.quantise(row).tolist()) == exact.run(exact.quantise(row))


def test_a_number_that_no_column_reads_cannot_spoil_the_scale():
    """A million in a number that the ColumnTransformer drops is 0 before it is quantised."""
    model, x, _ = trained(BINARY["few columns"], load_breast_cancer)
    x[:, 0] = 1e6
    prepared = from_scikit.from_object(model).prepared(x)
    assert not prepared[:, [n for n in range(30) if n not in (2, 4)]].any() and np.abs(prepared).max() < 10


REFUSED = {
    "distances of GradientBoostingClassifier: only": (
        CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=5), cv=2), load_wine,
    ),
    "AdaBoostClassifier of 3 classes: only of trees": (AdaBoostClassifier(LogisticRegression(), n_estimators=3), load_wine),
    "SVC with the kernel rbf": (SVC(), load_breast_cancer),
    "BaggingClassifier of LinearSVC: its parts need predict_proba": (BaggingClassifier(LinearSVC(), 2), load_breast_cancer),
    "LinearSVC has one score a class": (SVC(kernel="linear"), load_wine),
    "PolynomialFeatures is not a scaler": (
        make_pipeline(make_column_transformer((PolynomialFeatures(), [1, 2])), LogisticRegression()), load_wine,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_converted_is_named(reason):
    model, _, _ = trained(*REFUSED[reason])
    with pytest.raises(UserError, match=f"model.joblib: .*{reason}.*--distil"):
        from_scikit.from_object(model)


@pytest.mark.parametrize("first", ["passthrough", None])
def test_a_first_step_that_passes_through_is_none(first):
    x = np.random.default_rng(1).normal(size=(40, 3))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, x[:, 0] > 0)
    model.steps.insert(0, ("first", first))
    assert np.allclose(from_scikit.from_object(model).scores(x).ravel(), model.predict_proba(x)[:, 1], atol=1e-6)

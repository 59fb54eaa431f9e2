"""`flywheel`: how much a local model improves if it learns from its own offloads.

A local model, trained on a tenth of the data, meets 10,000 samples in the field. The run keeps each offloaded sample with the
remote model's label. Three times it trains the model again on that tenth and on the kept samples. A kept sample weighs 1 /
(the probability that the policy offloaded it), up to CAP.

A held-out part of the data, which neither the training nor the field has used, evaluates the models. The run compares them
with the first model and with a model that was trained on all data and true labels. As in the paper, the remote model's answer
counts as right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.core import policies as core
from h2t2.core.numbers import ONE
from h2t2.core.policy import OFFLOAD
from h2t2.units import q15, table
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.matrices import equal_costs
from h2t2_tools.replay.simulation.policies.learners import Adaptive, AdaptiveClasses
from h2t2_tools.replay.simulation.stream import Costs
from h2t2_tools.replay.simulation.sweep import Job, sweep
from h2t2_tools.replay.traces import Trace

from .. import datasets, lab_plots
from ..datasets.data import pooled
from ..lab_plots import compared
from .setting import DELTA_FN, DELTA_FP, Setting, paper_costs

BETA, BITS = 0.2, 4
RETRAININGS = 3
FIRST = 0.1  # share of the training data that the first model learns from
HELD = 0.3  # share of all data that evaluates the models
CAP = 20.0  # largest weight of a kept sample
CHEAP = [1, 4, 8, 9, 11]  # features of cells that are cheap to measure (models/breast_cancer/train.py)
SIX = [5, 6, 12, 14, 15, 25]  # features of a page that are cheap to read (models/phishing/train.py)
TRAINED = "adaptive, model trained again"  # how pictures call it
HARD = (1, 3, 5, 8, 9)  # the digits that a model confuses with 8


@dataclass(frozen=True)
class Field:
    """A data set and its two views.

    Attributes:
        name: Name of the data set.
        x: Samples as the remote model reads them.
        y: (n,) true classes.
        local: Returns the part of x that the local model reads.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    local: Callable[[np.ndarray], np.ndarray]

    @property
    def costs(self) -> Costs:
        if self.y.max() < 2:
            return paper_costs(BETA)
        return Costs.of(BETA, equal_costs(int(self.y.max()) + 1))


def fields(data: Path | None) -> list[Field]:
    """Return the data sets whose features or images are on this machine."""
    fields_at_hand = [_cells(), *_digits()]
    for name, local in (("phishing", lambda x: x[:, SIX]), ("chest_xray", lambda x: pooled(x.reshape(-1, 28, 28), 7))):
        try:
            x, y = datasets.load(name, data).all_samples()
        except UserError:
            continue
        if name == "chest_xray":
            x = x.reshape(len(x), -1) / 255.0
        fields_at_hand.append(Field(name, x.astype(np.float32), y.astype(int), local))
    return fields_at_hand


def _cells() -> Field:
    x, y = datasets.load("breast_cancer", None).all_samples()
    return Field("breast_cancer", x, y.astype(int), lambda x: x[:, CHEAP])


def _digits() -> list[Field]:
    images, labels = datasets.load("digits", None).all_samples()
    x, y = (images / 16.0).reshape(len(images), -1).astype(np.float32), labels.astype(int)
    initial = np.isin(y, HARD)

    def local(x: np.ndarray) -> np.ndarray:
        return pooled(x.reshape(-1, 8, 8), 2)

    return [Field("digits", x[initial], (y[initial] == 8).astype(int), local), Field("ten_digits", x, y, local)]


def _model(weak: bool) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    strong = MLPClassifier((64,), early_stopping=True, random_state=0, max_iter=100)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300) if weak else strong)


def _fitted(x: np.ndarray, y: np.ndarray, weight: np.ndarray, classes: int) -> Callable[[np.ndarray], np.ndarray]:
    """Train a local model and return its scoring function: (n,) scores of class 1, or (n, K) class scores."""
    model = _model(True).fit(x, y, logisticregression__sample_weight=weight)
    columns = model.classes_

    def scores(x: np.ndarray) -> np.ndarray:
        shares = np.zeros((len(x), classes))
        shares[:, columns] = model.predict_proba(x)
        return shares[:, 1] if classes == 2 else shares

    return scores


@dataclass
class Life:
    """Costs a sample of one run: in each quarter of the field, and of three models on the held-out data."""

    quarters: list[float]
    first: float
    last: float
    everything: float


def live(field: Field, samples: int, seed: int) -> tuple[Life, list[float]]:
    """Simulate a device that is retrained. Return its costs, and the cost of each quarter for one that is not retrained."""
    from sklearn.model_selection import cross_val_predict

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(field.y))
    held, used = np.split(order, [int(HELD * len(order))])
    classes = int(field.y.max()) + 1
    strong = _model(False)
    labels = np.zeros(len(field.y), int)  # the remote model labels no sample that it was trained on
    labels[used] = cross_val_predict(strong, field.x[used], field.y[used], cv=3)
    labels[held] = strong.fit(field.x[used], field.y[used]).predict(field.x[held])
    initial = used[: max(int(FIRST * len(used)), 5 * classes)]
    local = field.local(field.x)
    stream = rng.choice(used, samples)

    def trained(training: np.ndarray, weight: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        x = np.concatenate([local[initial], local[training]])
        y = np.concatenate([field.y[initial], labels[training]])
        return _fitted(x, y, np.concatenate([np.ones(len(initial)), weight]), classes)

    none = np.zeros(0, int)
    first = trained(none, np.zeros(0))
    everything = _fitted(local[used], field.y[used], np.ones(len(used)), classes)
    never, _, _ = _quarters(field, [first] * (RETRAININGS + 1), local, labels, stream, seed)
    quarters: list[float] = []
    training, weight, model = none, np.zeros(0), first
    for batch in np.array_split(stream, RETRAININGS + 1):
        cost, offloaded, chance = _quarters(field, [model], local, labels, batch, seed)
        quarters += cost
        training, weight = np.concatenate([training, offloaded]), np.concatenate([weight, np.minimum(1 / chance, CAP)])
        if len(quarters) <= RETRAININGS:
            model = trained(training, weight)
    judged = [_judged(field, scorer(local[held]), labels[held], samples, seed) for scorer in (first, model, everything)]
    return Life(quarters, *judged), never


def _quarters(
    field: Field, models: list[Any], local: np.ndarray, labels: np.ndarray, stream: np.ndarray, seed: int
) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Play the device's policy on equal parts of a stream, one for each model.

    The policy starts anew with each new model, as on a device.

    Returns:
        The cost a sample of each part, the offloaded samples, and the probability with which each was offloaded.
    """
    costs, offloaded, chances = [], [], []
    policy, of = None, None
    for batch, model in zip(np.array_split(stream, len(models)), models):
        if model is not of:
            policy, of = new_policy(field.costs, seed), model
        paid, asked, chance = play_with_chances(policy, model(local[batch]), labels[batch], field.costs)
        costs.append(float(paid.mean()))
        offloaded.append(batch[asked])
        chances.append(chance)
    return costs, np.concatenate(offloaded), np.concatenate(chances)


def play_with_chances(
    policy: Any, scores: np.ndarray, labels: np.ndarray, costs: Costs
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Play a policy, which learns, on samples in their order.

    Args:
        policy: Of the core.
        scores: (n,) of class 1, or (n, K).
        labels: (n,) what the remote model answers.
        costs: An offload costs costs.beta.

    Returns:
        The cost of each sample, (n,); the indices of the offloaded ones, (m,); the probability of each offload, (m,).
    """
    matrix = np.array(costs.matrix)
    paid, offloaded, chances = np.empty(len(labels)), [], []
    for n, (score, label) in enumerate(zip(scores, labels.tolist())):
        action = policy.decide(_cells_of(score))
        if action == OFFLOAD:
            paid[n] = costs.beta
            offloaded.append(n)
            chances.append(max(1, policy.offload_chance()) / ONE)
            policy.learn(policy.ticket, label)
        else:
            paid[n] = matrix[label, action]
    return paid, np.array(offloaded, int), np.array(chances)


def new_policy(costs: Costs, seed: int) -> Any:
    """Return a policy of the core in its first state, for two or more classes."""
    options: dict[str, Any] = {"beta": q15(costs.beta, "beta"), "bits": BITS, "seed": seed + 1}
    if len(costs.matrix) == 2:
        return core.make("adaptive", {**options, "delta_fp": q15(DELTA_FP, "fp"), "delta_fn": q15(DELTA_FN, "fn")})
    return core.make("adaptive", {**options, "costs": [table(row, "costs") for row in costs.matrix]})


def _cells_of(score: Any) -> Any:
    """Return the input of a policy: the bin of a binary score, or the class scores in Q14."""
    if np.ndim(score) == 0:
        return min(int(score * (1 << BITS)), (1 << BITS) - 1)
    return [int(round(p * 16384)) for p in score]


def _judged(field: Field, scores: np.ndarray, labels: np.ndarray, samples: int, seed: int) -> float:
    """Return the cost a sample on these scores, with a policy in its first state."""
    policy = Adaptive(BITS) if scores.ndim == 1 else AdaptiveClasses(BITS)
    (result,) = sweep([Job(policy, Trace(field.name, scores, labels), field.costs, samples, seed, 3)])
    return float(result.mean("cost"))


def _quarter_rows(runs: list[list[float]]) -> list[dict[str, Any]]:
    """Return the mean cost of each quarter and its standard deviation over the runs."""
    return [
        {"quarter": n + 1, "cost": float(costs.mean()), "cost_sd": float(costs.std())}
        for n, costs in enumerate(np.array(runs).T)
    ]


def perform(setting: Setting) -> None:
    runs, samples = (1, 2000) if setting.quick else (10, 10000)
    rows: list[dict[str, Any]] = []
    content: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for field in fields(setting.data)[: 2 if setting.quick else None]:
        lives = [live(field, samples, seed) for seed in range(runs)]
        first, last, everything = (
            float(np.mean([getattr(life, name) for life, _ in lives])) for name in ("first", "last", "everything")
        )
        gaps = first - everything
        quarters = np.mean([life.quarters for life, _ in lives], 0)
        never = np.mean([quarter for _, quarter in lives], 0)
        content[field.name] = {
            Adaptive.name: _quarter_rows([quarter for _, quarter in lives]),
            TRAINED: _quarter_rows([life.quarters for life, _ in lives]),
        }
        rows.append(
            {
                "data": field.name,
                "samples": samples,
                "runs": runs,
                "before": first,
                "after": last,
                "everything": everything,
                "closed": (first - last) / gaps if gaps > 0 else float("nan"),
                "never": float(never.mean()),
                "retraining": float(quarters.mean()),
            }
        )
    setting.csv("flywheel", rows)
    saved = compared(sum(row["retraining"] for row in rows), sum(row["never"] for row in rows))
    lab_plots.grid(
        setting.png("flywheel"),
        content,
        ("quarter", "cost"),
        ("quarter of the samples", "cost a sample"),
        f"A local model that is trained again on its offloads costs {saved} in the field",
        f"first trained on a tenth of the data, then after each quarter of {samples:,} samples; {runs} runs; "
        "band: standard deviation over the runs",
    )

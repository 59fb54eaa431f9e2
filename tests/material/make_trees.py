"""Makes tests/material/trees and tests/material/gaps: models as boosting libraries save them, with what they say of samples.

.venv-torch/bin/python tests/material/make_trees.py  (with catboost, lightgbm and xgboost; the project needs none of them)
"""

import json
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_wine

OUT = Path(__file__).parent / "trees"
GAPS = Path(__file__).parent / "gaps"
SETS = {"cancer": load_breast_cancer, "wine": load_wine}


def data(name):
    x, y = SETS[name](return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    x, y = x[order].astype(np.float32), y[order]
    return x, y, len(x) * 2 // 3


def save(name, said):
    """Scores of every sample: of two classes the second's."""
    np.save(OUT / f"{name}.npy", np.asarray(said, np.float32))


def stopped_early(name, x, y, half):
    """Boosters that went on after their best round; XGBoost's file holds the later rounds as well."""
    last = len(x) - half // 3  # samples that stop the training
    parts = x[:half], y[:half]
    model = xgboost.XGBClassifier(
        booster={"cancer": "gbtree", "wine": "dart"}[name], n_estimators=40, max_depth=2, learning_rate=0.9,
        num_parallel_tree=2, subsample=0.5, early_stopping_rounds=6, random_state=1,
    )  # fmt: skip
    model.fit(*parts, eval_set=[(x[last:], y[last:])], verbose=False)
    model.save_model(OUT / f"{name}_xgboost_stopped.json")
    save(f"{name}_xgboost_stopped", model.predict_proba(x))
    model = lightgbm.LGBMClassifier(n_estimators=60, learning_rate=0.5, num_leaves=5, verbose=-1)
    model.fit(*parts, eval_X=x[last:], eval_y=y[last:], callbacks=[lightgbm.early_stopping(3, verbose=False)])
    model.booster_.save_model(str(OUT / f"{name}_lightgbm_stopped.txt"))
    save(f"{name}_lightgbm_stopped", model.predict_proba(x))


def with_gaps(x, y):
    """XGBClassifier(missing=0), of samples half of whose first ten numbers are 0. Its file does not tell of the 0."""
    x = x.copy()
    x[:, :10][np.random.default_rng(2).random((len(x), 10)) < 0.5] = 0
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=4, missing=0, random_state=1).fit(x, y)
    model.save_model(GAPS / "xgboost.json")
    np.savez_compressed(GAPS / "samples.npz", x=x, y=y, score=model.predict_proba(x)[:, 1])


def main():
    OUT.mkdir(exist_ok=True)
    GAPS.mkdir(exist_ok=True)
    for name in SETS:
        x, y, half = data(name)
        for kind in ("gbdt", "rf"):
            bagging = {"bagging_fraction": 0.7, "bagging_freq": 1} if kind == "rf" else {}
            model = lightgbm.LGBMClassifier(
                boosting_type=kind, n_estimators=10, num_leaves=10, min_child_samples=5, verbose=-1, random_state=1, **bagging
            ).fit(x[:half], y[:half])
            model.booster_.save_model(str(OUT / f"{name}_lightgbm_{kind}.txt"))
            if kind == "gbdt":
                (OUT / f"{name}_lightgbm_{kind}.json").write_text(
                    json.dumps(model.booster_.dump_model(), separators=(",", ":"))
                )
            save(f"{name}_lightgbm_{kind}", model.predict_proba(x))
        for kind in ("gbtree", "dart"):
            dropping = {"rate_drop": 0.3} if kind == "dart" else {}
            model = xgboost.XGBClassifier(booster=kind, n_estimators=10, max_depth=4, random_state=1, **dropping)
            model.fit(x[:half], y[:half])
            model.save_model(OUT / f"{name}_xgboost_{kind}.json")
            save(f"{name}_xgboost_{kind}", model.predict_proba(x))
        model = catboost.CatBoostClassifier(iterations=15, depth=4, verbose=False, allow_writing_files=False, random_seed=1)
        model.fit(x[:half], y[:half])
        model.save_model(str(OUT / f"{name}_catboost.json"), format="json")
        save(f"{name}_catboost", model.predict_proba(x))
        stopped_early(name, x, y, half)
    with_gaps(*data("cancer")[:2])


main()

"""Runs where MLServer is installed: trains a scikit-learn model on a pair's test part and prints its probabilities.

Arguments: the pair's folder, an empty folder, three free ports. It writes MLServer's configuration and the model into the
folder and prints the probabilities of every sample as JSON. Then `mlserver start FOLDER` serves the model.
"""

import json
import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.linear_model import LogisticRegression


def main():
    pair, folder = map(Path, sys.argv[1:3])
    ports = sys.argv[3:]
    with np.load(pair / "test.npz") as data:
        x, y = data["x"], data["y"]
    rows = x.reshape(len(x), -1)
    model = LogisticRegression(max_iter=2000).fit(rows, y)
    joblib.dump(model, folder / "model.joblib")
    about = {"name": "digits", "implementation": "mlserver_sklearn.SKLearnModel", "parameters": {"uri": "model.joblib"}}
    (folder / "model-settings.json").write_text(json.dumps(about))
    ports = dict(zip(("http_port", "grpc_port", "metrics_port"), map(int, ports)))
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "parallel_workers": 0, **ports}))
    print(json.dumps({"port": ports["http_port"], "scores": model.predict_proba(rows)[:, 1].tolist()}))


main()

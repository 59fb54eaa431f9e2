"""Trains the breast_cancer pair: an int8 logistic regression on five cheap features beside a network on all thirty.

Run from anywhere, with the extra `train`:  python models/breast_cancer/train.py
"""

from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from h2t2_tools.model.recipe import write_pair

# what a cheap look gives: mean texture, smoothness, symmetry, fractal dimension, and the error of texture
CHEAP = [1, 4, 8, 9, 11]


def network(inputs: int, hidden: list[int]) -> keras.Model:
    layers = [keras.layers.Dense(n, activation="relu") for n in hidden]
    return keras.Sequential([keras.Input((inputs,)), *layers, keras.layers.Dense(1, activation="sigmoid")])


def parts() -> list[np.ndarray]:
    """x, xt, y, yt: standardised and cut at 4 deviations; 60 % trains."""
    data = load_breast_cancer()
    y = (data.target == 0).astype(np.uint8)  # scikit-learn's 0 is malignant: the event
    x, xt, y, yt = train_test_split(data.data, y, test_size=0.4, random_state=7, stratify=y)
    mean, std = x.mean(0), x.std(0)
    x, xt = ((v - mean) / std for v in (x, xt))
    return [np.clip(x, -4, 4).astype(np.float32), np.clip(xt, -4, 4).astype(np.float32), y, yt]


def training_data() -> tuple[np.ndarray, np.ndarray]:
    """What the models are trained on; h2t2 retrain adds to it."""
    x, _, y, _ = parts()
    return x, y


def local_model(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> keras.Model:
    """The local model, trained on samples that count so much each."""
    keras.utils.set_random_seed(7)
    return fitted(network(len(CHEAP), []), x[:, CHEAP], y, weight)


def fitted(model: keras.Model, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> keras.Model:
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy")
    model.fit(x, y, epochs=60, batch_size=32, verbose=0, sample_weight=weight)
    return model


def main() -> None:
    keras.utils.set_random_seed(7)
    x, xt, y, yt = parts()
    models = {
        "ldl": fitted(network(len(CHEAP), []), x[:, CHEAP], y),
        "rdl": fitted(network(30, [32, 16]), x, y),
    }
    names = load_breast_cancer().feature_names
    write_pair(
        Path(__file__).parent,
        {
            "model_id": 1,
            "title": "malignant or benign, from cell measurements",
            "event": "malignant",
            "classes": ["benign", "malignant"],
            "data": "Breast Cancer Wisconsin (Diagnostic), scikit-learn's copy; standardised, cut at 4 deviations; 60 % trains",
            "made by": "python models/breast_cancer/train.py (extra train)",
            "licence": "CC BY 4.0 (UCI Machine Learning Repository)",
            "ldl": "logistic regression on 5 features (" + ", ".join(names[CHEAP]) + ")",
            "rdl": "30-32-16-1 network on all 30 features",
            "beta": 0.2,
        },
        models,
        {"ldl": CHEAP, "rdl": None},
        x,
        (xt, yt),
    )


if __name__ == "__main__":
    main()

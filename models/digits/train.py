"""Trains the digits pair: is it an 8? A tiny int8 CNN beside a larger one, on scikit-learn's 8x8 digits.

Run from anywhere, with the extra `train`:  python models/digits/train.py
"""

from pathlib import Path

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from h2t2_tools.model.recipe import write_pair

HARD = (1, 3, 5, 8, 9)  # the digits an 8 is taken for; the event must not be rare
EVENT = 8


def network(filters: list[int], stride: int) -> keras.Model:
    layers = keras.layers
    body = [layers.Conv2D(n, 3, strides=stride, padding="same", activation="relu") for n in filters]
    head = [layers.Flatten(), layers.Dense(2, activation="softmax")]
    return keras.Sequential([keras.Input((8, 8, 1)), *body, *head])


def parts() -> list[np.ndarray]:
    """x, xt, y, yt: 60 % trains."""
    data = load_digits()
    keep = np.isin(data.target, HARD)
    x = (data.images[keep] / 16).astype(np.float32)[..., None]
    y = (data.target[keep] == EVENT).astype(np.uint8)
    return train_test_split(x, y, test_size=0.4, random_state=7, stratify=y)


def training_data() -> tuple[np.ndarray, np.ndarray]:
    """What the models are trained on; h2t2 retrain adds to it."""
    x, _, y, _ = parts()
    return x, y


def local_model(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> keras.Model:
    """The local model, trained on samples that count so much each."""
    keras.utils.set_random_seed(7)
    return fitted(network([2], 2), x, y, 6, weight)


def fitted(model: keras.Model, x: np.ndarray, y: np.ndarray, epochs: int, weight: np.ndarray | None = None) -> keras.Model:
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss="sparse_categorical_crossentropy")
    model.fit(x, y, epochs=epochs, batch_size=32, verbose=0, sample_weight=weight)
    return model


def main() -> None:
    keras.utils.set_random_seed(7)
    x, xt, y, yt = parts()
    ldl, rdl = network([2], 2), network([16, 32], 1)
    models = {"ldl": fitted(ldl, x, y, 6), "rdl": fitted(rdl, x, y, 30)}
    write_pair(
        Path(__file__).parent,
        {
            "model_id": 2,
            "title": "is it an 8?",
            "event": "the digit 8, among 1, 3, 5, 8 and 9",
            "classes": ["another digit", "the digit 8"],
            "data": "scikit-learn's digits (8x8, UCI Optical Recognition of Handwritten Digits); 60 % trains",
            "made by": "python models/digits/train.py (extra train)",
            "licence": "CC BY 4.0 (UCI Machine Learning Repository)",
            "ldl": "CNN, one convolution of 2 filters, stride 2, softmax of 2",
            "rdl": "CNN, convolutions of 16 and 32 filters, softmax of 2",
            "beta": 0.2,
        },
        models,
        {"ldl": None, "rdl": None},
        x,
        (xt, yt),
    )


if __name__ == "__main__":
    main()

"""Trains the LogisticDogs LDL: a logistic regression on the standardised pixels of CIFAR-10's cats and dogs.

Run from anywhere, with the extra `train`:  python models/logistic_dogs/train.py [--data FOLDER]
"""

from pathlib import Path

import keras
import numpy as np

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=12)
    keras.utils.set_random_seed(7)
    data = datasets.load("cats_dogs", args.data)
    x, xt = (v.reshape(len(v), -1).astype(np.float32) / 255 for v in (data.x_train, data.x_test))
    mean, deviation = x.mean(0), x.std(0) + 1e-6
    x, xt = (np.clip((v - mean) / deviation, -4, 4) for v in (x, xt))
    model = keras.Sequential([keras.Input((x.shape[1],)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=keras.optimizers.Adam(0.0005), loss="binary_crossentropy")
    model.fit(x, data.y_train, epochs=args.epochs, batch_size=64, verbose=0)
    about = {
        "title": "LogisticDogs",
        "event": "a dog",
        "data": "CIFAR-10 (Krizhevsky), cats and dogs: 10,000 images train, 2,000 test",
        "licence": "none stated for the images: scores and labels are here, the model is not",
        "ldl": "logistic regression on 3,072 standardised pixels",
        "paper": {"accuracy": 0.56, "fp": 0.22, "fn": 0.22},
    }
    write_ldl(args.out, about, model, x[:300], (xt, data.y_test), event=0, ship=False)


if __name__ == "__main__":
    main()

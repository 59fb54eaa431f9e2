"""Trains the chest X-ray LDLs: a small CNN (three convolutions, as the paper's), and one stopped early.

Run from anywhere, with the extra `train`:  python models/chest_xray/train.py [--data FOLDER] [--epochs N]
"""

from pathlib import Path

import keras
import numpy as np

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl


def network(size: int) -> keras.Model:
    layers = keras.layers
    body = []
    for filters in (8, 16, 32):
        body += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    return keras.Sequential(
        [keras.Input((size, size, 1)), *body, layers.GlobalAveragePooling2D(), layers.Dense(2, activation="softmax")]
    )


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=20)
    data = datasets.load("chest_xray", args.data)
    x, xt = (v[..., None].astype(np.float32) / 255 for v in (data.x_train, data.x_test))
    for out, epochs, training in (
        (args.out, args.epochs, ""),
        (args.out.parent / f"{args.out.name}_weak", 2, ", stopped after 2 epochs"),
    ):
        keras.utils.set_random_seed(7)
        model = network(x.shape[1])
        model.compile(optimizer=keras.optimizers.Adam(0.002), loss="sparse_categorical_crossentropy")
        model.fit(x, data.y_train, epochs=epochs, batch_size=32, verbose=0)
        about = {
            "title": "ChestXRay",
            "event": "pneumonia",
            "data": "Chest X-ray images (Kermany et al.) as MedMNIST's PneumoniaMNIST, 28 x 28; its test part",
            "licence": "CC BY 4.0",
            "ldl": f"three convolutions (8, 16, 32), pooling, softmax of 2{training}",
            "paper": {"accuracy": 0.78, "fp": 0.18, "fn": 0.04},
        }
        write_ldl(out, about, model, x[:300], (xt, data.y_test), event=1, ship=True)


if __name__ == "__main__":
    main()

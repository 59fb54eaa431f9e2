"""Trains the BreakHis LDL: a small MobileNet on breast-tumour images. The set is too large to carry: name its folder.

Run from anywhere, with the extra `train`:  python models/breakhis/train.py --data BreaKHis_v1 [--epochs N]
"""

from pathlib import Path

import keras
import numpy as np

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=15)
    keras.utils.set_random_seed(7)
    data = datasets.load("breakhis", args.data)
    x, xt = (v.astype(np.float32) / 255 for v in (data.x_train, data.x_test))
    body = keras.applications.MobileNet(x.shape[1:], alpha=0.25, include_top=False, weights=None, pooling="avg")
    for layer in body.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9
    model = keras.Sequential([body, keras.layers.Dropout(0.2), keras.layers.Dense(2, activation="softmax")])
    falling = keras.optimizers.schedules.CosineDecay(0.002, args.epochs * -(-len(x) // 32))
    model.compile(optimizer=keras.optimizers.Adam(falling), loss="sparse_categorical_crossentropy")
    model.fit(x, data.y_train, epochs=args.epochs, batch_size=32, verbose=0)
    about = {
        "title": "BreakHis",
        "event": "malignant",
        "data": "BreaKHis (Spanhol et al.), 64 x 64",
        "licence": "the set's own: for research; nothing of it is here",
        "ldl": "MobileNet, alpha 0.25, from scratch",
        "paper": {"accuracy": 0.72, "fp": 0.10, "fn": 0.18},
    }
    write_ldl(args.out, about, model, x[:300], (xt, data.y_test), event=1, ship=False)


if __name__ == "__main__":
    main()

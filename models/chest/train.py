"""Trains the Chest LDL, a small MobileNet on chest CT scans, and makes X-RaCT: the same model scoring every chest X-ray.

Run from anywhere, with the extra `train`:  python models/chest/train.py [--data FOLDER] [--epochs N]
"""

from pathlib import Path

import keras
import numpy as np
from PIL import Image

from h2t2_tools import datasets, traces
from h2t2_tools.errors import UserError
from h2t2_tools.training import arguments, scored, write_ldl


def network(size: int) -> keras.Model:
    body = keras.applications.MobileNet((size, size, 1), alpha=0.25, include_top=False, weights=None, pooling="avg")
    for layer in body.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9  # few batches an epoch: the averages must keep up
    return keras.Sequential([body, keras.layers.Dropout(0.2), keras.layers.Dense(2, activation="softmax")])


def standardised(images: np.ndarray) -> np.ndarray:
    """(n, h, w) uint8 to (n, h, w, 1) float32, each image with mean 0 and deviation 1: brightness and contrast carry nothing."""
    x = images[..., None].astype(np.float32)
    return (x - x.mean((1, 2, 3), keepdims=True)) / (x.std((1, 2, 3), keepdims=True) + 0.25)


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=16)
    data = datasets.load("chest_ct", args.data)
    x, xt = standardised(data.x_train), standardised(data.x_test)
    share = float(data.y_train.mean())
    weights = {0: 0.5 / (1 - share), 1: 0.5 / share}
    for out, epochs, rate, how in (
        (args.out, args.epochs, 0.001, ""),
        (args.out.parent / f"{args.out.name}_weak", 6, 0.0001, ", stopped after 6 slow epochs"),
    ):
        keras.utils.set_random_seed(7)
        model = network(x.shape[1])
        falling = keras.optimizers.schedules.CosineDecay(rate, epochs * -(-len(x) // 32))
        model.compile(optimizer=keras.optimizers.Adam(falling), loss="sparse_categorical_crossentropy")
        model.fit(x, data.y_train, epochs=epochs, batch_size=32, verbose=0, class_weight=weights)
        about = {
            "title": "Chest",
            "event": "cancer",
            "data": "chest CT scans (the public set of a thousand files, 847 of them unique), 64 x 64; a third is the test part",
            "licence": "none stated for the images: scores and labels are here, the model is not",
            "ldl": f"MobileNet, alpha 0.25, from scratch, classes weighted alike{how}",
            "paper": {"accuracy": 0.64, "fp": 0.16, "fn": 0.20},
        }
        path = write_ldl(out, about, model, x[:300], (xt, data.y_test), event=1, ship=False)
    try:
        rays = datasets.load("chest_xray")
    except UserError as error:
        print(f"X-RaCT left as it is: {error}")
        return
    # the paper's own chest model is nearer to the weaker one, which is the one that classifies the X-rays
    size = x.shape[1]
    images = np.concatenate([rays.x_train, rays.x_test])
    images = np.stack([np.asarray(Image.fromarray(v).resize((size, size), Image.Resampling.BILINEAR)) for v in images])
    scores = scored(path, standardised(images), 1)
    labels = np.concatenate([rays.y_train, rays.y_test]).astype(np.int64)
    out = args.out.parent / "x_ract"
    out.mkdir(exist_ok=True)
    traces.save(out / "trace.npz", traces.Trace("X-RaCT", scores, labels))


if __name__ == "__main__":
    main()

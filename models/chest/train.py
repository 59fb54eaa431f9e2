"""Trains the Chest LDLs, small MobileNets on chest CT scans, and makes X-RaCT and BreaCh: the weaker one scoring every chest
X-ray, and every BreaKHis image where they are at hand (set H2T2_DATA).

Run from anywhere, with the extra `train`:  python models/chest/train.py [--data FOLDER] [--epochs N]
"""

from pathlib import Path

import keras
import numpy as np
from PIL import Image

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, scored, write_ldl
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.event import titled_names
from h2t2_tools.replay import traces


def network(size: int) -> keras.Model:
    body = keras.applications.MobileNet((size, size, 1), alpha=0.25, include_top=False, weights=None, pooling="avg")
    for layer in body.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9  # few batches an epoch: the averages must keep up
    return keras.Sequential([body, keras.layers.Dropout(0.2), keras.layers.Dense(2, activation="softmax")])


def standardised(images: np.ndarray) -> np.ndarray:
    """(n, h, w) uint8 to (n, h, w, 1) float32, each image with mean 0 and deviation 1: brightness says nothing."""
    x = images[..., None].astype(np.float32)
    return (x - x.mean((1, 2, 3), keepdims=True)) / (x.std((1, 2, 3), keepdims=True) + 0.25)


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=16)
    data = datasets.load("chest_ct", args.data)
    x, xt = standardised(data.x_train), standardised(data.x_test)
    share = float(data.y_train.mean())
    weights = {0: 0.5 / (1 - share), 1: 0.5 / share}
    for out, epochs, rate, training in (
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
            "data": "chest CT scans (the public set of a thousand files, 847 unique), 64 x 64; a third is the test part",
            "licence": "none stated for the images: scores and labels are here, the model is not",
            "ldl": f"MobileNet, alpha 0.25, from scratch, classes weighted alike{training}",
            "paper": {"accuracy": 0.64, "fp": 0.16, "fn": 0.20},
        }
        path = write_ldl(out, about, model, x[:300], (xt, data.y_test), event=1, ship=False)
    # the paper's own chest model is nearer to the weaker one, which is the one that classifies what it never saw
    for name, title, dataset, event in (
        ("x_ract", "X-RaCT", "chest_xray", "pneumonia"),
        ("breach", "BreaCh", "breakhis", "malignant"),
    ):
        try:
            strange = datasets.load(dataset)
        except UserError as error:
            print(f"{title} left as it is: {error}")
            continue
        images = np.concatenate([strange.x_train, strange.x_test])
        images = np.stack([resized(image, x.shape[1]) for image in images])
        scores = scored(path, standardised(images), 1)
        labels = np.concatenate([strange.y_train, strange.y_test]).astype(np.int64)
        folder = args.out.parent / name
        folder.mkdir(exist_ok=True)
        traces.save(folder / "trace.npz", traces.Trace(title, scores, labels, names=titled_names(event)))


def resized(image: np.ndarray, size: int) -> np.ndarray:
    """Grey, size x size."""
    return np.asarray(Image.fromarray(image).convert("L").resize((size, size), Image.Resampling.BILINEAR))


if __name__ == "__main__":
    main()

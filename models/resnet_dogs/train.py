"""Trains the ResnetDogs LDL: ResNet-8 on CIFAR-10's cats and dogs.

Run from anywhere, with the extra `train`:  python models/resnet_dogs/train.py [--data FOLDER] [--epochs N]
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl


def block(x: Any, filters: int, stride: int) -> Any:
    layers = keras.layers
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    if stride > 1:
        x = layers.Conv2D(filters, 1, strides=stride)(x)
    return layers.ReLU()(layers.Add()([x, y]))


def network(size: int) -> keras.Model:
    layers = keras.layers
    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        x = block(x, filters, stride)
    return keras.Model(inputs, layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=6)
    data = datasets.load("cats_dogs", args.data)
    x, xt = (v.astype(np.float32) / 255 for v in (data.x_train, data.x_test))
    for out, epochs in ((args.out, args.epochs), (args.out.parent / f"{args.out.name}_weak", 3)):
        keras.utils.set_random_seed(7)
        model = network(x.shape[1])
        falling = keras.optimizers.schedules.CosineDecay(0.002, epochs * -(-len(x) // 64))
        model.compile(optimizer=keras.optimizers.Adam(falling), loss="sparse_categorical_crossentropy")
        model.fit(x, data.y_train, epochs=epochs, batch_size=64, verbose=0)
        about = {
            "title": "ResnetDogs",
            "event": "a dog",
            "data": "CIFAR-10 (Krizhevsky), cats and dogs: 10,000 images train, 2,000 test",
            "licence": "none stated for the images: scores and labels are here, the model is not",
            "ldl": f"ResNet-8 (16, 32, 64 filters), {epochs} epochs",
            "paper": {"accuracy": 0.73, "fp": 0.15, "fn": 0.11},
        }
        write_ldl(out, about, model, x[:300], (xt, data.y_test), event=1, ship=False)


if __name__ == "__main__":
    main()

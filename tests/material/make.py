"""Makes the small int8 models of this folder (extra `train`): every operator the integer interpreter has, in random shapes.

python tests/material/make.py
"""

from pathlib import Path

import keras
import numpy as np

from h2t2_tools.model.convert.from_keras import to_int8

L = keras.layers


def build(seed: int, shape: tuple[int, ...], body) -> None:
    keras.utils.set_random_seed(seed)
    inputs = keras.Input(shape)
    outputs = body(inputs)
    model = keras.Model(inputs, outputs)
    for variable in model.trainable_variables:  # larger than an initialiser's, so that activations fill their range
        variable.assign(np.random.default_rng(seed).normal(0, 0.4, variable.shape))
    calibration = np.random.default_rng(seed).normal(0, 1, (64, *shape)).astype(np.float32)
    (Path(__file__).parent / f"{body.__name__}.tflite").write_bytes(to_int8(model, calibration))


def dense_relu(x):
    x = L.Dense(9, activation="relu")(x)
    return L.Dense(5, activation="softmax")(L.Dense(7, activation="relu6")(x))


def dense_linear(x):
    return L.Dense(3)(L.Dense(6)(x))


def convolutions(x):
    x = L.Conv2D(5, (3, 2), strides=(2, 1), padding="same", activation="relu")(x)
    x = L.Conv2D(4, 3, padding="valid", activation="relu6")(x)
    return L.Conv2D(3, 1)(x)


def dilated(x):
    return L.Conv2D(3, 3, dilation_rate=(2, 2), padding="same")(x)


def depthwise(x):
    x = L.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2, activation="relu6")(x)
    x = L.DepthwiseConv2D((2, 3), padding="valid")(x)
    return L.Dense(2, activation="softmax")(L.GlobalAveragePooling2D()(x))


def pools(x):
    a = L.MaxPooling2D(3, strides=2, padding="same")(x)
    b = L.AveragePooling2D(3, strides=2, padding="same")(x)
    return L.AveragePooling2D((2, 3), strides=1, padding="valid")(L.Add()([a, b]))


def sums(x):
    a = L.Conv2D(4, 1, activation="relu")(x)
    b = L.Conv2D(4, 3, padding="same")(x)
    c = L.ReLU()(L.Add()([a, b]))
    return L.Multiply()([c, b])


def joined(x):
    a = L.Conv2D(3, 1, activation="relu")(x)
    b = L.Conv2D(2, 1)(x)
    x = L.Concatenate()([a, b])
    return L.Dense(1, activation="sigmoid")(L.Flatten()(x))


def padded(x):
    x = L.ZeroPadding2D(((1, 2), (0, 3)))(x)
    x = L.Conv2D(4, 3, strides=2, padding="valid", activation="relu6")(x)
    return L.Activation("sigmoid")(x)


def reshaped(x):
    x = L.Reshape((6, 5, 2))(L.Dense(60, activation="relu")(x))  # its batch is unknown: the file computes the shape
    return L.Conv2D(3, 2, padding="valid")(x)


def float_cnn():
    """A float model, for `h2t2 convert`: two convolutions, a pool and a softmax on 8x8 pictures."""
    import tensorflow as tf

    keras.utils.set_random_seed(11)
    x = inputs = keras.Input((8, 8, 1))
    x = L.MaxPooling2D()(L.Conv2D(4, 3, padding="same", activation="relu")(x))
    x = L.DepthwiseConv2D(3, padding="same", activation="relu6")(x)
    model = keras.Model(inputs, L.Dense(2, activation="softmax")(L.GlobalAveragePooling2D()(x)))
    (Path(__file__).parent / "float/cnn.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())


if __name__ == "__main__":
    float_cnn()
    build(1, (11,), dense_relu)
    build(2, (6,), dense_linear)
    build(3, (9, 8, 3), convolutions)
    build(4, (8, 9, 2), dilated)
    build(5, (9, 11, 3), depthwise)
    build(6, (9, 10, 3), pools)
    build(7, (5, 6, 3), sums)
    build(8, (4, 5, 3), joined)
    build(9, (7, 6, 2), padded)
    build(10, (8,), reshaped)

"""Makes the networks of this folder's `networks` (extra `train`): forms people really put on microcontrollers, small, with
random weights, each converted by what converts a user's.

python tests/material/make_networks.py
"""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from h2t2_tools.model.convert.from_keras import to_int8

L = keras.layers
FOLDER = Path(__file__).parent / "networks"


def network(shape, body):
    """A Keras model of the body, random everywhere: batch norms have means, spreads and signs to fold."""
    keras.utils.set_random_seed(7)
    inputs = keras.Input(shape)
    model = keras.Model(inputs, body(inputs))
    rng = np.random.default_rng(7)
    for variable in model.variables:
        name, size = variable.name, variable.shape
        if "variance" in name or "gamma" in name:
            variable.assign(rng.uniform(0.4, 1.6, size) * rng.choice([1, 1, -1] if "gamma" in name else [1], size))
        elif "mean" in name or "beta" in name or "bias" in name:
            variable.assign(rng.normal(0, 0.2, size))
        elif "kernel" in name:
            fan = max(1, int(np.prod(size[:-1]))) if "depthwise" not in name else int(np.prod(size[:2]))
            variable.assign(rng.normal(0, 1.4 / np.sqrt(fan), size))
    return model


def samples(shape, n=48):
    return np.random.default_rng(3).normal(0, 1, (n, *shape)).astype(np.float32)


def conv(x, channels, kernel=3, stride=1, activation="relu6"):
    x = L.Conv2D(channels, kernel, strides=stride, padding="same", use_bias=False)(x)
    x = L.BatchNormalization()(x)
    return L.ReLU(6.0)(x) if activation == "relu6" else L.ReLU()(x) if activation else x


def inverted(x, channels, stride=1):
    """A block of MobileNet v2: widened, depthwise, narrowed, added."""
    y = conv(x, 4 * x.shape[-1], 1)
    y = L.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(y)
    y = L.ReLU(6.0)(L.BatchNormalization()(y))
    y = conv(y, channels, 1, activation=None)
    return L.Add()([x, y]) if stride == 1 and x.shape[-1] == channels else y


def mobilenet_v2(x):
    """Batch norms behind convolutions, which are folded, and one behind a sum, which stays a MUL and an ADD."""
    x = inverted(inverted(conv(x, 8, 3, 2), 8), 12, 2)
    x = L.BatchNormalization()(inverted(x, 12))
    return L.Dense(2, activation="softmax")(L.GlobalAveragePooling2D()(x))


def ds_cnn(x):
    x = conv(x, 16, (10, 4), 2, "relu")
    for _ in range(2):
        x = L.ReLU()(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(x)))
        x = conv(x, 16, 1, activation="relu")
    return L.Dense(4, activation="softmax")(L.Flatten()(L.AveragePooling2D(x.shape[1:3])(x)))


def resnet_8(x):
    x = conv(x, 8, activation="relu")
    for channels, stride in ((8, 1), (12, 2), (16, 2)):
        y = conv(conv(x, channels, 3, stride, "relu"), channels, activation=None)
        short = x if stride == 1 else L.Conv2D(channels, 1, strides=stride, padding="same")(x)
        x = L.ReLU()(L.Add()([short, y]))
    return L.Dense(4, activation="softmax")(L.GlobalAveragePooling2D()(x))


def fomo(x):
    """A class for each cell of a grid, as FOMO finds objects."""
    x = inverted(conv(x, 8, 3, 2), 12, 2)
    x = L.Conv2D(16, 1, activation="relu")(inverted(x, 12))
    return L.Softmax()(L.Conv2D(3, 1)(x))


def autoencoder(x):
    for width in (32, 32, 8, 32, 32):
        x = L.ReLU()(L.BatchNormalization()(L.Dense(width)(x)))
    return L.Dense(64)(x)


def leaky(x):
    x = L.LeakyReLU(alpha=0.2)(L.Conv2D(6, 3, strides=2)(x))
    x = L.LeakyReLU(alpha=0.05)(L.Conv2D(8, 3)(x))
    return L.Dense(2, activation="softmax")(L.Flatten()(x))


def lstm(x):
    return L.Dense(3, activation="softmax")(L.LSTM(10)(x))


def dilated_in_time(x):
    for rate in (1, 2, 4):
        x = L.Conv1D(6, 3, dilation_rate=rate, padding="causal", activation="relu")(x)
    return L.Dense(1, activation="sigmoid")(L.GlobalAveragePooling1D()(x))


class WakeWord(tf.Module):
    """Two convolutions along time, of three steps a call; what a convolution still needs of the steps before is a variable."""

    def __init__(self):
        rng = np.random.default_rng(5)
        self.first = tf.constant(rng.normal(0, 0.3, (5, 1, 10, 12)).astype(np.float32))
        self.deep = tf.constant(rng.normal(0, 0.5, (7, 1, 12, 1)).astype(np.float32))
        self.point = tf.constant(rng.normal(0, 0.4, (1, 1, 12, 12)).astype(np.float32))
        self.head = tf.constant(rng.normal(0, 0.5, (12, 1)).astype(np.float32))
        self.before = tf.Variable(tf.zeros((1, 4, 1, 10)), name="before")
        self.deeper = tf.Variable(tf.zeros((1, 6, 1, 12)), name="deeper")

    @tf.function(input_signature=[tf.TensorSpec((1, 3, 1, 10), tf.float32)])
    def __call__(self, x):
        x = tf.concat([self.before, x], 1)
        self.before.assign(x[:, -4:])
        x = tf.nn.relu(tf.nn.conv2d(x, self.first, 1, "VALID"))
        x = tf.concat([self.deeper, x], 1)
        self.deeper.assign(x[:, -6:])
        x = tf.nn.relu(tf.nn.depthwise_conv2d(x, self.deep, (1, 1, 1, 1), "VALID"))
        x = tf.nn.relu(tf.nn.conv2d(x, self.point, 1, "VALID"))
        return tf.sigmoid(tf.matmul(tf.reduce_mean(x, (1, 2)), self.head))


def converted(converter, shape, ends=tf.int8):
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x[None]] for x in samples(shape))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = ends
    return converter.convert()


def wake_word():
    """As ESPHome's microWakeWord is made."""
    module = WakeWord()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    converter._experimental_variable_quantization = True
    return converted(converter, (3, 1, 10))


KERAS = {
    mobilenet_v2: (24, 24, 3), ds_cnn: (25, 10, 1), resnet_8: (16, 16, 3), fomo: (32, 32, 3), autoencoder: (64,),
    leaky: (14, 14, 1), lstm: (12, 6), dilated_in_time: (20, 4),
}  # fmt: skip


def main():
    FOLDER.mkdir(exist_ok=True)
    for body, shape in KERAS.items():
        (FOLDER / f"{body.__name__}.tflite").write_bytes(to_int8(network(shape, body), samples(shape)))
    unsigned = tf.lite.TFLiteConverter.from_keras_model(network((14, 14, 1), leaky))
    (FOLDER / "unsigned_ends.tflite").write_bytes(converted(unsigned, (14, 14, 1), tf.uint8))
    (FOLDER / "wake_word.tflite").write_bytes(wake_word())


if __name__ == "__main__":
    main()

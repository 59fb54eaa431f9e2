"""Keras 3's LSTM layers for TensorFlow's converter, which makes one operator of each layer that it recognises."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...common.errors import UserError

# what the converter looks for: tensorflow/compiler/mlir/lite/utils/lstm_utils.cc, ConvertKerasLSTMLayer. Keras 2 gave its LSTM
# these attributes; Keras 3 gives it none, so that it becomes a loop, whose calibration ends the process
ATTRIBUTES = {"api_preferred_device": "CPU", "time_major": False, "go_backwards": False}


@contextmanager
def one_operator_each(tf: Any, model: Any) -> Iterator[None]:
    """While it lasts, calls of the model's LSTM layers are functions that the converter knows.

    Raises UserError for a recurrent layer that would stay a loop.
    """
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, tf.keras.layers.RNN) and not layer.unroll]
    for layer in layers:
        if not _plain(tf, layer):
            raise UserError(
                f"layer {layer.name} ({type(layer).__name__}) becomes a loop, which int8 models have not: "
                "an LSTM with Keras' own activations and no state to give back or keep, or unroll=True"
            )
    for layer in layers:
        layer.call = _recognised_call(tf, layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.call


def save(tf: Any, model: Any, spec: Any, folder: str) -> None:
    """Write the model as a SavedModel, whose functions keep their attributes. spec: of its input."""
    module = tf.Module()
    module.variables_ = [variable.value for variable in model.variables]
    module.function = tf.function(lambda x: model(x, training=False))
    tf.saved_model.save(module, folder, signatures={"serving_default": module.function.get_concrete_function(spec)})


def _plain(tf: Any, layer: Any) -> bool:
    keras = tf.keras
    if not isinstance(layer, keras.layers.LSTM) or layer.stateful or layer.go_backwards or layer.return_state:
        return False
    return layer.activation is keras.activations.tanh and layer.recurrent_activation is keras.activations.sigmoid


def _recognised_call(tf: Any, layer: Any) -> Callable[..., Any]:
    """The layer's call, its arithmetic in a function of the name and the arguments that the converter looks for."""

    def steps(inputs: Any, h: Any, c: Any, kernel: Any, recurrent: Any, bias: Any) -> tuple[Any, ...]:
        outputs = []
        for t in range(inputs.shape[1]):
            sums = tf.matmul(inputs[:, t], kernel) + tf.matmul(h, recurrent) + bias
            i, f, g, o = tf.split(sums, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            outputs.append(h)
        return h, tf.stack(outputs, 1), h, c, tf.constant(0.0)

    name = f"lstm_{uuid.uuid4()}"  # one name for two layers would make them one
    run = tf.function(steps, autograph=False, experimental_attributes={"api_implements": name, **ATTRIBUTES})
    cell = layer.cell

    def call(sequences: Any, *_: Any, **__: Any) -> Any:
        first = tf.zeros([sequences.shape[0], layer.units])
        bias = tf.convert_to_tensor(cell.bias) if layer.use_bias else tf.zeros([4 * layer.units])
        weights = tf.convert_to_tensor(cell.kernel), tf.convert_to_tensor(cell.recurrent_kernel), bias
        last, every, *_ = run(sequences, first, first, *weights)
        return every if layer.return_sequences else last

    return call

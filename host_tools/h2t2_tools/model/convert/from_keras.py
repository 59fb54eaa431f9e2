"""Keras files and SavedModel folders, run and quantised by TensorFlow (extra `train`)."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import UserError
from ...common.extras import install_command
from ...common.places import temporary_folder
from ..quality import OUTLIER, distances
from . import keras_lstm
from .logits import reach_both_signs
from .quiet import quiet
from .trained_model import NoInt8Form, Source


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with quiet():
            import tensorflow
    except ImportError:
        raise UserError(
            f"Keras and SavedModel sources need TensorFlow: {install_command('train')} "
            "(or export a float .tflite, which needs only the extra `convert`)"
        ) from None
    return tensorflow


def keras_file(path: Path) -> Source:
    """A .keras or .h5 file."""
    tf = _tensorflow()
    with quiet():
        try:
            model = tf.keras.models.load_model(path, compile=False)
        except (ValueError, OSError, TypeError, KeyError) as error:
            raise UserError(f"{path}: Keras cannot load it: {str(error).splitlines()[0]}") from None
    shape = _shape(path, model.inputs, model.outputs)

    def scores(x: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(x, verbose=0, batch_size=64), float).reshape(len(x), -1)

    unscaled, factor, offset = _without_scaling(tf, model, shape)
    size = path.stat().st_size
    return Source(
        "Keras model", path, shape, size, scores, lambda x: to_int8(unscaled, x), factor=factor, offset=offset,
        rescaled=_rescaled(tf, unscaled),
    )  # fmt: skip


def _without_scaling(tf: Any, model: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """(the model behind its first Rescaling and Normalization layers, their factor, their offset), arrays of `shape`.

    They stay outside: one int8 scale cannot serve unlike numbers, and a board need not multiply what quantising multiplies.
    """
    factor, offset, count = np.ones(shape), np.zeros(shape), 0
    chain = isinstance(model, tf.keras.Sequential)  # Keras 3 calls its layers anew with each that is added: nodes tell nothing
    layers = _layers(tf, model)
    for layer in layers[:-1]:
        scaling = _scaling(tf, layer, shape)
        alone = chain or (len(layer._outbound_nodes) == 1 and (not count or layer.input is layers[count - 1].output))
        if scaling is None or not alone:
            break
        factor, offset, count = factor * scaling[0], offset * scaling[0] + scaling[1], count + 1
    if not count:
        return model, 1.0, 0.0
    if chain:
        return tf.keras.Sequential([tf.keras.Input(shape), *layers[count:]]), factor, offset
    return tf.keras.Model(layers[count - 1].output, model.outputs), factor, offset


def _layers(tf: Any, model: Any) -> list[Any]:
    return [layer for layer in model.layers if not isinstance(layer, tf.keras.layers.InputLayer)]


def _rescaled(tf: Any, model: Any) -> Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], bytes]] | None:
    """`rescaled` of a source; None for a model whose numbers no dense layer alone reads."""
    dense, *others = _layers(tf, model)
    chain, start = isinstance(model, tf.keras.Sequential), model.inputs[0]
    reads = [tensor for layer in model.layers for node in layer._inbound_nodes for tensor in node.input_tensors]
    alone = chain or (sum(tensor is start for tensor in reads) == 1 and len(dense._inbound_nodes) == 1)
    if not isinstance(dense, tf.keras.layers.Dense) or len(start.shape) != 2 or not alone:
        return None

    def rescaled(factor: np.ndarray, centre: np.ndarray) -> Callable[[np.ndarray], bytes]:
        layer = tf.keras.layers.Dense.from_config({**dense.get_config(), "use_bias": True})
        layer.build(start.shape)
        weights, bias = (*dense.get_weights(), 0.0)[:2]
        layer.set_weights([weights / factor[:, None], bias + centre @ weights])
        if chain or not others:
            return partial(to_int8, tf.keras.Sequential([tf.keras.Input(start.shape[1:]), layer, *others]))
        x = tf.keras.Input(start.shape[1:])
        return partial(to_int8, tf.keras.Model(x, tf.keras.Model(dense.output, model.outputs)(layer(x))))

    return rescaled


def _scaling(tf: Any, layer: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """(factor, offset) of a layer that gives x * factor + offset; None for another."""
    if isinstance(layer, tf.keras.layers.Rescaling):
        return np.broadcast_to(layer.scale, shape), np.broadcast_to(layer.offset, shape)
    if isinstance(layer, tf.keras.layers.Normalization) and not getattr(layer, "invert", False):
        deviation = np.maximum(np.sqrt(np.asarray(layer.variance)), tf.keras.backend.epsilon())
        mean = np.asarray(layer.mean) / deviation
        return np.broadcast_to(1 / deviation, (1, *shape))[0], np.broadcast_to(-mean, (1, *shape))[0]
    return None


def saved_model(path: Path) -> Source:
    """A SavedModel folder: its serving_default signature."""
    tf = _tensorflow()
    with quiet():
        try:
            loaded = tf.saved_model.load(str(path))
            signature = loaded.signatures["serving_default"]
        except (ValueError, OSError, KeyError) as error:
            raise UserError(f"{path}: no SavedModel with a serving_default signature: {str(error).splitlines()[0]}") from None
    inputs = list(signature.structured_input_signature[1].items())
    shape = _shape(path, [spec for _, spec in inputs], list(signature.structured_outputs.values()))

    def scores(x: np.ndarray) -> np.ndarray:
        parts = np.array_split(x.astype(np.float32), -(-len(x) // 64))
        batches = [signature(**{inputs[0][0]: tf.constant(part)}) for part in parts]
        outputs = [np.asarray(next(iter(batch.values())), float) for batch in batches]
        return np.concatenate([output.reshape(len(output), -1) for output in outputs])

    def quantise(x: np.ndarray) -> bytes:
        return _converted(tf, tf.lite.TFLiteConverter.from_saved_model(str(path)), x)

    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Source("SavedModel", path, shape, size, scores, quantise)


def _shape(path: Path, inputs: list[Any], outputs: list[Any]) -> tuple[int, ...]:
    if len(inputs) != 1 or len(outputs) != 1:
        raise UserError(f"{path}: {len(inputs)} inputs and {len(outputs)} outputs, want one of each")
    shape = tuple(inputs[0].shape)[1:]
    if not shape or any(size is None for size in shape):
        raise UserError(f"{path}: its input has the shape {tuple(inputs[0].shape)}: a board needs fixed sizes")
    return tuple(int(size) for size in shape)


def to_int8(model: Any, calibration: np.ndarray) -> bytes:
    """Full-integer int8 .tflite (int8 in and out) of a Keras model; calibration: (n, ...) float32 inputs."""
    tf = _tensorflow()
    # one sample at a time, as a device has it
    spec = tf.TensorSpec([1, *model.inputs[0].shape[1:]], tf.float32)
    if any(isinstance(layer, tf.keras.layers.RNN) for layer in model._flatten_layers()):
        with quiet(), keras_lstm.one_operator_each(tf, model), temporary_folder("keras") as folder:
            keras_lstm.save(tf, model, spec, folder)
            return _converted(tf, tf.lite.TFLiteConverter.from_saved_model(folder), calibration)
    with quiet():  # traced, as from_keras_model() would save the model first, which takes ten times as long
        traced = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([traced])
    return _converted(tf, converter, calibration)


def _converted(tf: Any, converter: Any, calibration: np.ndarray) -> bytes:
    """The int8 .tflite. Samples far outside the others set no range: one of them would take the steps of all the others."""
    calibration = calibration[distances(calibration) <= OUTLIER]
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([row[None].astype(np.float32)] for row in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    with quiet():
        try:
            return reach_both_signs(bytes(converter.convert()))
        except (ValueError, RuntimeError, tf.errors.OpError) as error:
            raise NoInt8Form(f"TensorFlow's converter refuses the model: {str(error).splitlines()[0]}") from None

"""A float .tflite: run by the TFLite interpreter, quantised by ai-edge-quantizer. No TensorFlow."""

from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.tflite_trial import open_interpreter, try_first

from ...common.errors import UserError
from ..tflite import load
from ..tflite_edit import normalise, widen, with_integer_prelus
from .biases import bound_biases
from .quiet import quiet
from .source import Source


def tflite_file(path: Path) -> Source:
    """Open a float .tflite. UserError for a file that is damaged, is int8 already, or has not one input and one output."""
    graph = load(path)
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise UserError(
            f"{path}: {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, want one of each: h2t2 pick makes it so"
        )
    end = graph.tensors[graph.inputs[0]]
    if end.dtype == "int8":
        raise UserError(f"{path}: is int8 already; `h2t2 inspect` tells what it takes, `h2t2 bundle` prepares it for a board")
    if end.dtype != "float32":
        raise UserError(f"{path}: its input is {end.dtype}, want a float32 model")
    if any(size < 1 for size in end.shape):
        raise UserError(f"{path}: its input has the shape {end.shape}: fix every size before exporting")
    return from_bytes("float .tflite", path, path.read_bytes(), graph.file_bytes)


def from_bytes(kind: str, path: Path, content: bytes, file_bytes: int) -> Source:
    """Open a float .tflite in memory; path: the file that it comes from, of that size."""
    content = widen(content)
    with quiet():
        try:
            try_first(content, "AUTO")
            interpreter = open_interpreter(content, "AUTO")
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{path}: {str(error).splitlines()[0]}") from None
    shape = tuple(int(n) for n in interpreter.get_input_details()[0]["shape"][1:])

    def scores(x: np.ndarray) -> np.ndarray:
        return np.stack([_run(interpreter, row) for row in x])

    return Source(kind, path, shape, file_bytes, scores, lambda calibration: quantise(content, calibration, path))


def _run(interpreter: Any, x: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x[None].astype(np.float32))
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), float).ravel()


def quantise(content: bytes, calibration: np.ndarray, path: Path) -> bytes:
    """Quantise a float .tflite to full int8.

    Ranges span the extremes of all samples. The quantizer's default, a moving average of each sample's extremes, collapses for
    a tensor of one number such as a binary classifier's logit.
    """
    try:
        with quiet():
            from ai_edge_quantizer import calibrator, quantizer, recipe, recipe_manager
            from ai_edge_quantizer.utils import qsv_utils, tfl_interpreter_utils
    except ImportError:
        raise UserError("quantising without TensorFlow needs the extra `convert`: pip install 'h2t2-edge[convert]'") from None
    content = normalise(content)
    with quiet():
        try:
            interpreter = tfl_interpreter_utils.create_tfl_interpreter(content)
            signatures = interpreter.get_signature_list()
            key = next(iter(signatures))
            name = signatures[key]["inputs"][0]
            method = recipe.static_wi8_ai8()
            manager = recipe_manager.RecipeManager()
            manager.load_quantization_recipe(method)
            ranges = calibrator.Calibrator(
                content,
                mode=calibrator.CalibrationMode.CALIBRATION_PRESERVE_ALL_TENSORS,
                num_threads=1,
                qsv_update_func=qsv_utils.min_max_update,
            )
            ranges.calibrate({key: [{name: row[None].astype(np.float32)} for row in calibration]}, manager)
            result = quantizer.Quantizer(content, method).quantize(ranges.get_model_qsvs())
        except (ValueError, RuntimeError, KeyError, NotImplementedError) as error:
            raise UserError(f"{path}: ai-edge-quantizer cannot quantise it: {str(error).splitlines()[0]}") from None
    return normalise(bound_biases(with_integer_prelus(bytes(result.quantized_model)), content))

"""A float .tflite: run by the TFLite interpreter, quantised by ai-edge-quantizer. No TensorFlow."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import quantised
from h2t2.cpython.tflite_trial import INSTEAD, open_interpreter, try_first

from ...common.errors import UserError
from ...common.extras import install_hint
from .. import tflite_edit
from ..tflite import load, read
from ..tflite_edit import normalise, operator_names, renamed, widen, with_plain_operators
from . import int8_lstm
from .biases import bound_biases
from .logits import centred, opposed, reach_both_signs
from .quiet import quiet
from .tensor_bounds import bounds
from .trained_model import NoInt8Form, Source

# Shares of the calibration samples whose extremes ranges may leave out; the first is one sample
LEFT_OUT = 1e-6, 0.01, 0.03
PAYS = 0.75  # times the loss without: leaving out must pay
# Operators that ai-edge-quantizer does not quantise -> one that it quantises in the same way, whose name they have meanwhile:
# of free ranges; with the range of what it reads; with a constant of its own scale
STAND_INS = {
    **dict.fromkeys(("ABS", "EXP", "LEAKY_RELU", "LOG", "RELU6", "RELU_N1_TO_1"), "RSQRT"),
    "MINIMUM": "MAXIMUM",
    "REDUCE_MAX": "REDUCE_MIN",
    "PRELU": "MUL",
}
TOLERATED = 1 / 256  # loss of a score, on average over the samples, that leaves ranges as they are


def tflite_file(path: Path) -> Source:
    """Open a float .tflite. UserError for a file that is damaged, is int8 already, or has not one input and one output."""
    graph = load(path)
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise UserError(
            f"{path}: {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, want one of each: h2t2 inspect --pick"
        )
    end = graph.tensors[graph.inputs[0]]
    if end.dtype == "int8":
        advice = "`h2t2 inspect --bundle FILE` tells what it takes, and prepares it for a board"
        custom = (INSTEAD[o.custom] for o in graph.operators if o.custom in INSTEAD)
        raise UserError(f"{path}: is int8 already; {next(custom, advice)}")
    if end.dtype == graph.tensors[graph.outputs[0]].dtype == "int16":
        return _of_int16(path, end.shape[1:], path.read_bytes())
    if end.dtype != "float32":
        raise UserError(f"{path}: its input is {end.dtype}, want a float32 model")
    if any(size < 1 for size in end.shape):
        raise UserError(f"{path}: its input has the shape {end.shape}: fix every size before exporting")
    return from_bytes("float .tflite", path, path.read_bytes(), graph.file_bytes)


def _of_int16(path: Path, shape: tuple[int, ...], content: bytes) -> Source:
    """The source of a .tflite with int16 activations, which a Pi and a worker run; it keeps them between int8 ends."""
    int8 = tflite_edit.with_int8_ends(content)
    try:
        try_first(int8, "AUTO")
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return Source("int16 .tflite", path, shape, len(content), lambda x: _all_scores(content, x), lambda _: int8)


def from_bytes(kind: str, path: Path, content: bytes, file_bytes: int) -> Source:
    """Open a float .tflite in memory; path: the file that it comes from, of that size."""
    content = with_plain_operators(widen(content))
    with quiet():
        try:
            try_first(content, "AUTO")
            interpreter = open_interpreter(content, "AUTO")
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{path}: {str(error).splitlines()[0]}") from None
    shape = tuple(int(n) for n in interpreter.get_input_details()[0]["shape"][1:])

    return of_network(kind, path, shape, file_bytes, content, lambda x: _all_scores(content, x))


def of_network(
    kind: str,
    path: Path,
    shape: tuple[int, ...],
    file_bytes: int,
    content: bytes,
    scores: Callable[[np.ndarray], np.ndarray],
    finish: Callable[[bytes], bytes] = bytes,
    **scaling: Any,
) -> Source:
    """The source of a float .tflite; scaling: `factor`, `offset`, `encoding` before it. The rest is as Source says."""
    return Source(
        kind, path, shape, file_bytes, scores, lambda x: finish(quantise(content, x, path)), content=content, finish=finish,
        **scaling,
    )  # fmt: skip


def quantise(content: bytes, calibration: np.ndarray, path: Path) -> bytes:
    """Quantise a float .tflite to full int8.

    Ranges span the extremes of all samples. The quantizer's default, a moving average of each sample's extremes, collapses for
    a tensor of one number such as a binary classifier's logit. Where the scores then lose more than a step of 8 bits, ranges
    may span the half of the samples whose scores are nearest to .5: beyond their numbers a score is sure, and stays so. Or they
    leave out a few samples' extremes: one sample far outside would take the steps of all the others.
    """
    content = opposed(normalise(content))
    try:
        observed = _extremes(content, calibration)
    except ImportError:
        raise UserError(f"quantising without TensorFlow: {install_hint('convert')}") from None
    exact = _all_scores(content, calibration)
    best, least = b"", math.inf
    for extremes, share in [(observed, 0.0), (_of_doubtful(content, observed, exact), 0.0), *((observed, n) for n in LEFT_OUT)]:
        ranges = {name: _range(ends, share) for name, ends in extremes.items()}
        int8, lost = _best_centred(_with_ranges(content, ranges, path), calibration, exact)
        if not best or lost < least * (PAYS if share else 1):
            best, least = int8, lost
        if least < TOLERATED:
            break
    return best


def _of_doubtful(content: bytes, observed: dict[str, np.ndarray], exact: np.ndarray) -> dict[str, np.ndarray]:
    """The extremes of the half of the samples whose scores are nearest to .5; of the input those of all."""
    graph = read(content)
    doubtful = np.argsort(np.abs(exact - 0.5).min(1), kind="stable")[: (len(exact) + 1) // 2]
    source = graph.tensors[graph.inputs[0]].name
    return {name: ends if name == source else ends[:, doubtful] for name, ends in observed.items()}


def _range(ends: np.ndarray, share: float) -> tuple[float, float]:
    """(lowest, highest) of a tensor's extremes (2, n), without this share of the samples' at either end."""
    low, high = np.sort(ends, 1)
    place = min(math.ceil(share * len(low)), (len(low) - 1) // 2)
    return low[place], high[-1 - place]


def _best_centred(int8: bytes, calibration: np.ndarray, exact: np.ndarray) -> tuple[bytes, float]:
    """(an int8 .tflite, or the same with centred logits where less is lost; what its scores lose on average)."""
    scores, lost = _compared(int8, calibration, exact)
    moved = centred(int8, exact, scores)
    less = lost if moved == int8 else _compared(moved, calibration, exact)[1]
    return (moved, less) if less < lost else (int8, lost)


def _compared(int8: bytes, calibration: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, float]:
    """(the scores of an int8 .tflite, their mean difference from the float ones); infinite where no interpreter runs it."""
    try:
        scores = _all_scores(int8, calibration)
    except (ValueError, RuntimeError):  # its scales are too far apart
        return exact, math.inf
    return scores, float(np.abs(scores - exact).mean())


def _extremes(content: bytes, calibration: np.ndarray) -> dict[str, np.ndarray]:
    """(lowest, highest) numbers, within bounds(), of each float tensor that is computed: its name -> (2, n)."""
    with quiet():
        from ai_edge_quantizer.utils.tfl_interpreter_utils import create_tfl_interpreter

        interpreter = create_tfl_interpreter(content, use_xnnpack=False, num_threads=1, preserve_all_tensors=True)
    graph = read(content)
    names = {t.index: t.name for t in graph.tensors if t.data is None and t.dtype == "float32"}
    rows = []
    for row in calibration:
        interpreter.reset_all_variables()  # the state of an LSTM, whose sequences begin anew
        interpreter.set_tensor(graph.inputs[0], row[None].astype(np.float32))
        interpreter.invoke()
        tensors = [interpreter.get_tensor(n) for n in names]
        rows.append([(tensor.min(), tensor.max()) for tensor in tensors])
    ends = np.array(rows, np.float32).T  # (lowest or highest, tensors, samples)
    return {name: np.clip(ends[:, k], *bounds(graph, n)) for k, (n, name) in enumerate(names.items())}


def _with_ranges(content: bytes, ranges: dict[str, tuple[float, float]], path: Path) -> bytes:
    """The int8 .tflite of a float one; ranges: tensor's name -> (lowest, highest)."""
    with quiet():
        from ai_edge_quantizer import quantizer, recipe

        bare = int8_lstm.hidden(content)
        graph = read(bare)
        statistics = {
            t.name: {
                end: np.full((1,) * len(t.shape), number, np.float32) for end, number in zip(("min", "max"), ranges[t.name])
            }
            for t in graph.tensors
            if t.name in ranges
        }
        names = operator_names(bare)
        stand_ins = {n: STAND_INS[name] for n, name in enumerate(names) if name in STAND_INS}
        try:
            result = quantizer.Quantizer(renamed(bare, stand_ins), recipe.static_wi8_ai8()).quantize(statistics)
        except (ValueError, RuntimeError, KeyError, NotImplementedError) as error:
            raise NoInt8Form(f"{path}: ai-edge-quantizer cannot quantise it: {str(error).splitlines()[0]}") from None
    int8 = renamed(bytes(result.quantized_model), {n: names[n] for n in stand_ins})
    return normalise(reach_both_signs(bound_biases(int8_lstm.restored(int8, content), content)))


def with_scores(source: Source) -> Source:
    """The source with scores in place of its logits. UserError for a source that is no network of ours to change."""
    if source.content is None:
        raise UserError(f"{source.path}: --logits is for .tflite, .onnx and .pt2: end this model with a softmax or a sigmoid")
    content = tflite_edit.with_scores(source.content)
    return of_network(
        source.kind, source.path, source.shape, source.file_bytes, content, lambda x: _all_scores(content, x),
        factor=source.factor, offset=source.offset, encoding=source.encoding,
    )  # fmt: skip


def _all_scores(content: bytes, x: np.ndarray) -> np.ndarray:
    """The outputs (n, classes) of a float or an int8 .tflite, as real numbers."""
    with quiet():
        interpreter = open_interpreter(content, "AUTO")
    source, output = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    if source["dtype"] == np.int8:
        x = quantised(x, *source["quantization"])
    elif source["dtype"] == np.int16:
        x = np.clip(np.round(x / source["quantization"][0]), -32768, 32767)
    outputs = []
    for row in x:
        interpreter.reset_all_variables()
        interpreter.set_tensor(source["index"], row[None].astype(source["dtype"]))
        interpreter.invoke()
        outputs.append(np.asarray(interpreter.get_tensor(output["index"]), float).ravel())
    scale, zero = output["quantization"]
    return np.asarray((np.stack(outputs) - zero) * (scale or 1.0))

"""`h2t2 ldl-check`: the integer interpreter against TFLite's reference kernels, byte for byte, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.ldl.tflite import TFLiteModel

from ..common.errors import UserError
from ..model.exact import ExactModel
from ..model.plan import Plan, plan
from ..model.tflite import load
from . import oracle


def compare(
    path: Path, inputs: np.ndarray | None, samples: int, seed: int, layers: bool, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """{"samples", "bytes", "differ", "first", "bins", "oracle", ..}; inputs: (n, ...) int8 of the model's own, or None: all
    least, all greatest, the rest random; a model that keeps state sees them as a sequence.

    differ: output bytes unlike the oracle's; with layers, of every step, and `first` names the first that differs. bins:
    samples whose 4-bit policy bin is another with the optimised kernels a Pi runs.
    """
    whole = load(path)
    made = plan(whole)
    graph = made.graph
    model = ExactModel(made)
    interpreter = oracle.interpreter(path, layers)
    real = whole.inputs != graph.inputs  # its ends are float: the same numbers are given as such
    optimised = None if real else TFLiteModel(str(path), event=model.classes - 1, resolver="optimised")
    shape = graph.tensors[graph.inputs[0]].shape
    if inputs is None:
        inputs = np.random.default_rng(seed).integers(-128, 128, (samples, *shape[1:])).astype(np.int8)
        for n, extreme in zip(range(samples - 1), (-128, 127)):  # the least, the greatest; at least one is random
            inputs[n] = extreme
    differ = total = bins = 0
    first: str | None = None
    event = model.classes - 1
    for n, x in enumerate(inputs):
        scale, zero = model.input_quantisation()
        given = (np.float32(scale) * (x.astype(np.float32) - zero)) if real else x
        if whole.tensors[whole.inputs[0]].dtype == "uint8":
            given = (x.astype(np.int16) + 128).astype(np.uint8)
        interpreter.set_tensor(whole.inputs[0], given.reshape(shape))
        interpreter.reset_all_variables()  # an LSTM's state: each sample by itself, as a board has it. Others are kept
        interpreter.invoke()
        arena = model.arena
        model.put(x)
        for number, step in enumerate(made.steps):
            model.run_step(number)
            written = step.tensor not in {later.tensor for later in made.steps[number + 1 :]}  # all parts of a CONCATENATION
            if layers and written and step.tensor not in made.states and not _overwritten(interpreter, made, step.tensor):
                wrong, size = _unlike(interpreter, arena, made.offsets, graph.tensors[step.tensor])
                differ += wrong
                total += size
                if wrong and first is None:
                    first = f"sample {n}, step {number} ({step.kernel}, tensor {graph.tensors[step.tensor].name})"
        if not layers:
            wrong, size = _unlike(interpreter, arena, made.offsets, graph.tensors[graph.outputs[0]])
            differ += wrong
            total += size
        q = arena[model.output + event] - 128
        bins += optimised is not None and model.bin(q) != optimised.bin(optimised.run(x.reshape(shape)))
        progress(n + 1, len(inputs))
    if not total:
        raise UserError(f"{path}: no tensor of it can be held against {oracle.name()}'s: without --layers the output is")
    return {
        "model": str(path),
        "oracle": oracle.name(),
        "samples": len(inputs),
        "bytes": total,
        "differ": int(differ),
        "first": first,
        "bins": int(bins),
        "bundle_bytes": len(model.blob),
        "arena_bytes": made.arena,
        "steps": len(made.steps),
    }


def _overwritten(interpreter: Any, made: Plan, tensor: int) -> bool:
    """Whether the oracle computed a later tensor in this one's memory (ADD, SUB, SOFTMAX and others do): that one is judged."""
    now = interpreter.get_tensor(tensor)
    later = [n for operator in made.graph.operators if tensor in operator.inputs for n in operator.outputs]
    return any(np.array_equal(now, interpreter.get_tensor(n)) for n in later if n not in made.states)


def _unlike(interpreter: Any, arena: bytearray, offsets: dict[int, int], tensor: Any) -> tuple[int, int]:
    """(bytes unlike the oracle's, how many) of a tensor that was just written."""
    at = offsets[tensor.index]
    mine = np.frombuffer(bytes(arena[at : at + tensor.size]), np.uint8).astype(np.int16) - 128
    theirs = interpreter.get_tensor(tensor.index).ravel()
    theirs = theirs.astype(np.int16) - (128 if theirs.dtype == np.uint8 else 0)
    return int((mine != theirs).sum()), tensor.size

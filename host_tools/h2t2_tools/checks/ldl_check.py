"""`h2t2 ldl-check`: compares the integer interpreter with TFLite's reference kernels, byte for byte, layer by layer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.tflite import TFLiteModel

from ..common.errors import UserError, as_user_error
from ..common.places import temporary_folder
from ..model.exact import ExactModel
from ..model.operators.step import Step
from ..model.plan import Plan, plan, trimmed
from ..model.tflite import Graph, load
from ..model.tflite_write import write
from . import oracle


def compare(
    path: Path, inputs: np.ndarray | None, samples: int, seed: int, layers: bool, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Compare the integer interpreter with the oracle on some samples.

    Args:
        path: A full-int8 .tflite.
        inputs: (n, ...) int8 for the model's own input; None: the lowest values, the highest values, then random ones. A sample
            fills the whole input, whatever its batch. A model with state sees a sequence.
        samples: Number of samples if `inputs` is None.
        seed: Seed of the random ones.
        layers: Compare the output of every step, not only the last.
        progress: Called with the number of compared samples and of all.

    Returns:
        {"samples", "bytes", "differ", "first", "bins", "oracle", ...}. differ: bytes that differ from the oracle's; first: the
        first differing step; bins: samples whose 4-bit bin changes with the optimised kernels of a Pi.

    Raises:
        UserError: No board or no interpreter runs the model, or the samples have another size.
    """
    model_graph = load(path)
    board_plan = plan(model_graph)
    graph = board_plan.graph
    model = ExactModel(board_plan)
    steps = _judged(model_graph, board_plan) if layers else {}
    judged = sorted({step.tensor for step in steps.values()}) or [graph.outputs[0]]
    interpreter = oracle.interpreter(path, judged)
    optimised = _on_a_pi(path, model_graph, model.classes - 1)
    samples_in = _samples(inputs, samples, seed, model.input_size, path)
    compared: list[tuple[int, int]] = []  # bytes that differ, bytes in all
    bins = 0
    first: str | None = None
    event = model.classes - 1
    for n, x in enumerate(samples_in):
        _ask(interpreter, model_graph, graph, x, path)
        model.write_input(x)
        for number in range(len(board_plan.steps)):
            model.run_step(number)
            if number in steps:
                step = steps[number]
                compared.append(_unlike(interpreter, model.arena, board_plan.offsets, graph.tensors[step.tensor]))
                if compared[-1][0] and first is None:
                    first = f"sample {n}, step {number} ({step.kernel}, tensor {graph.tensors[step.tensor].name})"
        if not steps:  # a RESHAPE alone has no step
            compared.append(_unlike(interpreter, model.arena, board_plan.offsets, graph.tensors[graph.outputs[0]]))
        bins += model.level(model.arena[model.output + event] - 128) >> 4 != optimised.level(optimised.run(x)) >> 4
        progress(n + 1, len(samples_in))
    return {
        "model": str(path),
        "oracle": oracle.name(),
        "samples": len(samples_in),
        "bytes": sum(size for _, size in compared),
        "differ": sum(differ for differ, _ in compared),
        "first": first,
        "bins": int(bins),
        "bundle_bytes": len(model.blob),
        "arena_bytes": board_plan.arena,
        "steps": len(board_plan.steps),
    }


def _judged(model_graph: Graph, board_plan: Plan) -> dict[int, Step]:
    """Return the steps that complete a tensor, by number: the last one of a CONCATENATION. Variables do not count."""
    last = {step.tensor: number for number, step in enumerate(board_plan.steps)}
    computed = {n for operator in model_graph.operators for n in operator.outputs}
    return {number: board_plan.steps[number] for n, number in last.items() if n in computed and n not in board_plan.states}


def _samples(inputs: np.ndarray | None, samples: int, seed: int, size: int, path: Path) -> np.ndarray:
    """Return the input samples, (n, size) int8."""
    if inputs is not None:
        if len(inputs) == 0 or inputs.size != len(inputs) * size:
            raise UserError(f"inputs of the shape {inputs.shape}: {path} takes {size} numbers a sample")
        return inputs.reshape(-1, size)
    random_inputs = np.random.default_rng(seed).integers(-128, 128, (samples, size)).astype(np.int8)
    for n, extreme in zip(range(samples - 1), (-128, 127)):  # at least one sample stays random
        random_inputs[n] = extreme
    return random_inputs


def _ask(interpreter: Any, model_graph: Graph, graph: Graph, x: np.ndarray, path: Path) -> None:
    """Run the oracle on x, (size,) int8, converted to the type of the model's own input."""
    end, board = model_graph.tensors[model_graph.inputs[0]], graph.tensors[graph.inputs[0]]
    tensor = x
    if end.dtype == "float32":
        tensor = np.float32(board.scale[0]) * (x.astype(np.float32) - np.float32(board.zero[0]))
    elif end.dtype == "uint8":
        tensor = (x.astype(np.int16) + 128).astype(np.uint8)
    try:
        interpreter.set_tensor(model_graph.inputs[0], tensor.reshape(end.shape))
        interpreter.reset_all_variables()  # clears an LSTM's state, as a board does before a sample; other variables stay
        interpreter.invoke()
    except (RuntimeError, ValueError) as error:
        raise UserError(f"{path}: {oracle.name()} fails on a sample: {str(error).splitlines()[0]}") from None


def _on_a_pi(path: Path, model_graph: Graph, event: int) -> TFLiteModel:
    """Open the model with the optimised kernels. Its ends become those of a board."""
    with as_user_error():  # the interpreter refuses it
        short_graph = trimmed(model_graph)
        if len(short_graph.operators) == len(model_graph.operators):
            return TFLiteModel(str(path), event, "optimised")
        with temporary_folder("check") as folder:
            short = Path(folder, path.name)
            short.write_bytes(write(short_graph))
            return TFLiteModel(str(short), event, "optimised")


def _unlike(interpreter: Any, arena: bytearray, offsets: dict[int, int], tensor: Any) -> tuple[int, int]:
    """Compare a tensor that was just written. Return how many of its bytes differ, and its size."""
    at = offsets[tensor.index]
    mine = np.frombuffer(bytes(arena[at : at + tensor.size]), np.uint8).astype(np.int16) - 128
    theirs = interpreter.get_tensor(tensor.index).ravel()
    theirs = theirs.astype(np.int16) - (128 if theirs.dtype == np.uint8 else 0)
    return int((mine != theirs).sum()), tensor.size

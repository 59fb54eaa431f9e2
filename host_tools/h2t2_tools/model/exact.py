"""The integer interpreter on a host: an int8 .tflite as a board computes it, compiled where numba is installed."""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import local_input, scores_of
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bounds import extents
from h2t2.ldl.bundle import Int8Model

from ..common.errors import UserError, as_user_error
from ..common.extras import install_hint
from . import bundle
from .plan import CODES, Plan, plan
from .tflite import TREES, load

SLOW = 30_000  # multiplications of an inference, some ten milliseconds in plain Python


class ExactModel(Int8Model):
    """One int8 classifier, bit for bit as boards run it, on every Python.

    Args:
        steps: Its plan.
        event: Index of class 1 in the output (of one output: 0).

    Raises:
        ValueError: Int8Model refuses the bundle.
    """

    def __init__(self, steps: Plan, event: int = 0) -> None:
        graph = steps.graph
        self.input_shape = tuple(graph.tensors[graph.inputs[0]].shape)
        output = graph.tensors[graph.outputs[0]]
        self.output_scale, self.output_zero_point = float(output.scale[0]), int(output.zero[0])
        super().__init__(bytearray(bundle.write(steps)), event)
        codes = [CODES[step.kernel] for step in steps.steps]
        self._calls: list[tuple[Any, ...]] = [(step, self.arena, self.blob, p, k) for step, p, k in self.steps]
        if not compiler():
            if sum(extents(step.__name__, p)[4] for step, p, _ in self.steps) > SLOW:
                _say_slow()
        else:
            arrays = np.frombuffer(self.arena, np.uint8), np.frombuffer(self.blob, np.uint8)
            self._calls = [_compiled_call(code, p, k, *arrays) for code, (_, p, k) in zip(codes, self.steps)]
            self._infer()  # compile here: the first sample must not wait
            self.reset()

    def run_step(self, n: int) -> None:
        run, *arguments = self._calls[n]
        run(*arguments)

    def _infer(self) -> None:
        for n in range(len(self.steps)):
            self.run_step(n)

    def write_input(self, x: np.ndarray) -> None:
        """Write an int8 input tensor, (input_size,) in any shape, to the arena. ValueError for another size or type."""
        if x.dtype != np.int8 or x.size != self.input_size:
            raise ValueError(f"sample {x.dtype} {x.shape}: the model takes int8 {self.input_shape}")
        self.arena[self.input : self.input + self.input_size] = (x.ravel().view(np.uint8) ^ 128).tobytes()

    def run(self, x: Any) -> int:
        """Run an int8 input tensor (array, or a buffer of int8): the event's int8 output, -128..127."""
        self.write_input(np.asarray(x))
        self._infer()
        return int(self.arena[self.output + self.event]) - 128

    def outputs(self, x: Any) -> np.ndarray:
        """Run an int8 input tensor: all int8 outputs, (classes,)."""
        self.run(x)
        stored = np.frombuffer(bytes(self.arena[self.output : self.output + self.classes]), np.uint8)
        return (stored ^ 128).view(np.int8)

    def scores(self, x: Any) -> np.ndarray:
        """Run an int8 input tensor: all outputs' scores in [0, 1], float64 (classes,)."""
        return scores_of(self.outputs(x), self.output_scale, self.output_zero_point)

    def score(self, q: int) -> float:
        """The score in [0, 1] that an int8 output stands for."""
        return float(scores_of(q, self.output_scale, self.output_zero_point))

    def quantise(self, x: Any) -> np.ndarray:
        """Float sample (any shape of the right size) to the model's int8 input: round(x / scale) + zero point, clipped."""
        return local_input(self, x)


def _compiled_call(code: int, p: Any, k: Any, arena: np.ndarray, blob: np.ndarray) -> tuple[Any, ...]:
    """A compiled kernel and its arguments; k: the constants of the step."""
    from .numba_kernels import kernel

    bias, limbs, shifts = k or (None, None, b"")
    constants = [np.array([] if values is None else values, np.int64) for values in (bias, limbs, list(shifts))]
    return kernel(code), arena, blob, tuple(p), tuple(constants)


@cache
def compiler() -> bool:
    """Whether numba is installed."""
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


@cache
def _say_slow() -> None:
    print(f"h2t2: without numba the integer interpreter runs in plain Python, slowly; {install_hint('lab')}", file=sys.stderr)


def open_exact(path: Path, event: int = 0) -> ExactModel:
    """Open an int8 .tflite in the integer interpreter.

    Raises UserError with the reason for a model that no board can run, or that lacks the output `event`.
    """
    with as_user_error(path):
        return ExactModel(plan(load(path)), event)


def open_local(path: Path, event: int = 0) -> ExactModel | TFLiteModel:
    """Open a local model for scores, traces and pairs: in the integer interpreter, or in TFLite where no board can run it.

    Raises UserError for a file that is no full-int8 classifier.
    """
    try:
        return open_exact(path, event)
    except UserError:
        if TREES.encode() in path.read_bytes():  # which TFLite cannot run either
            raise
        with as_user_error():
            return TFLiteModel(str(path), event)

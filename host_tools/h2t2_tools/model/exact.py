"""The integer interpreter on a host: an int8 .tflite as a board computes it, compiled where numba is installed."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from h2t2.cpython.quantise import local_input
from h2t2.cpython.tflite import TFLiteModel
from h2t2.ldl.bundle import Int8Model

from ..common.errors import UserError
from ..common.extras import install_hint
from . import bundle
from .plan import Plan, plan
from .tflite import load


class ExactModel(Int8Model):
    """One int8 classifier, bit for bit as boards run it, on every Python.

    made: its plan. event: index of class 1 in the output (of one output: 0). bits: of a bin. ValueError as Int8Model's.
    """

    def __init__(self, made: Plan, event: int = 0, bits: int = 4) -> None:
        graph = made.graph
        self.input_shape = tuple(graph.tensors[graph.inputs[0]].shape)
        output = graph.tensors[graph.outputs[0]]
        self.output_scale, self.output_zero_point = float(output.scale[0]), int(output.zero[0])
        super().__init__(bytearray(bundle.write(made)), event, bits)
        codes = [bundle.CODES[step.kernel] for step in made.steps]
        self._run_steps: list[Any] = []
        if compiler():
            arrays = np.frombuffer(self.arena, np.uint8), np.frombuffer(self.blob, np.uint8)
            self._run_steps = [self._compiled(code, *arrays, p, k) for code, (_, p, k) in zip(codes, self.steps)]
            self._infer()  # compiled here, not while a first sample waits
            self.reset()

    def _compiled(self, code: int, arena: np.ndarray, blob: np.ndarray, p: Any, k: Any) -> Any:
        from .compiled import kernel

        bias, limbs, shifts = k or (None, None, b"")
        constants = [np.array([] if values is None else values, np.int64) for values in (bias, limbs, list(shifts))]
        return kernel(code), arena, blob, tuple(p), tuple(constants)

    def run_step(self, n: int) -> None:
        """Step n alone, on what is in the arena."""
        if self._run_steps:
            run, arena, blob, p, k = self._run_steps[n]
            run(arena, blob, p, k)
        else:
            step, p, k = self.steps[n]
            step(self.arena, self.blob, p, k)

    def _infer(self) -> None:
        for n in range(len(self.steps)):
            self.run_step(n)

    def put(self, x: np.ndarray) -> None:
        """int8 input tensor, (input_size,) in any shape, into the arena. ValueError for another size or type."""
        if x.dtype != np.int8 or x.size != self.input_size:
            raise ValueError(f"sample {x.dtype} {x.shape}: the model takes int8 {self.input_shape}")
        self.arena[self.input : self.input + self.input_size] = (x.ravel().view(np.uint8) ^ 128).tobytes()

    def run(self, x: Any) -> int:
        """int8 input tensor (array, or a buffer of int8) to the event's int8 output, -128..127."""
        self.put(np.asarray(x))
        self._infer()
        return self.arena[self.output + self.event] - 128

    def outputs(self, x: Any) -> np.ndarray:
        """int8 input tensor to all int8 outputs, (classes,)."""
        self.run(x)
        made = np.frombuffer(bytes(self.arena[self.output : self.output + self.classes]), np.uint8)
        return (made ^ 128).view(np.int8)

    def scores(self, x: Any) -> np.ndarray:
        """int8 input tensor to all outputs' scores in [0, 1], float64 (classes,)."""
        return np.clip(self.output_scale * (self.outputs(x).astype(np.int32) - self.output_zero_point), 0.0, 1.0)

    def score(self, q: int) -> float:
        """The score in [0, 1] that an int8 output stands for."""
        return float(min(max(self.output_scale * (q - self.output_zero_point), 0.0), 1.0))

    def quantise(self, x: Any) -> np.ndarray:
        """Float sample (any shape of the right size) to the model's int8 input: round(x / scale) + zero point, clipped."""
        return local_input(self, x)


@cache
def compiler() -> bool:
    """Whether numba is installed. Where it is not, says once on standard error that plain Python is slow."""
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        print(
            f"h2t2: without numba the integer interpreter runs in plain Python, slowly; {install_hint('lab')}", file=sys.stderr
        )
        return False
    return True


def open_exact(path: Path, event: int = 0, bits: int = 4) -> ExactModel:
    """An int8 .tflite by the integer interpreter.

    Raises UserError, saying why, for one that no board can run, or that lacks the output `event`.
    """
    try:
        return ExactModel(plan(load(path)), event, bits)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def open_local(path: Path, event: int = 0, bits: int = 4) -> ExactModel | TFLiteModel:
    """A local model as scores, traces and pairs have it: by the integer interpreter; by TFLite where no board can run it.

    Raises ValueError for a file that is no full-int8 classifier.
    """
    try:
        return open_exact(path, event, bits)
    except UserError:
        return TFLiteModel(str(path), event, bits=bits)

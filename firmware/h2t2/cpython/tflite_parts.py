# The tensors and operators of a .tflite, with what holds of each alone.
from __future__ import annotations

from math import isfinite
from typing import Any

from .tflite_flat import FlatFile

NAMES = "float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 resource variant".split()
# type -> bits of a number, and struct's code of those that rules read; what has no entry is of no fixed size
BITS = {
    0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 11: 128, 12: 64, 15: 32, 16: 16, 17: 4, 18: 16, 19: 2,
    20: 4, 21: 8, 22: 8,
}  # fmt: skip
READ = {2: "i", 4: "q"}
TYPES = 23
RANGES = {3: (0, 255), 7: (-32768, 32767), 9: (-128, 127)}  # of zero points
AXES = 8
LARGEST = 2**31  # bytes of a tensor


def type_name(tensor: Tensor) -> str:
    """Its type in words."""
    return NAMES[tensor.type] if 0 <= tensor.type < len(NAMES) else "type %d" % tensor.type


class Tensor:
    """shape: as stored; sizes: the same, None along an axis whose size the model leaves open; open: whether it leaves any.

    values: the numbers of a small constant of int32 or int64.
    """

    def __init__(self, file: FlatFile, table: int, buffers: list[int]) -> None:
        self.name = file.text(table, 3) or "?"
        self.type = file.scalar(table, 1, "<b")
        self.variable = bool(file.scalar(table, 5, "<b"))
        self.shape = file.numbers(table, 0, "<i")
        signature = file.numbers(table, 7, "<i")
        if len(signature) != len(self.shape):
            signature = self.shape
        self.sizes = [None if min(pair) < 0 else pair[0] for pair in zip(self.shape, signature)]
        self.open = None in self.sizes
        self.values: list[int] | None = None
        number = file.scalar(table, 2, "<I")
        if number >= len(buffers):
            raise ValueError("tensor %s refers to a buffer that is not there" % self.name)
        self.constant = self._data(file, file.table(table, 6), buffers[number])
        self.scales: Any = ()
        self.zeros: Any = ()
        quantisation = file.table(table, 4)
        if quantisation:
            self._quantisation(file, quantisation)

    def _data(self, file: FlatFile, sparsity: int, buffer: int) -> bool:
        """Whether it is a constant. ValueError where its bytes do not fill its shape."""
        if not 0 <= self.type < TYPES or len(self.shape) > AXES or min(self.shape, default=0) < -1:
            raise ValueError("tensor %s: %s, shape %s" % (self.name, type_name(self), list(self.shape)))
        size = 1
        for n in self.shape:
            size *= max(n, 1)
        self.size = 0 if 0 in self.shape else size
        bits = BITS.get(self.type, 0)
        if size * bits > 8 * LARGEST:
            raise ValueError("tensor %s: shape %s is too large" % (self.name, list(self.shape)))
        start, count = file.outside(buffer)
        if not count:
            at = file.field(buffer, 0)
            start, count = file.vector(at, 1) if at else (0, 0)
        if not count:
            return False
        if bits and not sparsity and count != (self.size * bits + 7) // 8:
            words = "tensor %s: %d bytes of data do not fill the shape %s" % (self.name, count, list(self.shape))
            raise ValueError("%s of %s" % (words, type_name(self)))
        if self.type in READ and self.size <= 64:
            code = READ[self.type]
            self.values = [file.number(start + n * bits // 8, "<" + code, bits // 8) for n in range(self.size)]
        return True

    def _quantisation(self, file: FlatFile, table: int) -> None:
        self.scales, self.zeros = file.numbers(table, 2, "<f"), file.numbers(table, 3, "<q")
        axis = file.scalar(table, 6, "<i")
        if len(self.zeros) not in (0, 1, len(self.scales)):
            raise ValueError("tensor %s has %d scales and %d zero points" % (self.name, len(self.scales), len(self.zeros)))
        for scale in self.scales:
            if not isfinite(scale) or scale < 0:
                raise ValueError("tensor %s has a scale of %r" % (self.name, scale))
        low, high = RANGES.get(self.type, (-(2**31), 2**31 - 1))
        if self.scales and (min(self.zeros, default=0) < low or max(self.zeros, default=0) > high):
            raise ValueError("tensor %s has a zero point outside %d..%d" % (self.name, low, high))
        if len(self.scales) > 1 and not self.open:
            if len(self.shape) == 1:
                axis = 0  # of a bias older converters write its filter's
            if not 0 <= axis < len(self.shape) or self.shape[axis] != len(self.scales):
                words = "tensor %s has %d scales along axis %d of" % (self.name, len(self.scales), axis)
                raise ValueError("%s %s" % (words, list(self.shape)))


class Operator:
    """inputs, outputs: the tensors, None for one left out; option(): a field of its options; rule: of its code, or None."""

    def __init__(self, file: FlatFile, table: int, tensors: list[Tensor], codes: list[int], rules: dict[int, Any]) -> None:
        number = file.scalar(table, 0, "<I")
        if number >= len(codes):
            raise ValueError("an operator refers to a code that is not there")
        self.code = codes[number]
        self.rule = rules.get(self.code)
        self.name = self.rule.name if self.rule else "code %d" % self.code
        self.indices = [file.numbers(table, field, "<i") for field in (1, 2, 8)]
        for indices, words in zip(self.indices, ("input", "output", "intermediate")):
            for n in indices:
                if not -1 <= n < len(tensors):
                    raise ValueError("an %s refers to a tensor that is not there" % words)
        ends = [[tensors[n] if n >= 0 else None for n in indices] for indices in self.indices[:2]]
        self.inputs: list[Any] = ends[0]
        self.outputs: list[Any] = ends[1]
        self.kind = file.scalar(table, 3, "<B")
        self._file = file
        options = self.rule.options if self.rule else 0
        self._options = file.table(table, 4) if options in (0, self.kind) else 0  # TFLite ignores those of another kind

    def option(self, slot: int, code: str = "<i", default: int = 0) -> Any:
        """A field of its options; default: where it is absent, or they are."""
        return self._file.scalar(self._options, slot, code, default) if self._options else default

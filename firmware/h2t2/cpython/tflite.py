# LDL back end for a Pi or a desktop: a full-int8 .tflite through LiteRT (ai-edge-litert), or tflite-runtime where that is.
# Set-up may use floats (scales); from sample to bin at run time everything is integers. Not for microcontrollers.
import numpy as np

from .quantise import local_input
from .tflite_check import check
from .tflite_library import Interpreter, OpResolverType
from .tflite_trial import open_interpreter, try_first

__all__ = ["Interpreter", "OpResolverType", "TFLiteModel"]
RESOLVERS = {"reference": "BUILTIN_REF", "optimised": "AUTO"}


class TFLiteModel:
    """One int8 classifier. `run` gives the int8 output q of the event's class, `bin` turns it into a bin of 2^bits.

    path: the .tflite; event: index of class 1 in the output (an output of one number is that class's score).
    resolver: "reference" (bit-exact on every machine) or "optimised" (faster, differs by one step now and then).
    Raises ValueError for a file that is not a usable full-int8 classifier, FileNotFoundError where there is none.
    """

    def __init__(self, path, event=1, resolver="reference", bits=4):
        with open(path, "rb") as file:
            content = file.read()
        self._model = content, RESOLVERS[resolver]
        try:
            check(content)
            try_first(*self._model)
        except ValueError as error:
            raise ValueError("%s: %s" % (path, error)) from None
        try:
            self.reset()
        except (ValueError, RuntimeError) as error:
            raise ValueError("%s: the interpreter refuses it: %s" % (path, str(error).split("\n")[0])) from None
        source = self._interpreter.get_input_details()
        output = self._interpreter.get_output_details()
        if len(source) != 1 or len(output) != 1:
            raise ValueError(
                "%s: %d inputs and %d outputs, want one of each: h2t2 pick makes it so" % (path, len(source), len(output))
            )
        for what, detail in (("input", source[0]), ("output", output[0])):
            if detail["dtype"] not in (np.int8, np.uint8):
                raise ValueError(
                    "%s: %s is %s, want int8 or uint8 (convert with full integer quantisation)"
                    % (path, what, np.dtype(detail["dtype"]).name)
                )
        self.path = path
        self.input_shape = tuple(int(n) for n in source[0]["shape"])
        self.input_size = int(np.prod(self.input_shape))
        self.input_scale, self.input_zero_point = source[0]["quantization"]
        self.output_scale, self.output_zero_point = output[0]["quantization"]
        # an end of uint8 is the same bytes, 128 lower
        self._bytes_in, self._bytes_out = [detail[0]["dtype"] is np.uint8 for detail in (source, output)]
        self.input_zero_point -= 128 * self._bytes_in
        self.output_zero_point -= 128 * self._bytes_out
        self._input = source[0]["index"]
        self._output = output[0]["index"]
        self.classes = int(np.prod(output[0]["shape"]))
        self.event = 0 if self.classes == 1 else event
        if not 0 <= self.event < self.classes:
            raise ValueError("%s: no class %d among %d outputs" % (path, event, self.classes))
        self.bits = bits
        if not 1 <= bits <= 8:
            raise ValueError("bits %d: an int8 score has at most 8" % bits)
        # q -> floor(256 f) of the dequantised, clipped score f, for every int8 q
        scores = np.clip(self.output_scale * (np.arange(-128, 128) - self.output_zero_point), 0, 1)
        self._scores = bytes(np.minimum(np.floor(scores * 256), 255).astype(np.uint8))
        self._last = np.zeros(self.classes, np.int8)

    def reset(self) -> None:
        """Every variable as the model begins it: what came before is forgotten."""
        self._interpreter = open_interpreter(*self._model)  # of variables' resources there is no other way

    def input_quantisation(self) -> tuple:
        """(scale, zero point) of the input: q = round(real / scale) + zero point."""
        return self.input_scale, self.input_zero_point

    def quantise(self, x) -> np.ndarray:
        """Float sample (any shape of the right size) to the model's int8 input: round(x / scale) + zero point, clipped."""
        return local_input(self, x)

    def run(self, x) -> int:
        """int8 input tensor (array of the input's size) to the event's int8 output, -128..127. ValueError for a wrong size."""
        self._last = self.outputs(x)
        return int(self._last[self.event])

    def score_of(self, n: int) -> int:
        """The score of output n in the last run, in 256ths, 0..255."""
        return self._scores[int(self._last[n]) + 128]

    def scores(self, x) -> np.ndarray:
        """int8 input tensor to all outputs' scores in [0, 1], float64 (classes,): host use."""
        return np.clip(self.output_scale * (self.outputs(x).astype(np.int32) - self.output_zero_point), 0.0, 1.0)

    def outputs(self, x) -> np.ndarray:
        """int8 input tensor to all int8 outputs, (classes,). ValueError for a wrong size."""
        x = np.asarray(x)
        if x.dtype != np.int8 or x.size != self.input_size:
            raise ValueError("sample %s %s: the model takes int8 %s" % (x.dtype, x.shape, self.input_shape))
        if self._bytes_in:
            x = (x.astype(np.int16) + 128).astype(np.uint8)
        self._interpreter.set_tensor(self._input, x.reshape(self.input_shape))
        self._interpreter.reset_all_variables()  # an LSTM begins anew, as the integer interpreter's does; others are kept
        self._interpreter.invoke()
        made = self._interpreter.get_tensor(self._output).reshape(-1)
        return (made.astype(np.int16) - 128).astype(np.int8) if self._bytes_out else made

    def bin(self, q: int) -> int:
        """The score bin, 0..2^bits - 1, of an int8 output: one table look-up, no float."""
        return self._scores[q + 128] >> 8 - self.bits

    def score(self, q: int) -> float:
        """The score in [0, 1] an int8 output stands for (host use: reports and traces)."""
        return float(min(max(self.output_scale * (q - self.output_zero_point), 0.0), 1.0))

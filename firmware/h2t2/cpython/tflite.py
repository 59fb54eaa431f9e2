# LDL back end for a Pi or a desktop: a full-int8 .tflite through LiteRT (ai-edge-litert), or tflite-runtime where that is.
# Set-up may use floats (scales); from sample to bin at run time everything is integers.
import os
from binascii import crc32
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..ldl.ldl import Ldl
from .quantise import local_input, score_table, scores_of
from .tflite_check import check
from .tflite_trial import open_interpreter, try_first

RESOLVERS = {"reference": "BUILTIN_REF", "optimised": "AUTO"}


FEATURES = "h2t2_features"  # name of the output that a head learns from, int8 in steps of 1/32 (h2t2 pair --features)
TREES = b"H2T2_TREES"  # the operator for decision trees, which h2t2's integer interpreter runs alone


def bundle_of_trees(path: str) -> str:
    """The bundle beside a .tflite of decision trees, which TFLite has not; "" for another .tflite. ValueError without one."""
    with open(path, "rb") as file:
        if TREES not in file.read():
            return ""
    bundle = os.path.splitext(path)[0] + ".h2m"
    if not os.path.exists(bundle):
        raise ValueError("%s: its trees run from a bundle: h2t2 inspect %s --bundle %s" % (path, path, bundle))
    return bundle


class TFLiteModel(Ldl):
    """One int8 classifier. An output of one number is the event's score, whatever `event` is."""

    def __init__(self, path: str | os.PathLike[str], event: int = 1, resolver: str = "reference") -> None:
        """Open a .tflite.

        Args:
            path: of the .tflite.
            event: index of class 1 in the output.
            resolver: "reference" (bit-exact on every machine) or "optimised" (faster, differs by one step now and then).

        Raises:
            ValueError: the file is no usable full-int8 classifier.
            FileNotFoundError: there is no such file.
        """
        with open(path, "rb") as file:
            content = file.read()
        if TREES in content:
            words = "%s: decision trees: TFLite runs none, h2t2's integer interpreter does (h2t2 inspect --bundle)"
            raise ValueError(words % path)
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
        inputs, outputs = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self._features_index, self.features_at = -1, 0
        if len(outputs) == 2 and outputs[1]["name"].split(";")[0] == FEATURES:
            self._features_index, self.features = outputs[1]["index"], int(np.prod(outputs[1]["shape"]))
        elif len(inputs) != 1 or len(outputs) != 1:
            words = "%s: %d inputs and %d outputs, want one of each: h2t2 inspect --pick"
            raise ValueError(words % (path, len(inputs), len(outputs)))
        self.checksum = crc32(content)
        self._take_ends(path, inputs[0], outputs[0])
        self.event = 0 if self.classes == 1 else event
        if not 0 <= self.event < self.classes:
            raise ValueError("%s: no class %d among %d outputs" % (path, event, self.classes))
        self._scores = score_table(self.output_scale, self.output_zero_point)
        self._last_outputs = np.zeros(self.classes, np.int8)

    def _take_ends(self, path: str | os.PathLike[str], source: dict[str, Any], output: dict[str, Any]) -> None:
        """Set shapes, scales and places of the input and the output. ValueError for another dtype than int8 and uint8."""
        for end, detail in (("input", source), ("output", output)):
            if detail["dtype"] not in (np.int8, np.uint8):
                words = "%s: %s is %s, want int8 or uint8 (convert with full integer quantisation)"
                raise ValueError(words % (path, end, np.dtype(detail["dtype"]).name))
        self.input_shape = tuple(int(n) for n in source["shape"])
        self.input_size = int(np.prod(self.input_shape))
        self.input_scale, self.input_zero_point = source["quantization"]
        self.output_scale, self.output_zero_point = output["quantization"]
        # an end of uint8 is the same bytes, 128 lower
        self._input_is_unsigned, self._output_is_unsigned = [end["dtype"] is np.uint8 for end in (source, output)]
        self.input_zero_point -= 128 * self._input_is_unsigned
        self.output_zero_point -= 128 * self._output_is_unsigned
        self._input, self._output = source["index"], output["index"]
        self.classes = int(np.prod(output["shape"]))

    def reset(self) -> None:
        self._interpreter = open_interpreter(*self._model)  # of variables' resources there is no other way

    def input_quantisation(self) -> tuple[float, int]:
        return self.input_scale, self.input_zero_point

    def quantise(self, x: ArrayLike) -> NDArray[np.int8]:
        """Float sample (any shape of the right size) to the model's int8 input: round(x / scale) + zero point, clipped."""
        return local_input(self, x)

    def run(self, x: ArrayLike) -> int:
        """The event's int8 output, -128..127, of an int8 array of the input's size. ValueError for a wrong size."""
        self._last_outputs = self.outputs(x)
        return int(self._last_outputs[self.event])

    def score_of(self, n: int) -> int:
        return self._scores[int(self._last_outputs[n]) + 128]

    def scores(self, x: ArrayLike) -> NDArray[np.float64]:
        """int8 input tensor to all outputs' scores in [0, 1], (classes,): host use."""
        return scores_of(self.outputs(x), self.output_scale, self.output_zero_point)

    def outputs(self, x: ArrayLike) -> NDArray[np.int8]:
        """int8 input tensor to all int8 outputs, (classes,). ValueError for a wrong size."""
        x = np.asarray(x)
        if x.dtype != np.int8 or x.size != self.input_size:
            raise ValueError("sample %s %s: the model takes int8 %s" % (x.dtype, x.shape, self.input_shape))
        if self._input_is_unsigned:
            x = (x.astype(np.int16) + 128).astype(np.uint8)
        self._interpreter.set_tensor(self._input, x.reshape(self.input_shape))
        self._interpreter.reset_all_variables()  # an LSTM begins anew, as the integer interpreter's does; others are kept
        self._interpreter.invoke()
        if self._features_index >= 0:
            self.arena = (self._interpreter.get_tensor(self._features_index).ravel().view(np.uint8) ^ 128).tolist()
        outputs: NDArray[np.int8] = self._interpreter.get_tensor(self._output).reshape(-1)
        return (outputs.astype(np.int16) - 128).astype(np.int8) if self._output_is_unsigned else outputs

    def level(self, q: int) -> int:
        return self._scores[q + 128]

    def score(self, q: int) -> float:
        """The score in [0, 1] that an int8 output stands for (host use: reports and traces)."""
        return float(scores_of(q, self.output_scale, self.output_zero_point))

# The integer LDL: runs a bundle (.h2m) that the host prepared from an int8 .tflite. It parses nothing but the bundle's own
# table; weights stay where the bundle is (flash, memoryview). Integers only.
from struct import unpack_from

from .ldl import Ldl
from .steps import HEADER_SIZE

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any, array

ENDS = "<fi"  # the header's last fields: scale and zero point of the input


class Int8Model(Ldl):
    """One int8 classifier from a bundle.

        model = Int8Model(open("ldl.h2m", "rb").read())
        score = model.level(model.run(x))  # 0..255

    Attributes:
        event: index of the event's class among the outputs; 0 where there is one output.
        checksum: of the bundle: a state belongs to one bundle.
        arena: bytearray of every tensor; its first `state_size` bytes hold the variables.
        steps: (kernel, p, k) of each operator; kernels.py explains p and k.
    """

    event: int  # bounds.read() sets these
    checksum: int
    input: int
    output: int
    table_at: int
    table: "Any"
    arena: bytearray
    features_at: int

    def __init__(self, blob: "Any", event: int = 1) -> None:
        """Open a bundle.

        Args:
            blob: bytes or a memoryview of a whole bundle, or an object that is sliced as one (streamed.FileBytes).
            event: index of class 1 in the output.

        Raises:
            ValueError: the bytes are no bundle, are damaged, or have a newer format.
        """
        from . import bounds  # here: a board forgets them when the model is open
        from .buffers import take

        if isinstance(blob, (bytes, bytearray)):
            blob = memoryview(blob)
        self.blob = blob
        self.steps: "list[tuple[Any, Any, Any]]" = []
        self.variables: "list[array[int]]" = []
        bounds.read(self, event, take)
        self.reset()

    def _add_step(self, step: "tuple[Any, Any, Any]", weights_size: int) -> None:
        """Append a step that reads weights_size bytes of the bundle at p[6]."""
        self.steps.append(step)

    def reset(self) -> None:
        """Set every variable to its initial value."""
        for p in self.variables:
            first = bytes(self.blob[p[6] : p[6] + p[7]])
            for at in range(p[1], p[1] + p[7] * p[8], p[7]):
                self.arena[at : at + p[7]] = first

    def input_quantisation(self) -> tuple[float, int]:
        scale, zero_point = unpack_from(ENDS, self.blob[HEADER_SIZE - 8 : HEADER_SIZE], 0)
        return scale, zero_point

    def run(self, x: "Any") -> int:
        """The event's int8 output, -128..127, of an int8 input (array or list of input_size numbers).

        x: None: of the input that load() has written and each run_step() has processed.
        """
        if x is not None:
            self.load(x)
            for n in range(len(self.steps)):
                self.run_step(n)
        return self.arena[self.output + self.event] - 128

    def load(self, x: "Any") -> None:
        """Write an int8 input into the arena."""
        if hasattr(x, "tolist"):  # NumPy's int8 cannot hold 128
            x = x.tolist()
        if len(x) != self.input_size:
            raise ValueError("sample of %d numbers: the model takes %d" % (len(x), self.input_size))
        arena = self.arena
        at = self.input
        for value in x:
            arena[at] = (value + 128) & 255
            at += 1

    def run_step(self, n: int) -> None:
        """Run step n alone on the content of the arena."""
        kernel, p, k = self.steps[n]
        kernel(self.arena, self.blob, p, k)

    def score_of(self, n: int) -> int:
        score: int = self.table[self.arena[self.output + n]]
        return score

    def level(self, q: int) -> int:
        score: int = self.table[q + 128]
        return score

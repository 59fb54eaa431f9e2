# One LDL interface, its back end chosen by what the model is: `run(x) -> q` (the event's int8 score), `bin(q) -> k`.
from .room import in_flash, release, reserve, take


class CallableModel:
    """A function as LDL: what a board's own TFLite module, or any other classifier, is wrapped in.

    score: called with a sample, returns the event's score as an int8 q, -128..127, standing for (q + 128) / 256.
    """

    def __init__(self, score, bits=4):
        if not 1 <= bits <= 8:
            raise ValueError("bits %r is not in 1..8" % bits)
        self.score = score
        self.bits = bits

    def run(self, x) -> int:
        """The int8 score of a sample; ValueError where the function gives anything else."""
        q = self.score(x)
        if not isinstance(q, int) or not -128 <= q <= 127:
            raise ValueError("the LDL's function gave %r, want an integer in -128..127" % (q,))
        return q

    def bin(self, q: int) -> int:
        """The score bin, 0..2^bits - 1."""
        return q + 128 >> 8 - self.bits


def open_ldl(model, event: int = 1, bits: int = 4, resolver: str = "reference", stream: bool = False):
    """An LDL from a .tflite (by LiteRT or tflite-runtime; resolver: its kernels), a .h2m bundle (integer interpreter) or a
    callable.

    stream: a bundle's weights are read from its file, a layer at a time, at every inference: less RAM, and slower. One that
    lies in flash anyway (ROMFS) is used from there.

    Raises ValueError, naming the file, for a model that cannot be used; OSError where it cannot be read.
    """
    if callable(model):
        return CallableModel(model, bits)
    model = str(model)
    if model.endswith(".h2m"):
        file = open(model, "rb")
        try:
            return _bundle(file, event, bits, stream)
        except ValueError as error:
            raise ValueError("%s: %s" % (model, error)) from None
        finally:
            release()
    if model.endswith(".tflite"):
        from ..cpython.tflite import TFLiteModel

        return TFLiteModel(model, event, resolver, bits)
    raise ValueError("%s: want a .tflite, a .h2m bundle or a function" % model)


def _bundle(file, event, bits, stream):
    reserve(file, stream)  # before the modules that it needs
    if in_flash(file):
        content = memoryview(file)
    elif stream:
        from .streamed import Streamed

        return Streamed(file, event, bits)
    else:
        content = memoryview(take(file.seek(0, 2)))  # at once: read() would take up to twice as much on its way
        file.seek(0)
        file.readinto(content)
    file.close()
    from .bundle import Int8Model

    return Int8Model(content, event, bits)

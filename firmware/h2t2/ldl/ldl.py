# The interface of every local model (LDL): what a node asks of it. All of ours derive from it; one of your own does too.

if 0:  # for type checkers: MicroPython compiles nothing here
    from typing import Any


class Ldl:
    """A classifier on the device: sample to score, score to one of 2^bits bins.

    A model of your own overrides run() at least; its int8 score q, -128..127, stands for (q + 128) / 256.

    Attributes:
        bits: of a bin, 1..8.
        input_size: numbers in a sample; 0: any.
        classes: outputs of the model; a policy for more classes than two reads all of them (ClassScores).
        state_size: bytes that the model keeps from one sample to the next; 0: none.
        features: numbers for a head that it gives beside the scores (HeadSample); 0: none.
        arena, features_at: of a model with features: where they are after run(), each in 1/32 and 128 higher.
        checksum: CRC-32 of a model with features: a head belongs to one model.
    """

    classes = 1
    input_size = state_size = features = 0

    def __init__(self, bits: int = 4) -> None:
        if not 1 <= bits <= 8:
            raise ValueError("bits %r is not in 1..8" % bits)
        self.bits = bits

    def run(self, x: "Any") -> "Any":
        """The event's score of a sample (int8 numbers), for bin(). ValueError for a sample that the model cannot take."""
        raise NotImplementedError

    def bin(self, q: "Any") -> "Any":
        """The bin of a score, 0..2^bits - 1. ValueError for a score that is no int8."""
        if not isinstance(q, int) or not -128 <= q <= 127:
            raise ValueError("score %r is no integer in -128..127" % (q,))
        return q + 128 >> 8 - self.bits

    def level(self, q: "Any") -> int:
        """The score that run() returned, in 256ths, 0..255; of a ClassScores the largest score."""
        return q + 128  # type: ignore[no-any-return]

    def score_of(self, n: int) -> int:
        """The score of output n in the last run, in 256ths, 0..255."""
        raise NotImplementedError

    def input_quantisation(self) -> tuple[float, int]:
        """(scale, zero point) of the input: q = round(real / scale) + zero point. The scale is a float: for hosts."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget every sample so far."""

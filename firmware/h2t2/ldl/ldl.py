# The interface of every local model (LDL): what a node asks of it. All of ours derive from it; one of your own does too.
# A model knows nothing of bins: only the policy does.

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any


class Ldl:
    """A classifier on the device: sample to score.

    A model of your own overrides run() at least; its int8 score q, -128..127, stands for (q + 128) / 256.

    >>> class Brightness(Ldl):
    ...     def run(self, x):
    ...         return sum(x) // len(x)
    >>> model = Brightness()
    >>> model.level(model.run([20, 40]))  # of 256
    158

    Attributes:
        input_size: numbers in a sample; 0: any.
        classes: outputs of the model; a policy for more classes than two reads all of them (ClassScores).
        state_size: bytes that the model keeps from one sample to the next; 0: none.
        features: numbers for a head that it gives beside the scores (HeadSample); 0: none.
        arena, features_at: of a model with features: where they are after run(), each in 1/32 and 128 higher.
        checksum: CRC-32 of a model with features: a head belongs to one model.
    """

    classes = 1
    input_size = state_size = features = 0

    def __init__(self, bits: int = 0) -> None:
        """bits: ignored; in 1.0 a model cut its scores by itself."""

    if 0:  # what each local model defines; boards have no room for these stubs

        def run(self, x: "Any") -> "Any":
            """The event's score of a sample (int8 numbers). ValueError for a sample that the model cannot take."""
            raise NotImplementedError

        def input_quantisation(self) -> tuple[float, int]:
            """(scale, zero point) of the input: q = round(real / scale) + zero point. The scale is a float: for hosts."""
            raise NotImplementedError

        def score_of(self, n: int) -> int:
            """The score of output n in the last run, in 256ths, 0..255."""
            raise NotImplementedError

    def level(self, q: "Any") -> int:
        """The score that run() returned, in 256ths, 0..255; of a ClassScores the largest. ValueError for what is no score."""
        if not isinstance(q, int) or not -128 <= q <= 127:
            raise ValueError("score %r is no integer in -128..127" % (q,))
        return q + 128

    def reset(self) -> None:
        """Forget every sample so far."""

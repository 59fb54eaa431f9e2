# From measurements to the int8 input of a model. Integers give the same integers on every interpreter; floats are rounded by
# the machine's arithmetic and may differ by one halfway between two integers.
from array import array

if 0:  # for type checkers
    from ..annotations import Any, Sequence

BEYOND = 25  # steps outside int8, a tenth of its range: the calibration cannot have seen such a number


class Measured:
    """A call with the numbers of a sample returns the int8 input of a model.

    >>> Measured(None, multipliers=[1, 3], offsets=[0, 4], shifts=[0, 1])([7, 10])
    array('b', [7, 17])

    Args:
        columns: Indices of the numbers that the model reads; None: all.
        multipliers, offsets, shifts: Integers for each of these numbers: the input is (x * multiplier + offset) / 2^shift,
            rounded to nearest, halves up. units.measured() makes them.
        missing: For each of these numbers what stands for it where it is missing (None, NaN), or None; None: it is refused.
        equal: For each the category of which it becomes 1, and 0 otherwise, or None where it stays; None: all stay.
        beyond: For each how many steps outside int8 it may lie, where calibration samples did; None: BEYOND for all.

    Attributes:
        saturated: Counter of samples with a number far outside int8.
    """

    def __init__(
        self,
        columns: "Sequence[int] | None",
        multipliers: "Sequence[int]",
        offsets: "Sequence[int]",
        shifts: "Sequence[int]",
        missing: "Sequence[float | None] | None" = None,
        equal: "Sequence[float | None] | None" = None,
        beyond: "Sequence[int] | None" = None,
    ):
        self.columns = columns
        self.multipliers = multipliers
        self.offsets = offsets
        self.shifts = shifts
        self.missing = missing
        self.equal = equal
        self.beyond = beyond
        self.saturated = 0

    def select(self, values: "Any") -> "Any":
        """Return the numbers that the model reads. ValueError for a wrong number of them."""
        if hasattr(values, "ravel"):  # NumPy's
            values = values.ravel().tolist()
        size = len(self.multipliers)
        columns = self.columns
        if len(values) != size if columns is None else len(values) <= max(columns):
            raise ValueError("a sample of %d numbers; the model reads %d" % (len(values), size))
        return values if columns is None else [values[n] for n in columns]

    def refusal(self, n: int, x: "Any") -> ValueError:
        """Return the exception for a number that the model cannot take; n: its place among those that select() returns."""
        reason = "missing" if x is None or x != x else "not finite" if isinstance(x, float) else "no number"
        return ValueError("number %d of a sample is %s" % (n if self.columns is None else self.columns[n], reason))

    def __call__(self, values: "Any") -> "array[int]":
        """Return the input. ValueError for a wrong number of numbers, and for one that is missing, no number or not finite."""
        values = self.select(values)
        size = len(self.multipliers)
        inputs = array("b", bytes(size))
        far = False
        for n in range(size):
            x = values[n]
            shift = self.shifts[n]
            if (x is None or x != x) and self.missing and self.missing[n] is not None:
                x = self.missing[n]
            if self.equal and self.equal[n] is not None:
                x = int(x == self.equal[n])
            if isinstance(x, int):
                q = (x * self.multipliers[n] + self.offsets[n] + (1 << shift >> 1)) >> shift
            else:
                try:
                    x = (x * self.multipliers[n] + self.offsets[n]) / (1 << shift) + 0.5
                    if x - x != 0:
                        raise TypeError
                except TypeError:
                    raise self.refusal(n, values[n]) from None
                x = min(max(x, -1e9), 1e9)
                q = int(x)
                if q > x:
                    q -= 1
            if q < -128 or q > 127:
                beyond = self.beyond[n] if self.beyond else BEYOND
                far = far or not -128 - beyond <= q <= 127 + beyond
                q = -128 if q < 0 else 127
            inputs[n] = q
        self.saturated += far
        return inputs

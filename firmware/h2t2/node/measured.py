# From what a sensor measured to a model's int8 input. Integers give the same integers on every interpreter; floats are rounded
# as the machine's own floats are, which may differ by one where they lie between two.
from array import array

BEYOND = 25  # steps outside int8, a tenth of its range: more than what a model was calibrated with can explain


class Measured:
    """Calling it with the numbers of a sample gives a model's int8 input, an array.

    columns: which of the numbers the model reads, None: all. multipliers, offsets, shifts: integers, one of each a number it
    reads: (x * multiplier + offset) / 2^shift to nearest, halves up. h2t2_tools.fleet.app makes them.
    Counter: `saturated`, samples with a number far outside what int8 holds.
    """

    def __init__(self, columns, multipliers, offsets, shifts):
        self.columns = columns
        self.exact = columns is None  # then a sample must have as many numbers
        self.multipliers = multipliers
        self.offsets = offsets
        self.shifts = shifts
        self.saturated = 0

    def picked(self, values):
        """The numbers that the model reads, as they were measured. ValueError for too few of them."""
        if hasattr(values, "ravel"):  # NumPy's
            values = values.ravel().tolist()
        size = len(self.multipliers)
        if len(values) != size if self.exact else len(values) <= max(self.columns):
            raise ValueError("a sample of %d numbers; the model reads %d" % (len(values), size))
        return values if self.exact else [values[n] for n in self.columns]

    def __call__(self, values):
        """ValueError for too few numbers, and for one that is not finite."""
        values = self.picked(values)
        size = len(self.multipliers)
        made = array("b", bytes(size))
        beyond = False
        for n in range(size):
            x = values[n]
            shift = self.shifts[n]
            if isinstance(x, int):
                q = (x * self.multipliers[n] + self.offsets[n] + (1 << shift >> 1)) >> shift
            else:
                x = (x * self.multipliers[n] + self.offsets[n]) / (1 << shift) + 0.5
                if x - x != 0:
                    raise ValueError("number %d of a sample is not finite" % n)
                x = min(max(x, -1e9), 1e9)
                q = int(x)
                if q > x:
                    q -= 1
            if q < -128 or q > 127:
                beyond = beyond or not -128 - BEYOND <= q <= 127 + BEYOND
                q = -128 if q < 0 else 127
            made[n] = q
        self.saturated += beyond
        return made

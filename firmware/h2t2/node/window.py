# Features of the last measurements of a sensor: the window itself, its mean, deviation, extremes and spectrum. Integers give
# integer features, the same on every interpreter; other numbers give the machine's floats. The same file makes the numbers that
# a model is trained on (`h2t2 pair --window`).

import math
from array import array

from .spectrum import SINE, measure, transform

if 0:  # for type checkers
    from ..annotations import Any, Callable, Sequence

FEATURES = ("values", "mean", "std", "min", "max", "fft")
LONGEST = 256  # of a spectrum
_isqrt: "Callable[[int], int] | None" = getattr(math, "isqrt", None)  # MicroPython has none


def _sine(step: int) -> int:
    """Return the sine of step / 256 of a turn, Q14."""
    step &= 255
    if step >= 128:
        return -_sine(step - 128)
    return SINE[step if step <= 64 else 128 - step]


def square_root(x: int) -> int:
    """Return the largest integer whose square is at most x >= 0, of any size; core/forecaster has one for small integers."""
    if _isqrt:
        return _isqrt(x)
    guess = 1
    while guess * guess <= x:
        guess *= 2
    step = guess // 2
    root = 0
    while step:
        if (root + step) * (root + step) <= x:
            root += step
        step //= 2
    return root


def spectrum(values: "Sequence[Any]") -> "list[Any]":
    """Return the magnitudes of the frequencies 1 to n / 2, each |X| / n, of n = 2, 4 ... 256 numbers.

    Integers within 16 bits give integers.

    A radix-2 transform, halved at every stage, so that integers stay below 2^31; spectrum.py has that of integers within 16
    bits.
    """
    n = len(values)
    exact = isinstance(sum(values), int)  # one other number makes another sum
    if exact and min(values) >= -32768 and max(values) <= 32767:
        parts = array("i", values), array("i", bytes(4 * n))
        transform(parts[0], parts[1], n)
        measure(parts[0], parts[1], n // 2 + 1)
        return list(parts[0][1 : n // 2 + 1])
    real = list(values)
    j = 0
    for i in range(1, n):  # put the numbers into bit-reversed order
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            real[i], real[j] = real[j], real[i]
    imaginary = [0] * n if exact else [0.0] * n  # type: list[Any]
    size = 2
    while size <= n:
        turn = LONGEST // size
        for k in range(size // 2):
            c = _sine(k * turn + 64)  # type: Any
            s = -_sine(k * turn)  # type: Any
            if not exact:
                c /= 16384
                s /= 16384
            for a in range(k, n, size):
                b = a + size // 2
                u = real[a]
                v = imaginary[a]
                x = real[b]
                y = imaginary[b]
                if exact:
                    z = x * c - y * s >> 14
                    y = x * s + y * c >> 14
                    real[a] = u + z >> 1
                    real[b] = u - z >> 1
                    imaginary[a] = v + y >> 1
                    imaginary[b] = v - y >> 1
                else:
                    z = x * c - y * s
                    y = x * s + y * c
                    real[a] = (u + z) / 2
                    real[b] = (u - z) / 2
                    imaginary[a] = (v + y) / 2
                    imaginary[b] = (v - y) / 2
        size *= 2
    powers = [real[k] * real[k] + imaginary[k] * imaginary[k] for k in range(1, n // 2 + 1)]
    return [square_root(p) if exact else p**0.5 for p in powers]


def features(values: "Sequence[Any]", names: "Sequence[str]") -> "list[Any]":
    """Return the features of a channel's window, in the order of `names` (of FEATURES)."""
    n = len(values)
    total = sum(values)
    exact = isinstance(total, int)
    numbers = []  # type: list[Any]
    for name in names:
        if name == "values":
            numbers += list(values)
        elif name == "mean":
            numbers.append((total + n // 2) // n if exact else total / n)
        elif name == "std":
            if exact:
                numbers.append(square_root((n * sum([x * x for x in values]) - total * total) // (n * n)))
            else:
                numbers.append((sum([(x - total / n) ** 2 for x in values]) / n) ** 0.5)
        elif name == "min":
            numbers.append(min(values))
        elif name == "max":
            numbers.append(max(values))
        else:
            numbers += spectrum(values)
    return numbers


class Window:
    """Keeps the last measurements, and computes the features of a full window.

    add() takes measurements, one or a block of them; take() then returns the features of each window that they complete, one
    after the other. The features do not depend on how the measurements are divided into blocks.

    >>> window = Window(size=2, hop=1, channels=1, features=["mean", "max"])
    >>> window.add([3, 5, 9])
    >>> window.take(), window.take(), window.take()
    ([4, 5], [7, 9], None)

    Args:
        size: Number of measurements.
        hop: Measurements from one sample to the next.
        channels: Numbers of a measurement.
        features: Names of FEATURES. The sample has those of one channel after the other.

    Attributes:
        gaps: Counter of windows that a gap has invalidated.

    Raises:
        ValueError: A name is unknown, or the size of a spectrum is no power of two up to 256.
    """

    def __init__(self, size: int, hop: int, channels: int, features: "Sequence[str]"):
        for name in features:
            if name not in FEATURES:
                raise ValueError("feature %r is not one of %s" % (name, ", ".join(FEATURES)))
        if size < 1 or hop < 1 or channels < 1:
            raise ValueError("a window of %d, every %d, of %d numbers: want 1 or more" % (size, hop, channels))
        if "fft" in features and (size & (size - 1) or not 2 <= size <= LONGEST):
            raise ValueError("a spectrum of %d measurements: want 2, 4, 8 ... %d" % (size, LONGEST))
        self.size = size
        self.hop = hop
        self.channels = channels
        self.features = features
        self.numbers = []  # type: list[Any]
        self.missing = size  # measurements until the next sample
        self.block = ()  # type: Any
        self.position = 0  # in the block, of the first number that is not in `numbers`
        self.gaps = 0

    def add(self, measured: "Any") -> None:
        """Take measurements. They must not change until take() has returned None.

        Args:
            measured: A number; or a sequence (list, tuple, array, bytes, NumPy array) of `channels` numbers, of several
                measurements after one another, or of rows of `channels` numbers.

        Raises:
            ValueError: A measurement has another length.
        """
        if hasattr(measured, "ravel"):  # NumPy's
            measured = measured.ravel().tolist()
        elif isinstance(measured, (int, float)):
            measured = (measured,)
        elif len(measured) and _is_row(measured[0]):
            for row in measured:
                if len(row) != self.channels:
                    raise ValueError("a measurement of %d numbers, want %d" % (len(row), self.channels))
            measured = [x for row in measured for x in row]
        if len(measured) % self.channels:
            raise ValueError("measurements of %d numbers in all, want %d each" % (len(measured), self.channels))
        self.block = measured
        self.position = 0

    def take(self) -> "list[Any] | None":
        """Return the features of the next full window, or None if the measurements do not complete another one."""
        channels = self.channels
        while True:
            block = self.block
            start = self.position
            count = (len(block) - start) // channels
            if not count:
                self.block = ()
                self.position = 0
                return None
            unused = self.missing - self.size  # between two windows
            count = min(count, unused if unused > 0 else self.missing)
            self.missing -= count
            self.position = start + count * channels
            if unused > 0:
                continue
            self.numbers.extend(block if count * channels == len(block) else block[start : self.position])
            if not self.missing:
                return self._complete()

    def _complete(self) -> "list[Any]":
        """Return the features of the full window, and keep what the next one shares with it."""
        self.missing = self.hop
        features_of_all = []  # type: list[Any]
        for channel in range(self.channels):
            values = self.numbers[channel :: self.channels] if self.channels > 1 else self.numbers
            features_of_all += features(values, self.features)
        if self.hop < self.size:
            del self.numbers[: self.hop * self.channels]
        else:
            self.numbers = []
        return features_of_all

    def restart(self) -> None:
        """Forget all measurements: one was missed, and the next window must not reach across the gap."""
        if self.numbers or len(self.block):
            self.gaps += 1
            self.numbers = []
            self.block = ()
            self.position = 0
        self.missing = self.size


def _is_row(x: "Any") -> bool:
    try:
        len(x)
    except TypeError:
        return False
    return True

# From a camera's picture to the numbers that a model reads: crop, grey, shrink. Integers only, the same on every interpreter.
# The same file makes the numbers that a model is trained on (`h2t2 pair --picture`).

if 0:  # for type checkers
    from ..annotations import Sequence

RED, GREEN, BLUE = 77, 150, 29  # brightness of each, of 256 (ITU-R BT.601)


class Picture:
    """A call with the bytes of a picture, row by row, channels last, returns its numbers in the same order, 0 to 255.

    >>> Picture(4, 2, 1, wide=2, high=1, square=False, grey=False)(bytes([0, 10, 20, 30, 0, 10, 20, 30]))
    [5, 25]

    Args:
        width, height, channels: Of the picture; 1 or 3 channels.
        wide, high: Of the result. Each number is the mean of the pixels that fall on it, halves rounded up.
        square: Whether only the largest square in the middle is used.
        grey: Whether three channels become one.

    Raises:
        ValueError: A size is impossible, or the number of bytes is wrong.
    """

    def __init__(self, width: int, height: int, channels: int, wide: int, high: int, square: bool, grey: bool):
        if channels not in (1, 3) or (grey and channels == 1):
            raise ValueError("a picture of %d channels: want 3, or 1 and not grey" % channels)
        self.size = width * height * channels
        self.row = width * channels
        self.channels = channels
        self.grey = grey
        side = min(width, height)
        self.margin = (width - side) // 2 if square else 0
        self.top = (height - side) // 2 if square else 0
        self.columns = _edges(side if square else width, wide)
        self.rows = _edges(side if square else height, high)

    def __call__(self, pixels: "Sequence[int]") -> "list[int]":
        if len(pixels) != self.size:
            raise ValueError("a picture of %d bytes, want %d" % (len(pixels), self.size))
        numbers = []  # type: list[int]
        channels = self.channels
        for n in range(len(self.rows) - 1):
            for m in range(len(self.columns) - 1):
                at = (self.top + self.rows[n]) * self.row + (self.margin + self.columns[m]) * channels
                high = self.rows[n + 1] - self.rows[n]
                wide = self.columns[m + 1] - self.columns[m]
                means = [self._mean(pixels, at + c, high, wide) for c in range(channels)]
                if self.grey:
                    numbers.append(RED * means[0] + GREEN * means[1] + BLUE * means[2] + 128 >> 8)
                else:
                    numbers += means
        return numbers

    def _mean(self, pixels: "Sequence[int]", at: int, high: int, wide: int) -> int:
        """Return the mean of a channel in a block of so many rows and columns."""
        total = 0
        for _ in range(high):
            for i in range(at, at + wide * self.channels, self.channels):
                total += pixels[i]
            at += self.row
        size = high * wide
        return (total + size // 2) // size


def _edges(size: int, parts: int) -> "list[int]":
    """Return where each of `parts` blocks of `size` pixels begins, and where the last one ends."""
    if not 1 <= parts <= size <= 4096:
        raise ValueError("%d pixels to %d: want 1 to as many as there are, at most 4096" % (size, parts))
    return [n * size // parts for n in range(parts + 1)]

# A picture as a camera gives it to the numbers that a model reads: the middle of it, grey, smaller. Integers only, the same on
# every interpreter. The same file makes the numbers that a model is trained on (`h2t2 pair --picture`).
RED, GREEN, BLUE = 77, 150, 29  # of 256: how bright each looks (ITU-R BT.601)


class Picture:
    """Calling it with a picture's bytes, row by row, channels last, gives its numbers in the same order, 0 to 255.

    width, height, channels (1 or 3): of the picture. wide, high: what becomes of it, each number the mean of the pixels that
    fall on it, halves up. square: only the largest square in its middle. grey: of three channels one.
    ValueError for sizes that cannot be, and for another number of bytes.
    """

    def __init__(self, width, height, channels, wide, high, square, grey):
        if channels not in (1, 3) or (grey and channels == 1):
            raise ValueError("a picture of %d channels: want 3, or 1 and not grey" % channels)
        self.size = width * height * channels
        self.row = width * channels
        self.channels = channels
        self.grey = grey
        side = min(width, height)
        self.left = (width - side) // 2 if square else 0
        self.top = (height - side) // 2 if square else 0
        self.columns = _edges(side if square else width, wide)
        self.rows = _edges(side if square else height, high)

    def __call__(self, pixels):
        if len(pixels) != self.size:
            raise ValueError("a picture of %d bytes, want %d" % (len(pixels), self.size))
        made = []
        channels = self.channels
        for n in range(len(self.rows) - 1):
            for m in range(len(self.columns) - 1):
                at = (self.top + self.rows[n]) * self.row + (self.left + self.columns[m]) * channels
                high = self.rows[n + 1] - self.rows[n]
                wide = self.columns[m + 1] - self.columns[m]
                seen = [self._mean(pixels, at + c, high, wide) for c in range(channels)]
                if self.grey:
                    made.append(RED * seen[0] + GREEN * seen[1] + BLUE * seen[2] + 128 >> 8)
                else:
                    made += seen
        return made

    def _mean(self, pixels, at, high, wide):
        """Of one channel in a block of so many rows and columns."""
        total = 0
        for _ in range(high):
            for i in range(at, at + wide * self.channels, self.channels):
                total += pixels[i]
            at += self.row
        size = high * wide
        return (total + size // 2) // size


def _edges(size, parts):
    """Where `parts` pieces of `size` pixels begin, and the last one ends."""
    if not 1 <= parts <= size <= 4096:
        raise ValueError("%d pixels to %d: want 1 to as many as there are, at most 4096" % (size, parts))
    return [n * size // parts for n in range(parts + 1)]

# The core's pseudo-random numbers: small-int safe, seeded, state readable. No policy lives here.


class Rng:
    """Wichmann and Hill's generator (Applied Statistics algorithm AS 183, 1982), period 6.95e12.

    Three multiplicative generators, (171, 30269), (172, 30307), (170, 30323), whose fractions are added modulo 1.
    Every product stays below 2^23, so a 31-bit small int holds it. State: `x`, `y`, `z`, each in 1..modulus-1.
    """

    def __init__(self, seed: int):
        """Mix the seed, 0..2^28 - 1, into three words, so that neighbouring seeds give unrelated streams."""
        if not 0 <= seed < 268435456:
            raise ValueError("seed %d is not in 0..268435455" % seed)
        self.x = 1 + seed % 30268
        self.y = 1 + seed // 30268 % 30306
        self.z = 1
        for _ in range(12):
            self.x = 171 * (self.x + self.z) % 30269 or 1
            self.y = 172 * (self.y + self.x) % 30307 or 1
            self.z = 170 * (self.z + self.y) % 30323 or 1

    def draw(self) -> int:
        """Return the next 15-bit draw, uniform on 0..32767."""
        self.x = x = 171 * self.x % 30269
        self.y = y = 172 * self.y % 30307
        self.z = z = 170 * self.z % 30323
        return ((x << 15) // 30269 + (y << 15) // 30307 + (z << 15) // 30323) & 32767

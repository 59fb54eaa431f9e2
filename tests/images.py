"""Folders of random pictures, for the tests of data sets and of the recipes that train on them."""

import numpy as np
from PIL import Image

RNG = np.random.default_rng(3)


def pictures(folder, names, count=4, size=20):
    """Write `count` random images into each named folder."""
    for name in names:
        (folder / name).mkdir(parents=True)
        for n in range(count):
            Image.fromarray(RNG.integers(0, 256, (size, size, 3), np.uint8)).save(folder / name / f"{n}.png")

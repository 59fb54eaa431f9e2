"""Samples on which the networks of export.py and public.py are trained, and on which tests judge them. No PyTorch."""

from pathlib import Path

import numpy as np

from h2t2_tools.common import toml_file

SHAPES = {
    **dict.fromkeys(("perceptron",), (12,)),
    **dict.fromkeys(("mobile", "squeeze", "normed_first", "grouped", "autoencoder", "group_norm", "activations"), (3, 12, 12)),
    **dict.fromkeys(("select", "lstm", "gru", "mixer", "attention"), (6, 20)),
}  # network -> the shape of a sample: numbers, a picture, or channels of a time series
PUBLIC = toml_file.read_entries(Path(__file__).parent / "public.toml")
FIT, TEST = 3, 2  # seeds of the samples that calibrate a network and that judge it
JITTER = 0.05  # of a number's deviation


def draw(name: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(x float32 (count, *shape), y of 0 and 1): of class 1, a pattern or a wave of any phase is added to the noise.

    Networks for tables get tumours instead, of any count.
    """
    rng = np.random.default_rng(seed)
    if name in PUBLIC:
        shape = tuple(PUBLIC[name]["shape"])
        if PUBLIC[name]["field"] == "tables":
            x, y, half = tumours()
            x = (x - x[:half].mean(0)) / x[:half].std(0)
            return (doubled(x, half), np.tile(y[half:], 2)) if seed == TEST else (x[:half], y[:half])
        place = sum(axis * 0.11 for axis in np.ogrid[tuple(map(slice, shape))] if axis.size > 6)
        pattern = np.cos(2 * np.pi * (place + rng.uniform(0, 1, (count, *[1] * len(shape)))))
        loudness = PUBLIC[name]["loudness"]
    else:
        shape = SHAPES[name]
        pattern = np.random.default_rng(len(shape)).standard_normal(shape)
        loudness = (12 / np.prod(shape)) ** 0.5 * 6
    y = rng.integers(0, 2, count)
    strength = y * rng.uniform(0.3, 1.0, count) * loudness
    x = rng.standard_normal((count, *shape)) + strength.reshape(-1, *[1] * len(shape)) * pattern
    return x.astype(np.float32), y


def tumours() -> tuple[np.ndarray, np.ndarray, int]:
    """(x, y, how many of them train) as make_trees.py has them."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))
    return x[order].astype(np.float32), y[order], len(x) * 2 // 3


def doubled(x: np.ndarray, half: int) -> np.ndarray:
    """The samples from `half` on, and a noisy copy of each."""
    copy = x[half:] + np.random.default_rng(2).normal(0, JITTER, x[half:].shape) * x.std(0)
    return np.concatenate([x[half:], copy]).astype(np.float32)

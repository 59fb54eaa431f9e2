"""A stream for tests of the Router: a local model that is often unsure, and a remote one that is right."""

import asyncio

import numpy as np

RNG = np.random.default_rng(5)
TRUE = RNG.integers(0, 2, 600)
SCORES = np.clip(0.5 + (TRUE - 0.5) * 0.5 + RNG.normal(0, 0.25, 600), 0, 1)
STREAM = np.stack([SCORES, TRUE], 1)
OPTIONS = {"beta": 0.2, "seed": 3}


def local(x):
    return x[:, 0]


def remote(x):
    return x[:, 1]


class Held:
    """An async remote model that answers once it is released."""

    def __init__(self):
        self.release = asyncio.Event()

    def model(self):
        """The function that a Router takes."""

        async def scores(x):
            await self.release.wait()
            return x[:, 1]

        return scores

    async def end(self, router):
        """Let it answer, and wait until the late answers have taught."""
        self.release.set()
        while router._late:
            await asyncio.sleep(0)

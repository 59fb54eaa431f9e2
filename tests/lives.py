"""Devices whose life of some hours is played into a history, with states as the real ones publish them."""

import json

import numpy as np
from states import Followed

from h2t2.core.numbers import ONE
from h2t2.link import wire
from h2t2_tools.fleet.dashboard.watcher import Watcher
from h2t2_tools.fleet.monitoring.watched_fleet import Fleet

BINS = 16
PRICES = {"beta": 0.2, "delta_fp": 0.7, "delta_fn": 1.0}


class Life:
    """A device with two classes. Its events and samples are those of a random stream.

    Args:
        sharpness: how well the score tells an event; 0: not at all.
        asks: the bins of the score in which it asks, the first and the one after the last.
        explores: share of the samples about which it asks whatever the score.
        chances: (BINS,), of an event in each bin; None: those of the sharpness.
    """

    def __init__(self, seed=1, sharpness=6.0, asks=(3, 12), explores=0.02, chances=None):
        self.rng = np.random.default_rng(seed)
        self.chances = chances
        self.sharpness, self.asks, self.explores = sharpness, asks, explores
        self.boot, self.uptime_s, self.package = 7, 0, 0
        self._start()

    def _start(self):
        self.lists = {key: np.zeros(BINS, int) for key in ("scores", "answered", "events", "local_cost")}
        self.samples = self.offloads = 0

    def restart(self, package=None):
        self.boot, self.uptime_s = self.boot + 1, 0
        self.package = self.package if package is None else package
        self._start()

    def work(self, samples, seconds=60):
        """Decide so many samples in so many seconds."""
        bins = self.rng.integers(0, BINS, samples)
        if self.chances is None:
            chance = 1 / (1 + np.exp(-self.sharpness * ((bins + 0.5) / BINS - 0.5) * 2))
        else:
            chance = np.array(self.chances)[bins]
        event = self.rng.random(samples) < chance
        asked = (bins >= self.asks[0]) & (bins < self.asks[1]) | (self.rng.random(samples) < self.explores)
        guess = (bins + 0.5) / BINS > 0.5
        cost = np.where(guess & ~event, PRICES["delta_fp"], np.where(~guess & event, PRICES["delta_fn"], 0))
        for key, chosen, weight in (
            ("scores", np.ones(samples, bool), None),
            ("answered", asked, None),
            ("events", asked & event, None),
            ("local_cost", asked, cost * 1000),
        ):
            weights = None if weight is None else weight[chosen]
            self.lists[key] += np.bincount(bins[chosen], weights, BINS).astype(int)
        self.samples, self.offloads, self.uptime_s = (
            self.samples + samples,
            self.offloads + int(asked.sum()),
            self.uptime_s + seconds,
        )

    def state(self, unix_s):
        """Its state as JSON."""
        entries = {key: [int(n) for n in counts] for key, counts in self.lists.items()}
        prices = {key: round(value * ONE) for key, value in PRICES.items()}
        content = {
            "samples": self.samples, "offloads": self.offloads, "replies": self.offloads, "boot": self.boot, "model": 3,
            "uptime_s": self.uptime_s, "time": int(unix_s), "policy": "adaptive", "link": "up", "last": [2, 1, 1],
            "paid": self.offloads * prices["beta"], "waits": [0, 5, 40, 90, 30, 8, 2, 0, 0, 0, 0, 0, 0],
            "update": {"counter": self.package, "tried": self.package, "trial": 0, "said": "kept: better" * (self.package > 0)},
            **prices, **entries,
        }  # fmt: skip
        return json.dumps(content)


class Past:
    """Writes a history as a dashboard would have done it."""

    def __init__(self, history, began):
        self.time = began
        self.fleet = Fleet(lambda: self.time)
        self.watcher = Watcher(Followed(self.fleet), history, lambda: self.time)

    def minute(self, seconds=60, **lives):
        """All devices publish a state, and a minute or so many seconds pass."""
        for name, life in lives.items():
            self.fleet.take(wire.topic(name, "state"), life.state(self.time).encode())
        self.watcher.tick()
        self.time += seconds

    def command(self, name, **content):
        self.fleet.take(wire.topic(name, "command"), json.dumps({**content, "id": "0"}).encode())

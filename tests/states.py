"""States of nodes as a broker delivers them."""

import json
from contextlib import nullcontext

from h2t2.link import wire

EPOCH = 1_800_000_000.0


class Clock:
    def __init__(self):
        self.time = EPOCH

    def __call__(self):
        return self.time


def state(**entries):
    """Return a node's state after 1000 samples."""
    usual = {
        "samples": 1000, "offloads": 200, "replies": 200, "late": 0, "fallbacks": 0, "unasked": 0, "unaffordable": 0,
        "crowded": 0, "saturated": 0, "link": "up", "namesakes": False, "boot": 7, "policy": "adaptive", "model": 3,
        "beta": 6554, "delta_fp": 22938, "delta_fn": 32768, "paid": 200 * 6554, "scores": [500, 100, 100, 300],
        "answered": [50, 99, 49, 2], "events": [0, 40, 30, 2], "local_cost": [0, 50000, 25000, 0], "last": [2, 1, 1],
        "time": int(EPOCH), "uptime_s": 100, "start": "",
    }  # fmt: skip
    return {**usual, **entries}


def say(fleet, name="kitchen", status=None, retained=False, **entries):
    """Let a device publish its status, or its state with a correct clock."""
    unix_s = int(fleet._clock())
    entries = {"time": unix_s, "uptime_s": 100 + unix_s - int(EPOCH), **entries}
    if status is not None:
        fleet.take(wire.topic(name, "status"), status, retained)
    else:
        fleet.take(wire.topic(name, "state"), json.dumps(state(**entries)).encode(), retained)


class Followed:
    """A follower of a fleet without a broker."""

    trouble = ""

    def __init__(self, fleet):
        self._fleet = fleet

    def fleet(self):
        return nullcontext(self._fleet)

    def close(self):
        pass

"""A daily limit for a model that costs money, over restarts and over the workers of one machine."""

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from ....common.fields import DAY_S
from ....common.untrusted import parse_json
from ...failures import Later


class Spending:
    """The spending of today, in a file beside the model's description, which its users lock. Without a limit: no file."""

    def __init__(
        self, path: Path, money: float | None = None, requests: int | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """money, requests: the limits of a day (UTC)."""
        self._path, self._money, self._requests, self._clock = path, money, requests, clock

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._money is not None or self._requests is not None

    def count_request(self) -> None:
        """Count a request before it is made. Later, until tomorrow, where a limit of today is reached."""
        self._change(1, 0.0)

    def add_cost(self, money: float) -> None:
        """Add the cost of a request."""
        self._change(0, money)

    def _change(self, requests: int, money: float) -> None:
        if not self.limited:
            return
        today, since_midnight_s = divmod(self._clock(), DAY_S)
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            day, request_count, cost = _read(file.read())
            left_s = DAY_S - since_midnight_s
            if day != today:
                request_count, cost = 0, 0.0
            if requests and self._requests is not None and request_count >= self._requests:
                raise Later(f"{self._path}: the {self._requests} requests of today are made", left_s, untaken=True)
            if requests and self._money is not None and cost >= self._money:
                raise Later(f"{self._path}: today's {self._money:g} are spent", left_s, untaken=True)
            file.seek(0)
            file.truncate()
            json.dump({"day": int(today), "requests": request_count + requests, "spent": cost + money}, file)


def _read(text: str) -> tuple[int, int, float]:
    """(day, requests, spent); of day -1 where the file is new or truncated."""
    try:
        content = parse_json(text)
        return int(content["day"]), int(content["requests"]), float(content["spent"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return -1, 0, 0.0

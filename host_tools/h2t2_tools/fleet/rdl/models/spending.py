"""What a model that costs money may cost a day, over restarts and over the workers of one machine."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from ....common.untrusted import parse_json


class Spending:
    """Kept in a file beside the model's description, which all that use it lock. Nothing is written without a limit."""

    def __init__(
        self, path: Path, money: float | None = None, requests: int | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """money, requests: most of a day (UTC)."""
        self._path, self._money, self._requests, self._clock = path, money, requests, clock

    def ask(self) -> None:
        """One more request is about to be made. ValueError where the day's are spent."""
        self._change(1, 0.0)

    def spent(self, money: float) -> None:
        """A request has cost that."""
        self._change(0, money)

    def _change(self, requests: int, money: float) -> None:
        if self._money is None and self._requests is None:
            return
        today = int(self._clock() // 86400)
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            day, asked, cost = _read(file.read())
            if day != today:
                asked, cost = 0, 0.0
            if requests and self._requests is not None and asked >= self._requests:
                raise ValueError(f"{self._path}: the {self._requests} requests of today are made")
            if requests and self._money is not None and cost >= self._money:
                raise ValueError(f"{self._path}: today's {self._money:g} are spent")
            file.seek(0)
            file.truncate()
            json.dump({"day": today, "requests": asked + requests, "spent": cost + money}, file)


def _read(text: str) -> tuple[int, int, float]:
    """(day, requests, spent); those of no day where the file says nothing that can be read: a new one, or one cut off."""
    try:
        told = parse_json(text)
        return int(told["day"]), int(told["requests"]), float(told["spent"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return -1, 0, 0.0

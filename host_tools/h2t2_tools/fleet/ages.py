"""Rows of a file keep their age where the clock is set: a Pi without a battery for its clock begins in the past."""

import logging
import time
from collections.abc import Callable

from ..common.durations import Clock

LOG = logging.getLogger(__name__)
STEP_S = 60.0  # by which a clock may differ from time lived without a step


class Ages:
    """Moves the times of a file's rows, Unix seconds, by each step of the clock. Only one process may write the file.

    Args:
        name: of the file, for the log.
        newest: The time of the newest row.
        shift: Adds seconds to the time of each row; all rows or, where it raises, none.
        lived: Seconds that never step.
    """

    def __init__(self, name: str, newest: Callable[[], float], shift: Callable[[float], None], lived: Clock = time.monotonic):
        self._name, self._newest, self._shift, self._lived = name, newest, shift, lived
        self._last_times: tuple[float, float] | None = None

    def follow(self, unix_s: float) -> None:
        """Take the time; call it before a row is written, and before one is judged by its age.

        Between two starts nobody knows how long it was: there only rows from the future move, to the past.
        """
        lived_s = self._lived()
        if self._last_times is None:
            step = min(0.0, unix_s - self._newest())
        else:
            step = unix_s - self._last_times[0] - (lived_s - self._last_times[1])
        if abs(step) > STEP_S:
            LOG.info("%s: the clock was set, by %.0f s; the rows keep their age", self._name, step)
            self._shift(step)
        self._last_times = unix_s, lived_s

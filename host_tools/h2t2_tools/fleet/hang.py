"""Restarts the process of a node whose program hangs during a trial, as a watchdog restarts a board."""

import os
import sys
import threading
import time
from collections.abc import Callable

from h2t2.node.update import Updates, patience

LOOK_S = 0.5  # between two looks
SPARE_S = 5.0  # beyond the patience of the node's own loop, which acts first


class HangGuard:
    """Guards the trial of a package until stop(): without feed() for too long the process executes its command line again.

    The runtime counts the starts of a trial and rolls back after three.

    Args:
        updates: the node's, or None.
        period_s: between two samples.
        say: is called with a line of text before a restart.
    """

    def __init__(self, updates: Updates | None, period_s: int, say: Callable[[str], None]) -> None:
        self._updates, self._say = updates, say
        self._fed = time.monotonic()
        self._stopped = threading.Event()
        if updates and updates.trying:
            self._seconds = patience(updates.record, period_s) + SPARE_S
            threading.Thread(target=self._watch, name="hang guard", daemon=True).start()

    def feed(self) -> None:
        """The node's loop runs."""
        self._fed = time.monotonic()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_S) and self._updates and self._updates.trying:
            quiet = time.monotonic() - self._fed
            if quiet > self._seconds:
                self._say(f"the program has not returned for {quiet:.0f} s: starting again")
                os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

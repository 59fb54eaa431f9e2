"""Runs a node in virtual time, so that hours of waiting take seconds. Its broker and workers are real.

`python -m h2t2_lab.chaos.virtual` runs the node of config.json in the current folder, as a board's main.py does.
"""

from __future__ import annotations

import os
import select
import sys
import time
from types import SimpleNamespace
from typing import Any

import h2t2.clock
from h2t2.clock import ticks_diff
from h2t2.link import mqtt
from h2t2.node import run, start
from h2t2.node.service import Service


class VirtualTime:
    """The runtime's clock after install().

    It skips every wait of the node, except while a broker or a worker must answer, because these live in true time.

    Attributes:
        running: The node's service, once it exists.
    """

    def __init__(self) -> None:
        self.running: Service | None = None
        self._ns = time.monotonic_ns()

    def install(self) -> None:
        h2t2.clock.monotonic_ns = lambda: self._ns
        mqtt.select = SimpleNamespace(**{**vars(select), "poll": lambda: _Poller(self)})  # type: ignore[assignment, attr-defined]
        mqtt.sleep = self._sleep  # type: ignore[assignment, attr-defined]

    def _sleep(self, seconds: float) -> None:
        self.wait(round(seconds * 1000))

    def wait(self, ms: int, poller: select.poll | None = None) -> list[Any]:
        """Return the events of a poller of sockets within `ms`."""
        if self._answer_is_due():
            began = time.monotonic_ns()
            events: list[Any] = []
            if poller:
                events = poller.poll(ms)
            else:
                time.sleep(ms / 1000)
            self._ns += time.monotonic_ns() - began
            return events
        events = poller.poll(0) if poller else []
        if not events:
            self._ns += ms * 1_000_000
        return events

    def _answer_is_due(self) -> bool:
        if self.running is None:
            return True
        link: Any = self.running.node.link
        if not link.is_connected() or not link.workers():
            return True
        return bool(self.running.node.in_flight) or ticks_diff(link.pinged_at, link.heard_at) > 0


class _Poller:
    """select.poll() in virtual time."""

    def __init__(self, clock: VirtualTime) -> None:
        self._clock, self._poller = clock, select.poll()

    def register(self, sock: Any, events: int) -> None:
        self._poller.register(sock, events)

    def poll(self, ms: int) -> list[Any]:
        return self._clock.wait(ms, self._poller)


def main() -> None:
    sys.path.insert(0, os.getcwd())  # of the app
    clock = VirtualTime()
    clock.install()
    assembled = start.service

    def service(*arguments: Any, **named: Any) -> Service:
        clock.running = None
        clock.running = running = assembled(*arguments, **named)
        return running

    start.service = service
    run.main()


if __name__ == "__main__":
    main()

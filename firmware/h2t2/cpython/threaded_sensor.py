# A sensor that waits for its measurement, read in a thread of its own, so that nothing else waits for it.
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from ..node.sensing import PARTIAL, PENDING

QUICK_S = 0.001  # a sensor that measures so fast needs no second call


class ThreadedSensor:
    """A sensor (see Sensing) that never blocks: the first call asks the thread for a sample, later ones return PENDING or it.

    The thread measures when it is asked and not before, so that a sample is as old as its measurement took. A call raises the
    exception that the sensor raised, StopIteration too.

        service = start.service(config, link, act, sensor=ThreadedSensor(measure))
    """

    def __init__(self, sensor: Callable[[], Any], scheduled: bool = False) -> None:
        """scheduled: every measurement has a slot of its own; otherwise those of one sample are read in a row."""
        self._sensor = sensor
        self._scheduled = scheduled
        self._request, self._reply = Event(), Event()
        self._sample: Any = None
        self._error: BaseException | None = None
        self._pending = False
        self._thread = Thread(target=self._run, name="sensor", daemon=True)

    def _run(self) -> None:
        while True:
            self._request.wait()
            self._request.clear()
            self._sample = self._error = None
            try:
                self._sample = self._sensor()
                while self._sample is PARTIAL and not self._scheduled:
                    self._sample = self._sensor()
            except BaseException as error:
                self._error = error
            self._reply.set()

    def __call__(self) -> Any:
        if self._thread.ident is None:  # it starts at the first call: what the sensor needs is there by then
            self._thread.start()
        if not self._pending:
            self._pending = True
            self._request.set()
        if not self._reply.wait(QUICK_S):
            return PENDING
        self._reply.clear()
        self._pending = False
        if self._error is not None:
            raise self._error
        return self._sample

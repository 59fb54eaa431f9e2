# A sensor that waits for its measurement, read in a thread of its own, so that nothing else waits for it.
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import Any


class ThreadedSensor:
    """A sensor (see Sensing) that never blocks: a call returns a sample that the thread has read, or None.

    The thread reads one sample ahead. A call raises the exception that the sensor raised, StopIteration too.
    """

    def __init__(self, sensor: Callable[[], Any]) -> None:
        self._sensor = sensor
        self._results: Queue[tuple[Any, BaseException | None]] = Queue(1)
        self._thread = Thread(target=self._run, name="sensor", daemon=True)

    def _run(self) -> None:
        while True:
            try:
                sample = self._sensor()
                if sample is not None:
                    self._results.put((sample, None))
            except BaseException as error:
                self._results.put((None, error))
                if isinstance(error, StopIteration):
                    return

    def __call__(self) -> Any:
        if self._thread.ident is None:  # it starts at the first call: what the sensor needs is there by then
            self._thread.start()
        try:
            sample, error = self._results.get_nowait()
        except Empty:
            return None
        if error is not None:
            raise error
        return sample

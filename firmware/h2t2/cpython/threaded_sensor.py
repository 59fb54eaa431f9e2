# A sensor that waits for its measurement, read in a thread of its own, so that nothing else waits for it. CPython only.
from queue import Empty, Queue
from threading import Thread


class ThreadedSensor:
    """A sensor (see Sensing) as one that never blocks: calling it gives a sample that has been read meanwhile, or None.

    What the sensor raises, StopIteration too, is raised here in its turn. It reads one sample ahead.
    """

    def __init__(self, sensor):
        self._sensor = sensor
        self._read: Queue = Queue(1)
        self._thread = Thread(target=self._run, name="sensor", daemon=True)

    def _run(self):
        while True:
            try:
                given = self._sensor()
                if given is not None:
                    self._read.put((given, None))
            except BaseException as error:
                self._read.put((None, error))
                if isinstance(error, StopIteration):
                    return

    def __call__(self):
        if self._thread.ident is None:  # from the first call on: what the sensor needs is there by then
            self._thread.start()
        try:
            given, error = self._read.get_nowait()
        except Empty:
            return None
        if error is not None:
            raise error
        return given

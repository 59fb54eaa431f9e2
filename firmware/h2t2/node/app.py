# A program of one's own around a node, app.py: what it measures, and what it does with a decision. The same file on a Pi and
# on a board; docs/your-sensor.md shows one.
from binascii import hexlify
from struct import pack

from ..clock import ticks_diff, ticks_ms
from ..link import wire
from .measured import Measured
from .service import SOURCES


class Decision:
    """label: the class, from 0. source: "local", "remote", or "fallback" where no answer came. score: the local model's of
    class 1, or, of more classes than two, the largest; the middle of its bin, -1 where that model failed. tag: what sense()
    gave. late: whether it came after the deadline."""

    def __init__(self, label, source, *, score, tag, late):
        self.label = label
        self.source = source
        self.score = score
        self.tag = tag
        self.late = late


class App:
    """program: a module with sense() and act(decision), and, where it wishes, setup(config) and remote(measured).

    sense() gives the numbers of one sample, or None for nothing now; StopIteration ends. Where the pair has a window, it gives
    one measurement, and the window's features are the sample; where it has a picture, a picture's bytes. remote() is given what
    sense() gave, of a window the features, and gives what an offload of the sample sends, numbers or bytes as they are; without
    it the remote model is sent the same sample. `patient = True` in it: samples can wait (a file) while an answer is on its
    way; else they are decided here meanwhile. config: as start takes it; its `measured` says how numbers become the models'
    int8. shown(n, k, decision, source): told of every decision too, after act().
    ValueError for a program or a configuration that lacks something.
    """

    def __init__(self, program, config, shown=None):
        for name in ("sense", "act"):
            if not hasattr(program, name):
                raise ValueError("app: it has no function %s()" % name)
        if not config.get("measured"):
            raise ValueError("app: the configuration does not say how numbers become int8: give `pair`")
        self.program = program
        self.patient = getattr(program, "patient", False)
        self.local = Measured(**config["measured"]["local"])
        self.remote = Measured(**config["measured"]["remote"])
        arguments = config["arguments"]
        self.steps = 2 << arguments["bits"]
        self.least = 1 / len(arguments["costs"]) if "costs" in arguments else 0  # the score at which bins begin
        self.window = None
        self.picture = None
        if config["measured"].get("window"):
            from .window import Window

            self.window = Window(**config["measured"]["window"])
        if config["measured"].get("picture"):
            from .picture import Picture

            self.picture = Picture(**config["measured"]["picture"])
        self.dtype = config.get("remote_dtype", wire.INT8)
        self.deadline_ms = config["deadline_ms"]
        self.shown = shown
        self.count = 0  # of samples
        self.digest = digest(getattr(program, "__file__", ""))
        if hasattr(program, "setup"):
            program.setup(config)

    def report(self) -> dict:
        """For the state."""
        return {"saturated": self.saturated(), "program": self.digest}

    def saturated(self) -> int:
        """Samples with a number far outside what the models were calibrated with."""
        return max(self.local.saturated, self.remote.saturated)

    def sense(self):
        """As Sensing's sensor."""
        measured = self.program.sense()
        if measured is None:
            return None
        taken = self.window(measured) if self.window else measured
        if taken is None:  # the window is not full yet
            return None
        numbers = self.picture(taken) if self.picture else taken
        local = self.local(numbers)
        sent = self.program.remote(taken) if hasattr(self.program, "remote") else numbers
        if not isinstance(sent, (bytes, bytearray, memoryview)):
            sent = self._encoded(sent)
        self.count += 1
        return local, sent, (self.count - 1, measured, ticks_ms())

    def _encoded(self, numbers):
        """Numbers as what an offload sends of them."""
        if self.dtype == wire.RAW:
            raise ValueError("remote() gives %s; want bytes, as remote_dtype is raw" % type(numbers).__name__)
        if self.dtype == wire.FLOAT32:
            picked = self.remote.picked(numbers)
            if not all([x - x == 0 for x in picked]):
                raise ValueError("a sample has a number that is not finite")
            return pack("<%df" % len(picked), *picked)
        made = self.remote(numbers)
        return bytes(made) if self.dtype == wire.INT8 else bytes([q + 128 for q in made])

    def act(self, tag, k, decision, source):
        """As Node's act."""
        n, measured, since = tag
        score = self.least + (1 - self.least) * (2 * k + 1) / self.steps if k >= 0 else -1
        late = ticks_diff(ticks_ms(), since) > self.deadline_ms
        try:
            self.program.act(Decision(decision, SOURCES[source], score=score, tag=measured, late=late))
        finally:
            if self.shown:
                self.shown(n, k, decision, source)


def digest(path: str) -> str:
    """The first 16 hexadecimal digits of a file's SHA-256; "" where the file is not there, or the board has no SHA-256."""
    try:
        from hashlib import sha256

        total = sha256()
        buffer = memoryview(bytearray(256))
        with open(path, "rb") as file:
            while True:
                n = file.readinto(buffer)
                if not n:
                    return hexlify(total.digest()[:8]).decode()
                total.update(buffer[:n])
    except (ImportError, OSError):
        return ""

# The user's program around a node, app.py: it measures and acts on decisions. The same file runs on a Pi and on a board;
# docs/your-sensor.md shows one.
from binascii import hexlify
from struct import pack

from ..clock import ticks_diff, ticks_ms
from ..link import wire
from .measured import Measured
from .remarks import GAPS, SATURATED
from .sensing import PARTIAL, PENDING
from .service import SOURCES

if 0:  # for type checkers
    from ..annotations import Any, Callable


class Decision:
    """What the program's act() receives.

    Attributes:
        label: The class, from 0.
        name: The name of the class, or its number as text.
        source: "local", "remote", or "fallback" if no answer came.
        score: The local model's score of class 1 (of more than two classes the largest score), 0..1; -1 if the model failed.
        tag: What sense() returned.
        late: Whether the decision came after the deadline.
        reason: Why there is no score, such as "number 3 of a sample is missing"; "" where there is one.
    """

    def __init__(self, label: int, name: str, *, source: str, score: float, tag: "Any", late: bool, reason: str):
        self.label = label
        self.name = name
        self.source = source
        self.score = score
        self.tag = tag
        self.late = late
        self.reason = reason


class App:
    """Connects the user's program with a node.

        def sense():  # app.py
            return sensor.temperature(), sensor.humidity()

        def act(decision):
            lamp.value(decision.label)

    The program is a module with sense() and act(decision), and perhaps setup(config) and remote(measured). sense() returns the
    numbers of a sample, or None for nothing now; StopIteration ends the node. If the pair has a window, sense() returns a
    measurement or a block of them, or "gap" if it missed some, and the window's features are the sample; if it has a picture,
    sense() returns a picture's bytes. remote()
    receives what sense() returned (of a window the features) and returns what an offload sends, numbers or bytes; without it an
    offload sends the same sample. With `patient = True` samples can wait (in a file) for an answer; otherwise the node decides
    them locally meanwhile.

    Args:
        program: The module.
        config: As of start.service(); its `measured` says how numbers become the int8 inputs of the models.
        observer: Called with number, bin, decision and source of each sample after act().

    Attributes:
        node: The Node that calls act().

    Raises:
        ValueError: The program or the configuration lacks something.
    """

    def __init__(
        self, program: "Any", config: "dict[str, Any]", observer: "Callable[[int, int, int, int], object] | None" = None
    ):
        for name in ("sense", "act"):
            if not hasattr(program, name):
                raise ValueError("app: it has no function %s()" % name)
        if not config.get("measured"):
            raise ValueError("app: the configuration does not say how numbers become int8: give `pair`")
        self.program = program
        self.patient = getattr(program, "patient", False)
        self.local = Measured(**config["measured"]["local"])
        self.remote = Measured(**config["measured"]["remote"])
        self.names = config.get("class_names")
        self.node = None  # type: Any
        self.windowed = self.picture = None
        if config["measured"].get("window"):
            from .window import Window
            from .windowed import WindowedSensor

            self.windowed = WindowedSensor(program, Window(**config["measured"]["window"]))
        if config["measured"].get("picture"):
            from .picture import Picture

            self.picture = Picture(**config["measured"]["picture"])
        self.dtype = config.get("remote_dtype", wire.INT8)
        self.deadline_ms = config["deadline_ms"]
        self.observer = observer
        self.count = 0  # of samples
        self.logged = 0, 0  # saturated() and gaps(), as far as they were logged
        self.digest = digest(getattr(program, "__file__", ""))
        if hasattr(program, "setup"):
            program.setup(config)

    def report(self) -> "dict[str, Any]":
        """Return entries for the state."""
        entries = {"saturated": self.saturated(), "program": self.digest}  # type: dict[str, Any]
        if self.windowed:
            entries["gaps"] = self.gaps()
        return entries

    def saturated(self) -> int:
        """Return the number of samples with a number far outside the calibration of a model."""
        return max(self.local.saturated, self.remote.saturated)

    def gaps(self) -> int:
        """Return the number of windows that missed measurements have invalidated."""
        return self.windowed.window.gaps if self.windowed else 0

    def log_measurements(self, remark: "Callable[[int, str], object]") -> None:
        """Log the 1st, 2nd, 4th, 8th ... sample with a number far outside the calibration, and gap."""
        counts = self.saturated(), self.gaps()
        for place, (n, number, unit) in enumerate(zip(counts, (SATURATED, GAPS), ("samples", "times"))):
            if n != self.logged[place] and not n & (n - 1):
                remark(number, "%d %s so far" % (n, unit))
        self.logged = counts

    def missed(self) -> None:
        """Restart the window, as scheduled measurements were skipped."""
        if self.windowed:
            self.windowed.missed()

    def sense(self) -> "Any":
        """Return a sample, PARTIAL, PENDING or None, as the sensor of Sensing.

        For numbers that a model cannot take, a sample has the exception that says why in place of the input or of the bytes.
        """
        windowed = self.windowed
        values = windowed() if windowed else self.program.sense()
        if values is None or values is PARTIAL or values is PENDING:
            return values
        measured = windowed.measured if windowed else values
        remote = b""  # type: Any
        try:
            if isinstance(values, Exception):
                raise values
            numbers = self.picture(values) if self.picture else values
            local = self.local(numbers)  # type: Any
        except Exception as error:
            local = error
        else:
            try:
                remote = self._encode(self.program.remote(values) if hasattr(self.program, "remote") else numbers)
            except Exception as error:
                remote = error
        self.count += 1
        return local, remote, (self.count - 1, measured, ticks_ms())

    def _encode(self, numbers: "Any") -> "bytes | bytearray | memoryview":
        """Return the bytes that an offload sends for numbers, or for bytes."""
        if isinstance(numbers, (bytes, bytearray, memoryview)):
            return numbers
        if self.dtype == wire.RAW:
            raise ValueError("remote() gives %s; want bytes, as remote_dtype is raw" % type(numbers).__name__)
        if self.dtype == wire.FLOAT32:
            selected = [float("nan") if x is None else x for x in self.remote.select(numbers)]
            for n in range(len(selected)):
                x = selected[n]
                if isinstance(x, str) or (x - x != 0 and not (x != x and self.local.missing)):
                    raise self.remote.refusal(n, x)
            return pack("<%df" % len(selected), *selected)
        quantised = self.remote(numbers)
        return bytes(quantised) if self.dtype == wire.INT8 else bytes([q + 128 for q in quantised])

    def act(self, tag: "tuple[int, Any, int]", k: int, decision: int, source: int) -> None:
        """Call the program's act(), as the `act` of Node."""
        n, measured, since = tag
        score = self.node.level / 256 if k >= 0 else -1
        late = ticks_diff(ticks_ms(), since) > self.deadline_ms
        try:
            name = self.names[decision] if self.names else str(decision)
            reason = "" if k >= 0 else self.node.reason
            self.program.act(
                Decision(decision, name, source=SOURCES[source], score=score, tag=measured, late=late, reason=reason)
            )
        finally:
            if self.observer:
                self.observer(n, k, decision, source)


def digest(path: str) -> str:
    """Return the first 16 hexadecimal digits of a file's SHA-256; "" without the file, or on a board without SHA-256."""
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

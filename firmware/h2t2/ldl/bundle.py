# The integer LDL: runs a bundle (.h2m) that the host prepared from an int8 .tflite. Nothing is parsed but the bundle's own
# table; weights stay where the bundle is (flash, memoryview). Integers only.
from array import array
from binascii import crc32
from struct import unpack_from

from .room import ARENA_MAX, HEADER_SIZE, STEP, STEP_SIZE, take
from .steps import VARIABLE, function, in_machine_code, name_of

MAGIC = b"H2M1"
VERSION = 3
HEADER = (
    "<4sHHIIIIIIII"  # magic, version, steps, bytes, CRC-32 of what follows it; arena, input, its size, output, its size; scores
)
ENDS = "<fi"  # after it: scale and zero point of the input
CHECKED = 16  # where the checksum's bytes begin
PIECE = 1024  # bytes that are checked at once


class Int8Model:
    """One int8 classifier from a bundle. `run` gives the int8 output of the event's class, `bin` turns it into a bin.

    blob: bytes or a memoryview of a whole bundle, or what is sliced as one (streamed.FileBytes); event: index of class 1 in the
    output (of one output: 0).
    Raises ValueError for bytes that are no bundle, a damaged one, or one of a newer format.
    """

    def __init__(self, blob, event=1, bits=4):
        from . import bounds  # here: a board forgets it when the model is open

        if isinstance(blob, (bytes, bytearray)):
            blob = memoryview(blob)
        if len(blob) < HEADER_SIZE or bytes(blob[:4]) != MAGIC:
            raise ValueError("bundle: these bytes are not one")
        head = unpack_from(HEADER, blob[:HEADER_SIZE], 0)
        if head[1] != VERSION:
            raise ValueError("bundle: format %d, this runtime reads %d: make it again, h2t2 bundle" % (head[1], VERSION))
        if head[3] != len(blob):
            raise ValueError("bundle: %d bytes, want %d (truncated?)" % (len(blob), head[3]))
        crc = 0
        for at in range(CHECKED, len(blob), PIECE):
            crc = crc32(blob[at : at + PIECE], crc)
        if crc & 0xFFFFFFFF != head[4]:
            raise ValueError("bundle: the checksum does not match")
        if not 1 <= bits <= 8:
            raise ValueError("bits %r is not in 1..8" % bits)
        self.blob = blob
        self.checksum = head[4]
        if head[5] > ARENA_MAX:
            raise ValueError("bundle: an arena of %d bytes" % head[5])
        self.input, self.input_size, self.output, self.classes, self.table_at = head[6:]
        self.event = 0 if self.classes == 1 else event
        if not 0 <= self.event < self.classes:
            raise ValueError("bundle: no class %d among %d outputs" % (event, self.classes))
        bounds.inside(self.input, self.input_size, head[5])
        bounds.inside(self.output, self.classes, head[5])
        bounds.inside(self.table_at, 256, len(blob))
        self.table = blob[self.table_at : self.table_at + 256]
        self.arena = take(head[5])
        self.bits = bits
        self.steps = []
        self.states = []
        self.state_size = 0  # the arena's first bytes, which hold every variable
        at = HEADER_SIZE
        total = 0
        for _ in range(head[2]):
            bounds.inside(at, STEP_SIZE, len(blob))
            code, count, bias, limbs, shifts, channels = unpack_from(STEP, blob[at : at + STEP_SIZE], 0)
            at += STEP_SIZE
            step = None if code == VARIABLE else function(code)
            name = name_of(code)
            bounds.inside(at, 4 * count, len(blob))
            if bias:
                bounds.inside(bias, 4 * channels, len(blob))
            bounds.inside(limbs, shifts - limbs, len(blob))
            p = array("i", bytes(blob[at : at + 4 * count]))
            at += 4 * count
            n = (shifts - limbs) // 6 if limbs else 0
            size = bounds.check(name, p, channels if bias else 0, n, head[5], blob)
            k = None  # type: tuple | None
            if limbs:
                bounds.inside(shifts, 2 * n, len(blob))
                biases, multipliers = (blob[bias : bias + 4 * channels] if bias else None), blob[limbs : limbs + 6 * n]
                if not in_machine_code(code):
                    biases, multipliers = (array("i", bytes(biases)) if biases else None), array("H", bytes(multipliers))
                k = (biases, multipliers, blob[shifts : shifts + 2 * n])
            total += bounds.work(name, p)
            bounds.bounded(total, len(blob))
            if step:
                self._keep(p, size)
                self.steps.append((step, p, k))
            else:
                self.states.append(p)
                self.state_size = max(self.state_size, p[1] + p[7] * p[8])
        self.reset()

    def _keep(self, p, size):
        """Told, of every step, how many bytes at p[6] of the bundle it reads."""

    def reset(self) -> None:
        """Every variable as the model begins it: what came before is forgotten. Of a model without state, nothing."""
        for p in self.states:
            first = bytes(self.blob[p[6] : p[6] + p[7]])
            for at in range(p[1], p[1] + p[7] * p[8], p[7]):
                self.arena[at : at + p[7]] = first

    def state(self) -> bytes:
        """What its variables hold, of state_size bytes: restore() on the same bundle goes on from there."""
        return bytes(memoryview(self.arena)[: self.state_size])

    def restore(self, state) -> None:
        """Put back what state() gave; ValueError for bytes of another size."""
        if len(state) != self.state_size:
            raise ValueError("state of %d bytes: this bundle has %d" % (len(state), self.state_size))
        self.arena[: self.state_size] = bytes(state)

    def input_quantisation(self) -> tuple:
        """(scale, zero point) of the input: q = round(real / scale) + zero point. A float: for hosts."""
        return unpack_from(ENDS, self.blob[HEADER_SIZE - 8 : HEADER_SIZE], 0)

    def run(self, x) -> int:
        """int8 input tensor (array or list of the input's size, signed) to the event's int8 output, -128..127."""
        if hasattr(x, "tolist"):  # NumPy's int8 cannot hold 128
            x = x.tolist()
        if len(x) != self.input_size:
            raise ValueError("sample of %d numbers: the model takes %d" % (len(x), self.input_size))
        arena = self.arena
        at = self.input
        for value in x:
            arena[at] = (value + 128) & 255
            at += 1
        self._infer()
        return arena[self.output + self.event] - 128

    def _infer(self):
        """Every step, on what is in the arena."""
        for step, p, k in self.steps:
            step(self.arena, self.blob, p, k)

    def score_of(self, n: int) -> int:
        """The score of output n in the last run, in 256ths, 0..255."""
        return self.table[self.arena[self.output + n]]

    def bin(self, q: int) -> int:
        """The score bin, 0..2^bits - 1, of an int8 output."""
        return self.table[q + 128] >> 8 - self.bits

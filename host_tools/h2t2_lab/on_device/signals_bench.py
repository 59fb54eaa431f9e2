# How fast a node takes measurements, windows of them and their spectrum. Before it stand FOLDER, beside which lies ldl.h2m;
# CONFIG, a node's configuration; BLOCK, measurements of a call of sense(); WINDOWS, samples to measure.
# T(): the ticks of a clock that may wrap at 2^30. Prints "ticks CRC-32-of-the-scores". Without a `time` module the loop around
# the node is left out.
import gc
import sys
from array import array
from binascii import crc32

from h2t2.core import policies
from h2t2.core.numbers import Rng
from h2t2.ldl.open import open_ldl
from h2t2.node import window
from h2t2.node.measured import Measured

try:
    import time
except ImportError:
    time = None

SIZE = CONFIG["measured"]["window"]["size"]  # noqa: F821


class Program:
    """An app whose measurements are there already, as those of a DMA buffer; four windows, again and again."""

    def __init__(self, block):
        rng = Rng(3)
        numbers = array("h", [(rng.draw() - 16384) // (1 + n // SIZE % 4) for n in range(4 * SIZE)])
        self.blocks = numbers if block == 1 else [numbers[n : n + block] for n in range(0, len(numbers), block)]
        self.position = self.crc = 0

    def sense(self):
        measured = self.blocks[self.position]
        self.position = (self.position + 1) % len(self.blocks)
        return measured

    def act(self, decision):
        self.note(int(decision.score * 256))

    def note(self, level):
        self.crc = crc32(bytes([level & 255]), self.crc)


def whole_node(program):
    """Return run(samples) of a node whose broker is away."""
    from h2t2.link.link import Link
    from h2t2.node import start

    class Away(Link):
        def is_connected(self):
            return False

        def send(self, payload):
            return False

        def receive(self, wait_ms):
            return None

    sys.modules["program"] = program
    service = start.service(CONFIG, Away(1), lambda *decision: None, log=lambda line: None)  # noqa: F821

    def run(count):
        service.run(count)
        if service.node.complain.total or service.errors:
            raise RuntimeError(str(service.node.complain.counts))

    return run


def parts(program):
    """Return run(samples) of what a sample goes through: window, input, model, policy."""
    samples = window.Window(**CONFIG["measured"]["window"])  # noqa: F821
    local = Measured(**CONFIG["measured"]["local"])  # noqa: F821
    policy = policies.make(CONFIG["policy"], CONFIG["arguments"])  # noqa: F821
    ldl = open_ldl(CONFIG["ldl"], CONFIG["event"])  # noqa: F821

    def run(count):
        while count:
            samples.add(program.sense())
            values = samples.take()
            if values:
                q = ldl.run(local(values))
                level = ldl.level(q)
                policy.decide(policy.reading(q, level))
                program.note(level)
                count -= 1

    return run


CONFIG["ldl"] = FOLDER + "ldl.h2m"  # noqa: F821
CONFIG["snapshot"] = ""  # noqa: F821  no time of the disk
CONFIG["app"] = "program"  # noqa: F821
program = Program(BLOCK)  # noqa: F821
run = (whole_node if time else parts)(program)
run(4)  # loads code; the numbers then begin anew, and give the same scores
crc = program.crc
gc.collect()
ticks = 0
count = WINDOWS if time else 1  # noqa: F821  a clock of instructions wraps soon
for _ in range(WINDOWS // count):  # noqa: F821
    start = T()  # noqa: F821
    run(count)
    ticks += T() - start & 0x3FFFFFFF  # noqa: F821
print(ticks, crc)

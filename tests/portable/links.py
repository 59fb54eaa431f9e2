# A node with a link of firmware/examples/links and the other end, in one process: it prints what became of SAMPLES samples.
# LINK ("espnow" or "uart"), FAULTS (lost, overtaken, of 100) and FOLDER come before. Beside it: the links, and espnow.py of
# tests/ports as fake_espnow.py.
import io
import json
import sys

sys.path.insert(0, FOLDER or "/")  # noqa: F821

from answering import Remote

from h2t2 import Adaptive, Node
from h2t2.ldl.ldl import Ldl
from h2t2.link import frames
from h2t2.link.datagrams import VIA, Datagrams
from h2t2.link.serial import SerialLink

SAMPLES, REMOTE = 40, 700
DEADLINE_MS = 800 if any(FAULTS) else 9000  # noqa: F821  what is lost costs it; a Pico takes 100 ms for a frame at each end
NODE, GATEWAY, STRANGER = b"\x24\x0a\xc4\x00\x00\x01", b"\x24\x0a\xc4\x00\x00\x02", b"\x24\x0a\xc4\x00\x00\x03"


class Middle(Ldl):
    """A local model that knows nothing."""

    input_size = 1

    def run(self, x):
        return x

    def level(self, output):
        return 128


class Wire(io.IOBase):
    """One end of a line in memory, with what machine.UART and link/stdio.py have."""

    def __init__(self):
        self.other, self.arrived = self, b""

    def write(self, data):
        self.other.arrived += bytes(data)
        return len(data)

    def read(self):
        data, self.arrived = self.arrived, b""
        return data or None

    def ioctl(self, request, argument):
        return argument & 1 if request == 3 and self.arrived else 0


def wires():
    one, other = Wire(), Wire()
    one.other, other.other = other, one
    return one, other


class Host(Datagrams):
    """What `h2t2 gateway` does on the line of a gateway board, for one board."""

    def __init__(self, line, link):
        Datagrams.__init__(self)
        self.line, self.link = line, link
        self.outer, self.decoder = frames.Decoder(), frames.Decoder()

    def send(self, datagram):
        frames.send(self.line, VIA, NODE, datagram)

    def turn(self):
        for kind, payload in self.outer.feed(self.line.read() or b""):
            assert kind == VIA
            if payload[:6] == NODE:
                for inner, content in self.decoder.feed(self.join(payload[6:])):
                    if inner == frames.REQUEST:
                        self.link.send(content)
                    elif inner == frames.STATE:
                        self.link.report(content.decode())
        reply = self.link.receive(0)
        if reply:
            frames.send(self, frames.REPLY, reply)


def by_espnow(remote):
    """(line, turn of the other end)"""
    import fake_espnow

    air = fake_espnow.Here()
    fake_espnow.install(NODE, air, fake_espnow.Faults(*FAULTS, seed=1))  # noqa: F821
    import espnow_gateway
    import espnow_line

    stranger = fake_espnow.Radio(STRANGER, air, fake_espnow.Faults())
    stranger.active(True)
    stranger.add_peer(NODE)
    stranger.add_peer(GATEWAY)
    fake_espnow.install(GATEWAY, air, fake_espnow.Faults(*FAULTS, seed=2))  # noqa: F821
    board_end, host_end = wires()
    gateway = espnow_gateway.Gateway(espnow_line.radio(buffer=espnow_gateway.BUFFER), board_end)
    fake_espnow.install(NODE, air, fake_espnow.Faults(*FAULTS, seed=1))  # noqa: F821
    host = Host(host_end, remote)

    def turn():
        stranger.send(NODE, b"\x00\x00")
        stranger.send(GATEWAY, bytes(250))
        gateway.turn()
        host.turn()

    return espnow_line.EspNow(GATEWAY), turn, lambda: {"datagrams": host.lost, "radio": gateway.lost}


def by_uart(remote):
    from uart_gateway import Gateway
    from uart_line import Uart

    try:
        from machine import UART, Pin

        ends = UART(0, 115200, tx=Pin(0), rx=Pin(1), rxbuf=1024), UART(1, 115200, tx=Pin(4), rx=Pin(5), rxbuf=4096)
    except ImportError:
        ends = wires()
    gateway = Gateway(Uart(ends[1]), remote)
    return Uart(ends[0]), gateway.turn, dict


decided = []
remote = Remote()
line, turn, counters = (by_espnow if LINK == "espnow" else by_uart)(remote)  # noqa: F821
link = SerialLink(line, "porch", 7)
node = Node(
    Adaptive(bits=4, beta=1000), Middle(), link, lambda *row: decided.append(row), model_id=1, boot=7, deadline_ms=DEADLINE_MS
)
for n in range(SAMPLES):
    node.step([0], (REMOTE,), bytes(REMOTE), n)
    if not n % 8:
        link.report_state({"samples": n, "filler": "x" * 600})
    while len(decided) <= n:
        turn()
        node.poll(0)
line.close()
print(
    json.dumps(
        {
            "decided": [row[0] for row in decided] == list(range(SAMPLES)),
            "offloads": node.offloads,
            "replies": node.replies,
            "fallbacks": node.fallbacks,
            "asked": remote.answers,
            "reports": remote.reports,
            "noise": link.decoder.noise,
            "lost": counters(),
        }
    )
)

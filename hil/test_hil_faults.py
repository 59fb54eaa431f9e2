"""Faults of the field: power cuts, brokers that vanish, bad links, noise, wrapping clocks."""

import random
import signal
import socket
import threading
import time

import numpy as np
import pytest
from board_features import needs

from h2t2_lab.boards.microbit import Microbit
from h2t2_lab.processes import remaining_output
from h2t2_lab.proxy import Faults, Proxy


@pytest.fixture
def proxy(mosquitto):
    """A proxy before the test's broker, with all faults off."""
    link = Proxy("127.0.0.1", mosquitto.port, Faults())
    yield link
    link.stop()


def exactly_once(outcome, samples):
    return sorted(row["n"] for row in outcome.decisions) == list(range(samples))


@pytest.mark.long
@pytest.mark.whole
@needs("node", "snapshot", "clock")
def test_power_cut_during_a_snapshot(board, make_material, rdl, figures):
    """Kill a node that saves after every sample at 12 random moments. Each restart continues from a valid state."""
    material = make_material(200, snapshot_every=1)
    board.prepare(material)
    rng = random.Random(1)
    restored = 0
    for _ in range(12):
        process = board.start(material)
        output = board.wait_for(process, '"remote"')  # it saves now and after every further label
        time.sleep(rng.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        assert "beginning anew" not in output + remaining_output(process, 60)[0]
    outcome = board.finish(board.start(material), 60)
    restored = outcome.summary["restored"]
    figures.update(cuts=12, restored=restored)
    assert restored and "beginning anew" not in outcome.log and exactly_once(outcome, 200)


@pytest.mark.whole
@needs("node", "clock")
def test_broker_stopped_and_started_again(board, make_material, rdl, mosquitto, figures):
    """The node decides locally while the broker is away, and connects again by itself."""
    material = make_material(200, snapshot="")
    board.prepare(material)
    (material.folder / "slow.py").write_text(SLOW)
    process = board.start(material, "slow.py")
    output = board.wait_for(process, '"remote"')
    time.sleep(1)
    mosquitto.stop(kill=True)
    time.sleep(2)
    mosquitto.start()
    outcome = board.finish(process, 90, output)
    figures.update({k: outcome.summary[k] for k in ("fallbacks", "replies", "connections")})
    assert exactly_once(outcome, 200) and outcome.summary["connections"] >= 2
    last = max(row["n"] for row in outcome.decisions if row["source"] == "fallback")
    assert outcome.summary["fallbacks"] > 0 and any(row["source"] == "remote" and row["n"] > last for row in outcome.decisions)


# a sample each 40 ms, so that the run spans the outage
SLOW = """import time
import h2t2.node.recorded
import h2t2.node.run
from h2t2.node.recorded import Recorded
class Slow(Recorded):
    def __call__(self):
        time.sleep(0.04)
        return Recorded.__call__(self)
h2t2.node.recorded.Recorded = Slow
h2t2.node.run.main()
"""


@pytest.mark.slow
@needs("node", "clock")
def test_black_holed_link(board, make_material, rdl, proxy, figures):
    """A link that passes and refuses nothing: the node decides every sample within its deadline, without exceptions."""
    material = make_material(40, port=proxy.port, deadline="150ms", snapshot="")
    board.prepare(material)
    process = board.start(material)
    time.sleep(0.4)
    proxy.faults.stall = True
    started = time.monotonic()
    outcome = board.finish(process, 60)
    figures.update(fallbacks=outcome.summary["fallbacks"], seconds_stalled=round(time.monotonic() - started, 2))
    assert exactly_once(outcome, 40) and outcome.summary["errors"] == 0


@pytest.mark.whole
@needs("node", "clock")
def test_late_doubled_reordered_and_corrupt_replies(board, make_material, rdl, proxy, figures):
    """A third of the replies comes twice, all are late and out of order, some lost or damaged: each label teaches once."""
    faults = proxy.faults
    faults.double, faults.drop, faults.corrupt, faults.delay_ms = 0.3, 0.1, 0.1, (0, 120)
    material = make_material(
        200, port=proxy.port, deadline="60ms", in_flight=4, snapshot="", every="10ms"
    )  # longer than connecting takes
    outcome = board.run(material)
    s = outcome.summary
    figures.update(s, doubled=faults.doubled, dropped=faults.dropped, corrupted=faults.corrupted)
    assert exactly_once(outcome, 200) and s["errors"] == 0
    assert s["taught"] == s["replies"] + s["late"] and s["replies"] + s["fallbacks"] == s["offloads"]
    assert s["strangers"] > 0 and s["fallbacks"] > 0 and faults.doubled > 0


@pytest.mark.whole
@needs("node", "clock")
def test_the_tick_counter_wraps(board, make_material, rdl, figures):
    """The node's clock begins 300 ms before ticks_ms() wraps: deadlines and keep-alive hold, decisions equal the host's."""
    material = make_material(200, snapshot="")
    board.prepare(material)
    (material.folder / "wrap.py").write_text(WRAP)
    outcome = board.finish(board.start(material, "wrap.py"), 60)
    assert "wrapped 1" in outcome.log
    assert outcome.lines() == material.replay() and outcome.summary["errors"] == outcome.summary["fallbacks"] == 0


WRAP = """import h2t2.clock as clock
from time import ticks_add, ticks_ms
period = ticks_add(0, -1) + 1
seen = [0, 0]
offset = []
def near():
    if not offset:  # at the first call, because a busy machine may take longer than 300 ms to load the runtime
        offset.append(period - 300 - ticks_ms())
    now = (ticks_ms() + offset[0]) & (period - 1)
    if now < seen[0] and seen[0] - now > 1000:
        seen[1] += 1
    seen[0] = now
    return now
clock.ticks_ms = near
import h2t2.node.run
h2t2.node.run.main()
import time
while near() > period // 2:
    time.sleep(0.01)
print("wrapped", seen[1])
"""


def run_on_line(line_class, board, material, seconds):
    """Run an emulated board whose serial line is of this class. Return the line and the outcome."""
    if not board.emulator:
        pytest.skip("the bad line works only between an emulated board and the gateway")
    with Microbit() as repl:
        line = line_class(repl.port)
        outcome = board.serial(repl.port, material, seconds, repl, line.url)
        line.stop()
    return line, outcome


@pytest.mark.slow
@needs("serial")
def test_noise_on_the_serial_line(board, make_material, rdl, figures):
    """Noise inserts bytes both ways: it destroys frames, never forges one, and the node decides every sample in step."""
    material = make_material(120, deadline="400ms", device="noisy")
    noisy, outcome = run_on_line(NoisyLine, board, material, 15)
    counters = outcome.summary
    figures.update({k: counters[k] for k in ("decisions", "noise", "requests", "replies")}, put_in=noisy.put_in)
    assert counters["noise"] > 5 and noisy.put_in > 5, outcome.log
    assert counters["decisions"] >= 100, outcome.log  # noise may hit a frame with a decision
    sources = {row["source"] for row in outcome.decisions}
    assert "remote" in sources
    bins = [k for k, _, _ in material.replay()]
    assert is_subsequence([row["bin"] for row in outcome.decisions], bins)


@pytest.mark.whole
@needs("serial")
def test_ctrl_c_in_a_late_reply_does_not_stop_the_program(board, make_material, rdl, figures):
    """No reply comes in time; later bytes contain Ctrl-C, as a frame may. The node decides every sample."""
    material = make_material(60, deadline="50ms", device="late")
    line, outcome = run_on_line(LateLine, board, material, 30)
    figures.update(put_in=line.put_in)
    assert line.put_in > 5 and exactly_once(outcome, 60), outcome.log
    assert {row["source"] for row in outcome.decisions} == {"local", "fallback"}


def is_subsequence(numbers, sequence):
    remaining = iter(sequence)
    return all(any(k == candidate for candidate in remaining) for k in numbers)


class NoisyLine:
    """A TCP line to a board's pty that sometimes inserts a byte of noise, both ways. `url`: for the gateway."""

    def __init__(self, port):
        self.port = port
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"socket://127.0.0.1:{self.server.getsockname()[1]}"
        self.put_in = 0
        self.rng = np.random.default_rng(2)
        self.last = b""
        self.noisy = False  # not while the board boots, because its REPL would take noise as input
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        import serial

        client, _ = self.server.accept()
        client.settimeout(0.002)
        with serial.serial_for_url(self.port, timeout=0.002) as line:
            while not self.stopped.is_set():
                try:
                    data = client.recv(4096)
                except TimeoutError:
                    data = None
                except OSError:
                    return
                if data == b"":
                    return
                for source, sink, back in ((data or b"", line.write, None), (line.read(4096), client.sendall, line.write)):
                    if source:
                        self.relay(source, sink, back)

    def relay(self, source, sink, back):
        """Pass bytes on with noise. back: writes to the source if that is the board, else None."""
        if back:
            self.noisy = self.noisy or b"Hnoisy" in self.last + source
            self.last = (self.last + source)[-8:]  # the hello may come in two parts
        spoiled = bytearray()
        for byte in source:
            spoiled.append(byte)
            if self.noisy and self.rng.random() < 0.008:
                spoiled.append(int(self.rng.integers(32, 256)))
                self.put_in += 1
        sink(bytes(spoiled))

    def stop(self):
        self.stopped.set()
        self.thread.join(5)
        self.server.close()


class LateLine(NoisyLine):
    """Lets no frame through to the board. It sends Ctrl-C twice, a while after each request."""

    requests = b"Q\2"  # kind and version of a request
    booted = False

    def relay(self, source, sink, back):
        if back or not self.booted:
            sink(source)
        if back:
            self.booted = self.booted or b"Hlate" in self.last + source
            if self.requests in self.last[-1:] + source:
                threading.Timer(0.1, back, [b"\3\3"]).start()
                self.put_in += 1
            self.last = (self.last + source)[-8:]

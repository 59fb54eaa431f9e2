"""What goes wrong in the field, on purpose: power cuts, brokers that vanish, bad links, noise, wrapping clocks."""

import random
import signal
import socket
import threading
import time

import numpy as np
import pytest
from marks import needs

from h2t2_tools.boards.emulators.microbit import Microbit
from h2t2_tools.proof.children import remaining_output
from h2t2_tools.proof.proxy import Faults, Proxy


@pytest.fixture
def proxy(mosquitto):
    """A proxy before the test's broker, all faults off."""
    one = Proxy("127.0.0.1", mosquitto.port, Faults())
    yield one
    one.stop()


def exactly_once(outcome, samples):
    return sorted(row["n"] for row in outcome.decisions) == list(range(samples))


@pytest.mark.long
@pytest.mark.slow
@needs("node", "snapshot", "clock")
def test_power_cut_during_a_snapshot(board, material, rdl, figures):
    """Killed at 12 random moments of a run that saves after every sample: each restart goes on from a valid state."""
    made = material(200, snapshot_every=1)
    board.prepare(made)
    rng = random.Random(1)
    restored = 0
    for _ in range(12):
        process = board.start(made)
        said = board.heard(process, '"remote"')  # a label is there, so it is saving now, and after every other
        time.sleep(rng.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        assert "beginning anew" not in said + remaining_output(process, 60)[0]
    outcome = board.finish(board.start(made), 60)
    restored = outcome.summary["restored"]
    figures.update(cuts=12, restored=restored)
    assert restored and "beginning anew" not in outcome.log and exactly_once(outcome, 200)


@pytest.mark.slow
@needs("node", "clock")
def test_broker_stopped_and_started_again(board, material, rdl, mosquitto, figures):
    """While it is away the node decides locally; when it is back the node is too, by itself."""
    made = material(200, snapshot="")
    board.prepare(made)
    (made.folder / "slow.py").write_text(SLOW)
    process = board.start(made, "slow.py")
    said = board.heard(process, '"remote"')
    time.sleep(1)
    mosquitto.stop(kill=True)
    time.sleep(2)
    mosquitto.start()
    outcome = board.finish(process, 90, said)
    figures.update({k: outcome.summary[k] for k in ("fallbacks", "replies", "connections")})
    assert exactly_once(outcome, 200) and outcome.summary["connections"] >= 2
    last = max(row["n"] for row in outcome.decisions if row["source"] == "fallback")
    assert outcome.summary["fallbacks"] > 0 and any(row["source"] == "remote" and row["n"] > last for row in outcome.decisions)


# one sample each 40 ms, so that the run spans the outage
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
def test_black_holed_link(board, material, rdl, proxy, figures):
    """Nothing passes, nothing is refused: every sample is decided within its deadline, no exception, no stuck loop."""
    made = material(40, port=proxy.port, deadline_ms=150, snapshot="")
    board.prepare(made)
    process = board.start(made)
    time.sleep(0.4)
    proxy.faults.stall = True
    started = time.monotonic()
    outcome = board.finish(process, 60)
    figures.update(fallbacks=outcome.summary["fallbacks"], seconds_stalled=round(time.monotonic() - started, 2))
    assert exactly_once(outcome, 40) and outcome.summary["errors"] == 0


@pytest.mark.slow
@needs("node", "clock")
def test_late_doubled_reordered_and_corrupt_replies(board, material, rdl, proxy, figures):
    """A third of the replies comes twice, all of them late and out of order, some lost or damaged: a label teaches once."""
    faults = proxy.faults
    faults.double, faults.drop, faults.corrupt, faults.delay_ms = 0.3, 0.1, 0.1, (0, 120)
    made = material(
        200, port=proxy.port, deadline_ms=60, in_flight=4, snapshot="", every="10ms"
    )  # longer than connecting takes
    outcome = board.run(made)
    s = outcome.summary
    figures.update(s, doubled=faults.doubled, dropped=faults.dropped, corrupted=faults.corrupted)
    assert exactly_once(outcome, 200) and s["errors"] == 0
    assert s["taught"] == s["replies"] + s["late"] and s["replies"] + s["fallbacks"] == s["offloads"]
    assert s["strangers"] > 0 and s["fallbacks"] > 0 and faults.doubled > 0


@pytest.mark.slow
@needs("node", "clock")
def test_the_tick_counter_wraps(board, material, rdl, figures):
    """Its clock first looked at 300 ms before ticks_ms() wraps: deadlines and keep-alive go on, decisions are the host's."""
    made = material(200, snapshot="")
    board.prepare(made)
    (made.folder / "wrap.py").write_text(WRAP)
    outcome = board.finish(board.start(made, "wrap.py"), 60)
    assert "wrapped 1" in outcome.log
    assert outcome.lines() == made.replay() and outcome.summary["errors"] == outcome.summary["fallbacks"] == 0


WRAP = """import h2t2.clock as clock
from time import ticks_add, ticks_ms
period = ticks_add(0, -1) + 1
seen = [0, 0]
offset = []
def near():
    if not offset:  # the first time that anybody asks: a busy machine may take longer than that to load the runtime
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


def over(kind, board, made, seconds):
    """A run on an emulated board whose serial line is of that kind: the line and what came of it."""
    if not board.emulator:
        pytest.skip("the bad line stands between an emulated board and the gateway")
    with Microbit() as repl:
        line = kind(repl.port)
        outcome = board.serial(repl.port, made, seconds, repl, line.url)
        line.stop()
    return line, outcome


@pytest.mark.slow
@needs("serial")
def test_noise_on_the_serial_line(board, material, rdl, figures):
    """Bytes turned and put in both ways: frames are lost, never believed; every sample is decided, in step afterwards."""
    made = material(120, deadline_ms=400, device="noisy")
    noisy, outcome = over(NoisyLine, board, made, 15)
    counters = outcome.summary
    figures.update({k: counters[k] for k in ("decisions", "noise", "requests", "replies")}, put_in=noisy.put_in)
    assert counters["noise"] > 5 and noisy.put_in > 5, outcome.log
    assert counters["decisions"] >= 100, outcome.log  # a frame that told of a decision may be what the noise hit
    sources = {row["source"] for row in outcome.decisions}
    assert "remote" in sources
    bins = [k for k, _, _ in made.replay()]
    assert is_subsequence([row["bin"] for row in outcome.decisions], bins)


@pytest.mark.whole
@needs("serial")
def test_ctrl_c_in_a_late_reply_does_not_stop_the_program(board, material, rdl, figures):
    """No reply comes in time; what comes later holds the byte of Ctrl-C, as a frame may. Every sample is decided."""
    made = material(60, deadline_ms=50, device="late")
    line, outcome = over(LateLine, board, made, 30)
    figures.update(put_in=line.put_in)
    assert line.put_in > 5 and exactly_once(outcome, 60), outcome.log
    assert {row["source"] for row in outcome.decisions} == {"local", "fallback"}


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(k == other for other in rest) for k in part)


class NoisyLine:
    """A TCP line to a board's pty that adds a byte of noise now and then, both ways. `url`: for the gateway."""

    def __init__(self, port):
        self.port = port
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"socket://127.0.0.1:{self.server.getsockname()[1]}"
        self.put_in = 0
        self.rng = np.random.default_rng(2)
        self.last = b""
        self.noisy = False  # not while the board boots: its REPL would take the noise as words
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
        """Pass bytes on, spoiled. back: to where they come from, if that is the board."""
        if back:
            self.noisy = self.noisy or b"Hnoisy" in self.last + source
            self.last = (self.last + source)[-8:]  # what is looked for may come in two parts
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
    """Lets no frame through to the board; a while after each request it puts in Ctrl-C, twice."""

    requests = b"Q\2"  # kind and version of one
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

"""`h2t2 gateway`."""

import json
import subprocess
import sys
import time

import pytest
from pseudo_terminal import Pty
from support import mosquitto, need_mosquitto, until, worker

from h2t2.cpython.whole_frames import encode
from h2t2.link import datagrams, frames, wire
from h2t2.link.serial import SerialLink
from h2t2_tools.boards import gateway
from h2t2_tools.boards.gateway import ON_LINE, Board, Line, LineOptions, Out, parse, relay
from h2t2_tools.boards.repl import RawRepl
from h2t2_tools.cli.main import main
from h2t2_tools.common import pairs
from h2t2_tools.common.errors import Failure, UserError
from h2t2_tools.fleet import broker
from h2t2_tools.fleet.endpoint import Endpoint
from h2t2_tools.fleet.monitoring.follower import Follower


def test_a_board_that_tells_no_state_is_told_of(broker):
    end = Pty()
    to = Endpoint(broker.host, broker.port)
    follower = Follower(to).start()
    line = Line(end.port, {ON_LINE: "tiny"}, to, LineOptions(pace=False), Out(lambda _: None, lambda _: None))
    end.write(encode(frames.DECISION, b"\1\0\5\1\0") + encode(frames.DECISION, b"\2\0\6\0\1"))

    def device_state():
        with follower.fleet() as fleet:
            return fleet.devices["tiny"].state if "tiny" in fleet.devices else None

    assert until(lambda: device_state() is not None and device_state().samples == 2, 30)
    assert (device_state().offloads, device_state().replies, device_state().fallbacks, device_state().last) == (
        1,
        1,
        0,
        (6, 0, 1),
    )
    line.stop()

    def online():
        with follower.fleet() as fleet:
            return fleet.devices["tiny"].online

    assert until(lambda: online() is False, 30)
    follower.close()


HOLDS = (
    "import sys; from h2t2_tools.boards import repl; line = repl.open_line(sys.argv[1], 9600); print(1, flush=True); input()"
)


def test_a_line_belongs_to_one_program():
    """A gateway and a flash on one line took each other's bytes. The message names the other one."""
    end = Pty()
    with subprocess.Popen([sys.executable, "-c", HOLDS, end.port], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            other.stdout.readline()
            with pytest.raises(UserError, match=rf"this line belongs to python.* \(process {other.pid}\); stop that first"):
                RawRepl(end.port)
        finally:
            other.kill()
    RawRepl(end.port).close()


@pytest.mark.slow
def test_one_gateway_serves_many_lines():
    """Two devices on two ptys, one gateway: each gets the replies to its own requests, noise on one troubles neither."""
    need_mosquitto()

    pair = pairs.load("digits")
    said, decided = [], []
    with broker.running("mosquitto") as url, worker(url):
        ends = [Pty(), Pty()]
        out = Out(said.append, decided.append)
        lines = [
            Line(end.port, {ON_LINE: f"dev{n}"}, Endpoint(*broker.parse(url)), LineOptions(pace=False), out)
            for n, end in enumerate(ends)
        ]
        links = [SerialLink(end, f"dev{n}") for n, end in enumerate(ends)]
        for sequence in range(1, 21):
            ends[0].write(b"noise" * (sequence % 3))
            for n, link in enumerate(links):
                assert link.send(wire.encode_request(pair.info.model_id, 70 + n, sequence, (8, 8, 1), bytes(64)))
            for n, link in enumerate(links):
                assert wire.decode_reply(link.receive(5000))[:3] == (wire.OK, 70 + n, sequence)
        ends[1].write(encode(frames.DECISION, b"\2\0\5\1\0") + encode(frames.DECISION, b"\5\0\6\0\2"))
        assert until(lambda: len(decided) == 2)
        counters = [line.stop()[f"dev{n}"] for n, line in enumerate(lines)]
    assert decided == [
        {"device": "dev1", "n": 2, "missed": 0, "bin": 5, "decision": 1, "source": "local"},
        {"device": "dev1", "n": 5, "missed": 2, "bin": 6, "decision": 0, "source": "fallback"},
    ]
    assert counters[1].missed == 2
    assert [c.requests for c in counters] == [c.replies for c in counters] == [20, 20]
    assert counters[0].noise > 5 and counters[1].noise == 0 and any("hello from dev1" in text for text in said)


@pytest.mark.slow
def test_a_board_may_pause_in_the_middle_of_a_frame(broker):
    """A board sends its state piece by piece while it makes the text. What it printed is logged once, a frame is not."""
    said, summaries = [], []
    end = Pty()
    out = Out(said.append, lambda _: None, summaries.append)
    line = Line(end.port, {ON_LINE: "dev"}, Endpoint(broker.host, broker.port), LineOptions(pace=False), out)
    frame = encode(frames.END, json.dumps({"samples": [60] * 100}).encode())
    for data in (b"Traceback", b"MemoryError" + frame[:300]):
        end.write(data)
        time.sleep(2 * gateway.QUIET_S)
    end.write(frame[300:])
    assert until(lambda: summaries), said
    line.stop()
    assert summaries == [{"device": "dev", "summary": {"samples": [60] * 100}}]
    assert [text.split("'")[1] for text in said] == ["Traceback"]


@pytest.mark.slow
def test_where_nobody_can_answer_the_gateway_says_so(tmp_path):
    """No worker, a model that no worker serves, no broker: the board is told at once, and need not wait for its deadline."""
    need_mosquitto()
    end = Pty()
    out = Out(lambda _: None, lambda _: None)

    def answer_of(link, model, sequence):
        link.send(wire.encode_request(model, 7, sequence, (8, 8, 1), bytes(64)))
        return wire.decode_reply(link.receive(5000))[:3]

    with mosquitto(tmp_path) as one:
        line = Line(end.port, {ON_LINE: "dev"}, Endpoint(one.host, one.port), LineOptions(pace=False), out)
        link = SerialLink(end, "dev", 7)
        assert answer_of(link, 2, 1) == (wire.NOBODY, 7, 1)
        with worker(one.url):
            assert until(lambda: line.boards[ON_LINE].link.workers(2))
            assert answer_of(link, 2, 2) == (wire.OK, 7, 2) and answer_of(link, 999, 3) == (wire.NOBODY, 7, 3)
        one.stop()
        assert until(lambda: not line.boards[ON_LINE].link.is_connected())
        assert answer_of(link, 2, 4) == (wire.NOBODY, 7, 4)
        assert line.stop()["dev"].refused == 3


def test_two_lines_of_one_name_are_refused(capsys):
    assert main(["gateway", "--port", "/nowhere/a=hall", "--port", "/nowhere/b=hall", "--broker", "mqtt://127.0.0.1:1"]) == 2
    assert "/nowhere/a=hall and /nowhere/b=hall have the same name hall" in capsys.readouterr().err


def test_one_board_has_one_name(capsys):
    ports = [f"24:0a:c4:00:00:01@/nowhere/a={name}" for name in ("hall", "porch")]
    assert main(["gateway", "--port", ports[0], "--port", ports[1], "--broker", "mqtt://127.0.0.1:1"]) == 2
    assert "hall is the same board" in capsys.readouterr().err


def test_gateway_ports():
    assert parse("/dev/ttyACM0") == ("/dev/ttyACM0", ON_LINE, "ttyACM0")
    assert parse("/dev/ttyACM0=hall") == ("/dev/ttyACM0", ON_LINE, "hall")
    assert parse("socket://h:1=x") == ("socket://h:1", ON_LINE, "x")
    address = bytes([0x24, 0x0A, 0xC4, 0, 0, 1])
    assert parse("24:0a:C4:00:00:01@/dev/ttyACM0=porch") == ("/dev/ttyACM0", address, "porch")
    assert parse("24:0a:c4:00:00:01@socket://h:1") == ("socket://h:1", address, "240ac4000001")
    for name in ("a+b", "#", "x" * 65):
        with pytest.raises(UserError, match="device name"):
            parse(f"/dev/ttyACM0={name}")
    assert main(["gateway", "--port", "/nowhere/tty", "--broker", "mqtt://127.0.0.1:1"]) == 2


HOSTILE = [b"[" * 5000, b'{"a":' * 5000, b"9" * 5000, b"\xff\x00", b'{"samples": "many", "last": 7}', b'{"last": [1]}', b"null"]


def pour(end, data):
    """Write more than a pseudo terminal holds at once."""
    for at in range(0, len(data), 512):
        while True:
            try:
                end.write(data[at : at + 512])
                break
            except BlockingIOError:
                time.sleep(0.01)


@pytest.mark.slow
def test_no_frame_of_a_board_ends_its_line_or_another(broker):
    """Every kind of frame with every hostile payload, of a board: both lines go on."""
    said, decided = [], []
    ends = [Pty(), Pty()]
    to = Endpoint(broker.host, broker.port)
    out = Out(said.append, decided.append)
    lines = [Line(end.port, {ON_LINE: f"dev{n}"}, to, LineOptions(pace=False), out) for n, end in enumerate(ends)]
    kinds = (frames.REQUEST, frames.STATE, frames.ANSWER, frames.DECISION, frames.END, frames.HELLO)
    for kind in kinds:
        for payload in HOSTILE:
            pour(ends[0], encode(kind, payload))
    pour(ends[0], encode(frames.HELLO, b"dev0\x1b[2J"))
    for end in ends:
        end.write(encode(frames.DECISION, b"\1\0\5\1\0"))
    assert until(lambda: len(decided) == 2, 60), (said, [line.boards[ON_LINE].counters for line in lines])
    assert all(line.alive() for line in lines)
    assert any("dev0\\x1b[2J" in text for text in said) and not any("\x1b" in text for text in said)
    for line in lines:
        line.stop()


def test_an_address_alone_of_a_named_board_is_no_strangers(broker):
    said, node, other = [], b"\x24\x0a\xc4\0\0\1", b"\x24\x0a\xc4\0\0\2"
    end = Pty()
    to, out = Endpoint(broker.host, broker.port), Out(said.append, lambda _: None)
    line = Line(end.port, {node: "porch"}, to, LineOptions(pace=False), out)
    end.write(encode(datagrams.VIA, node) + encode(datagrams.VIA, other))
    assert until(lambda: line.strangers, 30)
    line.stop()
    assert line.strangers == 1 and node.hex(":") not in " ".join(said) and other.hex(":") in " ".join(said)


def test_an_exception_that_nobody_has_foreseen_is_counted_logged_and_not_the_end(broker, monkeypatch, caplog):
    decided = []
    end = Pty()
    line = Line(
        end.port,
        {ON_LINE: "dev"},
        Endpoint(broker.host, broker.port),
        LineOptions(pace=False),
        Out(lambda _: None, decided.append),
    )
    usual = Board._up

    def raising(board, kind, payload):
        if kind == frames.HELLO:
            raise RecursionError("too deep")
        usual(board, kind, payload)

    monkeypatch.setattr(Board, "_up", raising)
    for _ in range(3):
        end.write(encode(frames.HELLO, b"x"))
    end.write(encode(frames.DECISION, b"\1\0\5\1\0"))
    assert until(lambda: decided, 30) and line.alive()
    assert line.stop()["dev"].errors >= 1 and "RecursionError: too deep" in caplog.text


@pytest.mark.whole
def test_a_line_whose_thread_ends_is_a_failure_and_the_others_go_on(broker, monkeypatch):
    ends = [Pty(), Pty()]
    usual = Line._run
    monkeypatch.setattr(Line, "_run", lambda line: None if line.port == ends[0].port else usual(line))
    decided = []

    def log(text):
        if text == "ready":
            ends[1].write(encode(frames.DECISION, b"\1\0\5\1\0"))

    ports = [f"{end.port}={name}" for end, name in zip(ends, "ab")]
    with pytest.raises(Failure, match="thread of this line ended"):
        relay(ports, Endpoint(broker.host, broker.port), LineOptions(pace=False), 3, Out(log, decided.append))
    assert len(decided) == 1

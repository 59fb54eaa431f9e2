"""Frames on a serial line."""

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from h2t2.cpython.whole_frames import encode
from h2t2.link import frames
from h2t2.link.serial import SerialLink


@given(st.integers(0, 255), st.binary(max_size=700))
def test_a_frame_comes_back(kind, payload):
    data = encode(kind, payload)
    assert data[0] == data[-1] == 0 and 0 not in data[1:-1]
    assert frames.Decoder().feed(data) == [(kind, payload)]


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=40)), max_size=6), st.integers(0, 2**32))
def test_after_noise_the_next_frame_is_whole(parts, seed):
    """Any bytes between frames: every frame still comes, in order, and nothing else is believed."""
    cut = random.Random(seed)
    stream = b"".join(noise + encode(7, payload) for payload, noise in parts)
    decoder, found = frames.Decoder(), []
    while stream:
        n = cut.randrange(1, 50)
        found += decoder.feed(stream[:n])
        stream = stream[n:]
    wanted = [(7, payload) for payload, _ in parts]
    assert [frame for frame in found if frame in wanted] == wanted


def test_a_frame_too_long_takes_no_memory():
    decoder = frames.Decoder(100)
    assert decoder.feed(encode(1, bytes(range(1, 250)) * 40)) == []
    assert decoder.noise == 1 and not decoder.block
    assert decoder.feed(encode(1, b"good")) == [(1, b"good")]


def test_a_frame_has_65536_bytes_on_the_line_at_most():
    data = encode(1, b"a" * 65275)
    assert len(data) == 65536 + 2 and frames.Decoder().feed(data) == [(1, b"a" * 65275)]
    assert frames.Decoder().feed(encode(1, b"a" * 65276)) == []


class Line:
    """A serial line. gone: nobody reads it any more."""

    def __init__(self):
        self.out, self.arriving, self.gone = b"", b"", False

    def write(self, data):
        if self.gone:
            raise OSError("gone")
        self.out += data

    def read(self):
        data, self.arriving = self.arriving, b""
        return data


def test_the_serial_link_speaks_frames():
    """Hello at the start and when asked; replies and commands told apart; what is not a frame is nothing."""
    line = Line()
    link = SerialLink(line, "dev")
    assert frames.Decoder().feed(line.out) == [(frames.HELLO, b"dev")]
    line.out = b""
    line.arriving = b"junk" + encode(frames.ASK, b"") + encode(frames.COMMAND, b"{}") + encode(65, b"reply")
    line.arriving += encode(65, b"another")
    assert [link.receive(0) for _ in range(3)] == [b"reply", b"another", None] and link.command() == b"{}"
    assert link.send(b"question")
    assert frames.Decoder().feed(line.out) == [(frames.HELLO, b"dev"), (frames.REQUEST, b"question")]


def test_the_serial_link_reports():
    """JSON travels in pieces; on a line that is gone nothing raises."""
    line = Line()
    link = SerialLink(line, "dev")
    line.out = b""
    state = {"samples": 3, "start": "x" * 400}
    link.report_state(state)
    link.answer('{"ok": true}')
    link.send_decision(65537, -1, 1, 2)
    link.send_summary({"samples": 4})
    sent = frames.Decoder(1000).feed(line.out)
    assert [kind for kind, _ in sent] == [frames.STATE, frames.ANSWER, frames.DECISION, frames.END]
    assert json.loads(sent[0][1]) == state and sent[1][1] == b'{"ok": true}' and json.loads(sent[3][1]) == {"samples": 4}
    assert sent[2][1] == bytes([1, 0, 255, 1, 2])
    line.gone = True
    assert not link.send(b"question")
    link.report_state(state)


def test_frames_are_those_that_other_ends_of_the_line_know():
    """The kinds are letters, and the checksum is CRC-16-CCITT, whose value of the nine digits is in every catalogue."""
    kinds = frames.REQUEST, frames.REPLY, frames.STATE, frames.COMMAND, frames.ANSWER, frames.HELLO, frames.ASK
    assert bytes([*kinds, frames.DECISION, frames.END]) == b"QASCRH?DE"
    assert frames.crc16(b"123456789") == 0x29B1
    assert encode(1, b"a") == b"\0\x05\x01a\xb9R\0"

"""Frames over datagrams that get lost and overtake each other (link/datagrams.py)."""

from hypothesis import given
from hypothesis import strategies as st

from h2t2.link import datagrams, frames
from h2t2.link.datagrams import Datagrams


class Air(Datagrams):
    """A radio in memory. sent: what it sent; came: what it will receive, where b"" is somebody else's."""

    def __init__(self):
        super().__init__()
        self.sent, self.came = [], []

    def send(self, datagram):
        self.sent.append(datagram)

    def receive(self, wait_ms):
        return self.came.pop(0) if self.came else None


def cut(payloads):
    """The datagrams of each frame."""
    air, of_frame = Air(), []
    for payload in payloads:
        frames.send(air, 7, payload)
        of_frame.append(air.sent)
        air.sent = []
    return of_frame


def heard(came):
    """The payloads of the frames in these datagrams."""
    air, decoder, payloads = Air(), frames.Decoder(), []
    air.came = list(came)
    while air.came:
        payloads += [payload for kind, payload in decoder.feed(air.read()) if kind == 7]
    return payloads


sizes = st.lists(st.binary(max_size=1500), max_size=8)


@given(sizes)
def test_what_comes_in_order_comes_back(payloads):
    of_frame = cut(payloads)
    assert all(2 <= len(datagram) <= datagrams.SIZE for frame in of_frame for datagram in frame)
    assert heard(b"".join([datagram]) for frame in of_frame for datagram in frame) == payloads


@given(sizes, st.data())
def test_a_lost_datagram_costs_its_frame_alone(payloads, data):
    of_frame = cut(payloads)
    whole = []
    for frame, payload in zip(of_frame, payloads):
        lost = data.draw(st.integers(0, len(frame)))
        if lost < len(frame):
            del frame[lost]
        else:
            whole.append(payload)
    assert heard(datagram for frame in of_frame for datagram in frame) == whole


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_frames_of_one_datagram_come_in_any_order(payloads, data):
    of_frame = [frame[0] for frame in cut(payloads)]
    assert sorted(heard(data.draw(st.permutations(of_frame)))) == sorted(payloads)


@given(st.lists(st.binary(min_size=300, max_size=900), min_size=1, max_size=4), st.data())
def test_datagrams_out_of_order_are_never_taken_for_a_frame(payloads, data):
    of_frame = data.draw(st.permutations([datagram for frame in cut(payloads) for datagram in frame]))
    assert set(heard(of_frame)) <= {*payloads}


@given(st.lists(st.binary(max_size=400)))
def test_nothing_that_a_stranger_sends_is_a_frame_or_takes_memory(came):
    air, decoder = Air(), frames.Decoder(100)
    air.came = came
    while air.came:
        decoder.feed(air.read())
        assert len(decoder.block) <= 100
    of_us = cut([b"after"])[0]
    assert decoder.feed(air.join(of_us[0])) == [(7, b"after")]


def test_a_stranger_does_not_hide_what_follows():
    air = Air()
    mine = cut([b"mine"])[0][0]
    air.came = [b"", mine, None, mine]
    air.wait(5)
    assert frames.Decoder().feed(air.read()) == [(7, b"mine")]
    assert len(air.came) == 1, "a read ends where nothing has come"


def test_what_continues_nothing_is_dropped_and_counted():
    air = Air()
    first, second, third, fourth = cut([b"x" * 900])[0][:4]
    assert [air.join(datagram) != b"" for datagram in (first, third, fourth, second, third)] == [True, False, False, True, True]
    assert air.lost == 2
    assert air.join(bytes(1)) == air.join(bytes(datagrams.SIZE + 1)) == b"" and air.lost == 2

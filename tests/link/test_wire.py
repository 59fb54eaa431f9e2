"""The wire format: round trips, exact bytes, and nothing but ValueError for whatever a stranger sends."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.link import wire

u32 = st.integers(0, 2**32 - 1)


@given(st.integers(0, 65535), u32, u32, st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_requests_round_trip(model, boot, sequence, shape, data):
    size = 1
    for n in shape:
        size *= n
    tensor = data.draw(st.binary(min_size=size, max_size=size))
    got = wire.decode_request(wire.encode_request(model, boot, sequence, shape, tensor))
    assert got[:3] == (model, boot, sequence)
    assert list(got[3]) == shape and bytes(got[4]) == tensor


@given(u32, u32, st.integers(0, 127), st.integers(0, 32768))
def test_replies_round_trip(boot, sequence, label, score):
    assert wire.decode_reply(wire.encode_reply(wire.OK, boot, sequence, label, score)) == (0, boot, sequence, label, score)


def test_exact_bytes():
    assert wire.encode_request(2, 3, 4, (1, 2), b"\x05\xff") == bytes.fromhex("01000200030000000400000000020100020005ff")
    assert wire.encode_reply(wire.OK, 3, 4, 1, 32768) == bytes.fromhex("01000300000004000000010080")


@given(st.binary(max_size=80))
def test_any_bytes_decode_or_raise_value_error(payload):
    for decode in (wire.decode_request, wire.decode_reply):
        with contextlib.suppress(ValueError):
            decode(payload)


@given(st.integers(0, 19), st.integers(0, 255))
def test_a_changed_header_never_claims_more_than_is_there(position, value):
    payload = bytearray(wire.encode_request(1, 2, 3, (2, 2), b"abcd"))
    payload[position] = value
    try:
        *_, shape, tensor = wire.decode_request(bytes(payload))
    except ValueError:
        return
    assert len(tensor) == 4


def test_a_huge_shape_is_refused_before_it_is_believed():
    payload = wire.encode_request(1, 2, 3, (1, 1), b"a")[:14] + b"\xff\xff\xff\xff" + b"a"
    with pytest.raises(ValueError, match="262144"):
        wire.decode_request(payload)


@pytest.mark.parametrize("shape, tensor", [((2,), b"a"), ((0,), b""), ((1,) * 7, b"a")])
def test_a_tensor_that_does_not_fit_its_shape_is_not_sent(shape, tensor):
    with pytest.raises(ValueError, match="tensor"):
        wire.encode_request(1, 2, 3, shape, tensor)


def test_a_reply_is_within_its_bounds():
    """The score is a Q15 probability; a label goes with the status ok and with no other; the status is a known one."""
    assert wire.decode_reply(wire.encode_reply(wire.OK, 1, 2, 0, 32768)) == (wire.OK, 1, 2, 0, 32768)
    for status, label, score in ((wire.OK, 1, 32769), (wire.OK, 1, 65535), (wire.OK, -1, 0), (wire.FAILED, 1, 0), (99, -1, 0)):
        with pytest.raises(ValueError, match="reply with"):
            wire.decode_reply(wire.encode_reply(status, 1, 2, label, score))


@pytest.mark.parametrize("name, good", [("kitchen", True), ("é" * 32, True), ("é" * 33, False), ("x" * 65, False), ("", False),
                                        ("a/b", False), ("a+", False), ("#", False), ("a\0", False)])  # fmt: skip
def test_device_names_are_judged_by_their_bytes(name, good):
    assert wire.is_device(name) == good
    if good:
        assert wire.checked_device(name) == name and wire.device_of(wire.topic(name, "reply")) == name
    else:
        with pytest.raises(ValueError, match="device name"):
            wire.checked_device(name)
        assert wire.device_of(wire.topic(name, "reply")) is None

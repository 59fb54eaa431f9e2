"""The wire format: round trips, exact bytes, and nothing but ValueError for whatever a stranger sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2.cpython import device_names, worker_wire
from h2t2.link import presence, wire

u16, u32 = st.integers(0, 65535), st.integers(0, 2**32 - 1)


@given(
    u16, u32, u32, st.lists(st.integers(1, 6), min_size=1, max_size=4), u32, st.integers(0, 32768), st.integers(0, 255),
    st.sampled_from([wire.INT8, wire.UINT8, wire.FLOAT32]), st.data(),
)  # fmt: skip
def test_requests_round_trip(model, boot, sequence, shape, left, chance, k, dtype, data):
    size = wire.size_of(dtype, shape)
    tensor = data.draw(st.binary(min_size=size, max_size=size))
    got = worker_wire.decode_request(
        wire.encode_request(model, boot, sequence, shape, tensor, remaining_ms=left, chance=chance, k=k, dtype=dtype)
    )
    assert (got.model, got.boot, got.sequence, got.remaining_ms, got.chance, got.k) == (model, boot, sequence, left, chance, k)
    assert list(got.shape) == shape and bytes(got.data) == tensor and got.dtype == dtype and got.media == ""


@given(u32, u32, st.integers(0, 32767), st.integers(0, 32768))
def test_replies_round_trip(boot, sequence, label, score):
    assert wire.decode_reply(worker_wire.encode_reply(wire.OK, boot, sequence, label, score)) == (
        0,
        boot,
        sequence,
        label,
        score,
    )


def test_exact_bytes():
    made = wire.encode_request(2, 3, 4, (1, 2), b"\x05\xff", remaining_ms=1500, chance=32768, k=7)
    assert made == bytes.fromhex("02000200 03000000 04000000 dc050000 0080 07 00 02 0100 0200 05ff")
    raw = wire.encode_request(2, 3, 4, (2,), b"\x05\xff", remaining_ms=1500, k=7, dtype=wire.RAW, media="a/b")
    assert raw == bytes.fromhex("02000200 03000000 04000000 dc050000 0000 07 03 01 02000000 03612f62 05ff")
    assert worker_wire.encode_reply(wire.OK, 3, 4, 1, 32768) == bytes.fromhex("0200 03000000 04000000 0100 0080")


def test_who_says_so():
    assert presence.status("online", 12) == b"online 12" and presence.boot_of(b"online 12") == 12
    assert [presence.boot_of(other) for other in (b"online", b"", b"a b c", b"online -1", bytes(50))] == [-1] * 5
    assert presence.worker_topic(3, "a") == "h2t2-workers/2/3/a" and presence.request_leaf(3) == "request/3"


def test_a_huge_shape_is_refused_before_it_is_believed():
    payload = wire.encode_request(1, 2, 3, (1, 1), b"a")[: wire.REQUEST_HEADER] + b"\xff\xff\xff\xff" + b"a"
    with pytest.raises(ValueError, match="262144"):
        worker_wire.decode_request(payload)


@pytest.mark.parametrize("shape, tensor", [((2,), b"a"), ((0,), b""), ((1,) * 7, b"a")])
def test_a_tensor_that_does_not_fit_its_shape_is_not_sent(shape, tensor):
    with pytest.raises(ValueError, match="not fit"):
        wire.encode_request(1, 2, 3, shape, tensor)


def test_a_reply_is_within_its_bounds():
    """The score is a Q15 probability; a label goes with the status ok and with no other; the status is a known one."""
    assert wire.decode_reply(worker_wire.encode_reply(wire.OK, 1, 2, 0, 32768)) == (wire.OK, 1, 2, 0, 32768)
    for status, label, score in ((wire.OK, 1, 32769), (wire.OK, 1, 65535), (wire.OK, -1, 0), (wire.FAILED, 1, 0), (99, -1, 0)):
        with pytest.raises(ValueError, match="reply with"):
            wire.decode_reply(worker_wire.encode_reply(status, 1, 2, label, score))


@pytest.mark.parametrize("name, good", [("kitchen", True), ("é" * 32, True), ("é" * 33, False), ("x" * 65, False), ("", False),
                                        ("a/b", False), ("a+", False), ("#", False), ("a\0", False)])  # fmt: skip
def test_device_names_are_judged_by_their_bytes(name, good):
    assert device_names.is_device(name) == good
    if good:
        assert device_names.checked_device(name) == name and device_names.device_of(wire.topic(name, "reply")) == name
    else:
        with pytest.raises(ValueError, match="device name"):
            device_names.checked_device(name)
        assert device_names.device_of(wire.topic(name, "reply")) != name


def test_the_numbers_of_the_version_are_those_that_boards_and_workers_in_use_know():
    assert wire.VERSION == 2 and (wire.INT8, wire.UINT8, wire.FLOAT32, wire.RAW) == (0, 1, 2, 3)
    statuses = wire.OK, wire.MALFORMED, wire.WRONG_MODEL, wire.FAILED, wire.BUSY, wire.REFUSED, wire.NOBODY, wire.TOO_LARGE
    assert (*statuses, wire.OTHER_VERSION, wire.LATER) == tuple(range(10))
    assert [wire.size_of(dtype, (2, 3)) for dtype in range(4)] == [6, 6, 24, 6]

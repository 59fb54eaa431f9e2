"""Text of others: nothing in it commands a terminal, raises anything but ValueError, or becomes a number by mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2t2_tools.common.untrusted import parse_integer, parse_json, printable


@given(st.text())
def test_shown_text_holds_nothing_that_a_terminal_obeys(text):
    shown = printable(text)
    assert shown.isprintable()
    assert not text.isprintable() or shown == text


def test_escape_sequences_and_reversed_text_are_spelled_out():
    assert printable("\x1b[31mred\x07") == "\\x1b[31mred\\x07"
    assert printable("a\u202eb") == "a\\u202eb" and printable("a\nb") == "a\\nb" and printable("a\nb", "\n") == "a\nb"


@given(st.text(st.characters(categories=["Nd", "No", "Nl"]) | st.sampled_from("0123456789 +-_."), max_size=30))
def test_a_number_is_spelled_in_ascii_digits(text):
    value = parse_integer(text, 65535)
    assert value is None or (0 <= value <= 65535 and set(text) <= set("0123456789"))


def test_digits_that_int_refuses_are_no_number():
    assert parse_integer("²", 10) is None and parse_integer("9" * 5000, 10) is None and parse_integer("", 10) is None
    assert parse_integer("65535", 65535) == 65535 and parse_integer("65536", 65535) is None


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000, b"\xff", "", "[1,", "9" * 5000])
def test_json_of_any_depth_is_a_value_or_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)

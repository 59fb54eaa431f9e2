"""Times as people write them."""

import pytest

from h2t2_tools.cli.main import main
from h2t2_tools.common.durations import parse_microseconds


@pytest.mark.parametrize("text, us", [("", 0), ("2s", 2_000_000), ("7.143ms", 7143), ("5 min", 300_000_000), ("80us", 80)])
def test_a_time_is_microseconds(text, us):
    assert parse_microseconds(text) == us


@pytest.mark.parametrize("text", ["2", "0s", "-1s", "20min", "1h", "s", "1e3s", "2s2s"])
def test_what_is_none_is_refused_with_an_example(text, capsys):
    with pytest.raises(ValueError, match="want a time such as 2s"):
        parse_microseconds(text)
    assert main(["node", f"--every={text}"]) == 2
    assert "want a time such as 2s" in capsys.readouterr().err

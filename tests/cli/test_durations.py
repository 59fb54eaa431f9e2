"""Durations as people write them: in every entry and every option that is one."""

import pytest
from support import configuration

from h2t2_tools.cli.commands import COMMANDS
from h2t2_tools.cli.execute import command, parsed
from h2t2_tools.cli.main import main
from h2t2_tools.cli.options import visible, words
from h2t2_tools.common import durations
from h2t2_tools.common.errors import UserError
from h2t2_tools.common.fields import domain


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("2h", 7200),
        ("500ms", 0.5),
        ("5 min", 300),
        ("5min", 300),
        ("1.5h", 5400),
        ("1d", 86400),
        ("7us", 7e-6),
        ("3", 3),
        (3, 3),
        ("", 0),
    ],
)
def test_a_duration_is_read_as_people_write_it(text, seconds):
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "seconds, words",
    [
        (-1, "0 s"), (0.4, "0 s"), (59, "59 s"), (60, "1 min"), (90, "1.5 min"), (600, "10 min"), (3599, "60 min"),
        (5400, "1.5 h"), (7200, "2 h"), (86399, "24 h"), (129600, "1.5 d"), (86400 * 400, "400 d"),
    ],
)  # fmt: skip
def test_a_duration_in_words_is_within_a_twentieth(seconds, words):
    assert durations.in_words(seconds) == words


@pytest.mark.parametrize("value", ["2 hours ago", "h", "-2s", "nan", "1e3", "2 h 30", True, None, []])
def test_what_is_no_duration_is_refused_with_examples(value):
    with pytest.raises(ValueError, match="500ms, 2s, 5 min or 2h"):
        durations.parse(value)


@pytest.mark.parametrize("text", ["2h", "90min", "500ms", "1d", "7us", "1500ms", "0"])
def test_a_duration_is_shown_in_its_largest_whole_unit(text):
    assert durations.text(durations.parse(text)) == text


def test_every_duration_of_a_command_takes_a_unit_and_shows_one():
    """No option is called by a unit of time, but for days and hours, of which `--days 365` is what people write."""
    count = 0
    for name in COMMANDS:
        for key, field in visible(command(name)).items():
            assert not key.endswith(("_ms", "_s", "_us")), f"{name} {key}"
            count += domain(field).duration
    assert count > 15


def test_a_worker_of_several_gets_the_shortest_duration():
    chosen = parsed(["rdl", "--workers", "2", "--batch-wait", "50us"])
    assert parsed(["rdl", *words(chosen)]).batch_wait == pytest.approx(50e-6)


def test_entries_are_what_the_runtime_counts_in(tmp_path):
    times = {"deadline": "700ms", "telemetry": "2 min", "every": "10s"}
    content = configuration(tmp_path, "esp32", **times).content()
    assert (content["deadline_ms"], content["telemetry_s"], content["every_us"]) == (700, 120, 10**7)
    assert content["watchdog_ms"] == 8000 and "keep_alive" not in content
    content = configuration(tmp_path, every="2h", keep_alive="45s").content()
    assert (content["every_ms"], content["keep_alive"]) == (7200000, 45) and "every_us" not in content
    with pytest.raises(UserError, match="every '2d'"):
        configuration(tmp_path, every="2d")


def test_options_take_units_and_name_their_range(capsys):
    assert parsed(["node", "--every", "5 min", "--deadline", "300ms"]).every == 300
    assert parsed(["update", "a", "p.h2u", "--soak", "1h"]).soak == 3600
    assert parsed(["rdl", "--batch-wait", "5ms"]).batch_wait == pytest.approx(0.005)
    assert main(["node", "--deadline", "2h"]) == 2
    assert capsys.readouterr().err == "h2t2: --deadline 2h: want a time, 10ms to 1h\n"
    assert main(["node", "--deadline", "soon"]) == 2
    assert capsys.readouterr().err == "h2t2: --deadline soon: want a time such as 500ms, 2s, 5 min or 2h\n"

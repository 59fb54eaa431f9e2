"""`h2t2-lab bench signals`: the same decisions however measurements come, exact counts, goals that can be missed."""

import pytest
from measured import SIGNALS
from support import need

from h2t2_lab.bench import signals
from h2t2_lab.boards import instructions
from h2t2_lab.emulators import built
from h2t2_lab.pages.page_parts import markdown
from h2t2_tools.boards.emulators.catalogue import UNIX
from h2t2_tools.common.errors import Failure


def test_the_report_has_the_speeds_the_estimate_and_the_goals():
    text = markdown(signals.report(SIGNALS))
    assert "60,000" in text and "every goal is met" in text
    assert "| Raspberry Pi 4 | 30,000 |" in text  # 1.8 GHz, 30,000 instructions of two cycles each


@pytest.mark.parametrize(
    "index, change, words",
    [
        (1, {"per_second": 9_000.0}, "9,000 measurements per second, want 16,000"),
        (3, {"per_second": 900.0}, "pico: 900 measurements per second, want 2,000"),
        (3, {"crc": 6}, "the scores differ"),
    ],
)
def test_a_missed_goal_is_reported(index, change, words):
    rows = [dict(row) for row in SIGNALS]
    rows[index].update(change)
    assert words in "".join(signals.broken(rows)) and not signals.broken(SIGNALS)


@pytest.mark.whole
def test_every_way_gives_the_same_scores_on_this_machine():
    rows = [signals._on_this_machine(way) for way in (signals.ONE_BY_ONE, signals.BLOCKS)]
    if UNIX.missing() is None:
        rows += [signals._unix(way) for way in (signals.ONE_BY_ONE, signals.BLOCKS)]
    assert len({row["crc"] for row in rows}) == 1 and all(row["per_second"] > 0 for row in rows)


@pytest.mark.whole
def test_instructions_of_an_emulated_pi_are_counted(tmp_path):
    need(instructions)
    counts = []
    for rounds in (1000, 2000, 3000):
        (tmp_path / "script.py").write_text(f"for _ in range({rounds}):\n    pass\nprint({rounds})\n")
        count, printed = instructions.count(tmp_path / "script.py")
        assert printed == f"{rounds}\n"
        counts.append(count)
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert 5_000 < first < 500_000 and abs(first - second) < first / 2  # the addresses of a start vary a little
    (tmp_path / "script.py").write_text("raise ValueError('its own')\n")
    with pytest.raises(Failure, match="its own"):
        instructions.count(tmp_path / "script.py")


@pytest.mark.whole
def test_a_cortex_m3_gives_the_same_scores_and_counts():
    need(built.CORTEX_M3)
    row, again = (signals._board(built.CORTEX_M3, signals.BLOCKS) for _ in range(2))
    assert row == again and row["crc"] == signals._on_this_machine(signals.BLOCKS)["crc"]
    assert row["instructions"] < 5_000  # 4,177 with a spectrum by hand, 23,466 in bytecode

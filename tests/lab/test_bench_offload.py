"""`h2t2-lab bench offload`."""

import pytest
from measured import benchmark
from support import need_mosquitto

from h2t2_tools.boards.emulators import lwip


@pytest.mark.whole
def test_the_offload_benchmark_measures_both_sides_in_one_run():
    need_mosquitto()
    rows = benchmark("offload", "--seconds", 0.5, "--devices", 6)["rows"]
    assert [row["what"].split(",")[0] for row in rows[:3]] == [
        "raw paho echo",
        "one device (paho link)",
        "one device (paho link)",
    ]
    assert "6 devices" in rows[3]["what"] and "2 workers" in rows[4]["what"] and rows[0]["ratio"] == 1
    assert lwip.LWIP.missing() or "lwIP" in rows[5]["what"]
    assert all(row["rate"] > 0 and 0 < row["p50"] <= row["p99"] for row in rows)

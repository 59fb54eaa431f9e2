"""`h2t2-lab bench dashboard`: what it measures, and that it would say what is not met."""

import shutil

import pytest
from measured import DASHBOARD, benchmark
from support import need_mosquitto

from h2t2_lab.bench import dashboard


@pytest.mark.whole
def test_a_small_fleet_is_seen():
    need_mosquitto()
    measured = benchmark("dashboard", "--seconds", 8, "--devices", 20)
    assert measured["devices"] == 20 and measured["states_per_s"] > 0 and measured["cpu_ms"] > 0 and measured["rss_mb"] > 20
    assert measured["page"] == (shutil.which("chromedriver") is not None)
    assert len(measured["delay_ms"]) == (dashboard.LOOKS if measured["page"] else 0)


def test_a_goal_that_is_missed_is_said():
    assert dashboard.broken(DASHBOARD) == [] and "every goal is met" in dashboard.report(DASHBOARD)
    worse = {**DASHBOARD, "cpu_ms": 300.0, "delay_ms": [100.0, 5000.0], "rss_end_mb": 200.0}
    assert [word in line for line, word in zip(dashboard.broken(worse), ("300 ms", "5000 ms", "200 MB"))] == [True] * 3
    assert len(dashboard.report({**DASHBOARD, "page": False, "delay_ms": []})[0].rows) == 2
